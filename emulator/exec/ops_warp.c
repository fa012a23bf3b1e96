/* What the lanes of a warp tell each other: shfl, vote, match, redux.
 *
 * Lanes of one instruction may name different member masks (each half of a warp its own, say), so a result is worked
 * out a mask. Lanes of a mask that have exited count for nothing. */
#include "op.h"
#include "values.h"

/* Where all lanes of `mask` name the same members, as nearly always. */
static bool same_members(const uint32_t *members, em_mask mask)
{
    const uint32_t first = members[__builtin_ctz(mask)];
    em_mask differ = 0;
    for (int lane = 0; lane < EM_LANES; lane++)
        differ |= (em_mask)(members[lane] != first) << lane;
    return (differ & mask) == 0;
}

/* For each group of lanes with the same members: `for (a group) { members_here, group }`. */
#define EACH_GROUP(members, mask)                                                                                      \
    for (em_mask waiting = (mask), group = 0; waiting != 0; waiting &= ~group)                                         \
        for (const em_mask members_here = first_group((members), (mask), waiting, &group), *pass = &members_here;      \
             pass != NULL; pass = NULL)

static em_mask first_group(const uint32_t *members, em_mask mask, em_mask waiting, em_mask *group)
{
    const uint32_t first = members[__builtin_ctz(waiting)];
    if (same_members(members, mask)) {
        *group = waiting;
    } else {
        *group = 0;
        EM_EACH_LANE_OF(waiting)
        {
            *group |= (em_mask)(members[lane] == first) << lane;
        }
    }
    return first & mask;
}

/* ---- shfl ------------------------------------------------------------------------------------------------------- */

typedef struct source_lane {
    int lane;
    bool within;
} source_lane;

EM_INLINE source_lane source_of(ptx_modifier mode, int lane, uint32_t b, uint32_t c)
{
    const int segment = (int)(c >> 8 & 31u), limit = (int)(c & 31u), by = (int)(b & 31u);
    const int last = (lane & segment) | (limit & ~segment);
    int from;
    bool within;
    if (mode == PTX_MOD_UP) {
        from = lane - by;
        within = from >= last;
    } else {
        from = mode == PTX_MOD_DOWN ? lane + by : mode == PTX_MOD_BFLY ? lane ^ by : (lane & segment) | (by & ~segment);
        within = from <= last;
    }
    const source_lane made = {within ? from & 31 : lane, within};
    return made;
}

EM_INLINE void shuffle(const em_insn *insn, unsigned char *rows, em_mask mask, ptx_modifier mode)
{
    uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
    const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);
    const uint32_t *const c_row = EM_ROW(uint32_t, insn->c);
    uint32_t given[EM_LANES], taken[EM_LANES];
    memcpy(given, EM_ROW(uint32_t, insn->a), sizeof given);
    em_mask within = 0;
    for (int lane = 0; lane < EM_LANES; lane++) {
        const source_lane from = source_of(mode, lane, b_row[lane], c_row[lane]);
        taken[lane] = given[from.lane];
        within |= (em_mask)from.within << lane;
    }
    EM_EACH_LANE
    {
        EM_PUT_MASKED(d_row, taken[lane]);
    }
    EM_PUT_PREDICATE_MASKED(insn->e, within);
}

#define SHUFFLE(name, mode)                                                                                            \
    EM_OP_STATUS(shfl_##name)                                                                                          \
    {                                                                                                                  \
        if (mask != 0)                                                                                                 \
            shuffle(insn, rows, mask, mode);                                                                           \
        return EM_GO;                                                                                                  \
    }                                                                                                                  \
    EM_OP_STATUS(shfl_sync_##name)                                                                                     \
    {                                                                                                                  \
        if (mask == 0)                                                                                                 \
            return EM_GO;                                                                                              \
        const em_status status = em_converge(insn, rows, warp, mask, insn->f);                                         \
        if (status == EM_GO)                                                                                           \
            shuffle(insn, rows, mask, mode);                                                                           \
        return status;                                                                                                 \
    }
SHUFFLE(up, PTX_MOD_UP)
SHUFFLE(down, PTX_MOD_DOWN)
SHUFFLE(bfly, PTX_MOD_BFLY)
SHUFFLE(idx, PTX_MOD_IDX)

/* ---- vote ------------------------------------------------------------------------------------------------------- */

EM_INLINE bool voted(ptx_modifier kind, em_mask yes, em_mask members)
{
    switch (kind) {
    case PTX_MOD_ALL:
        return yes == members;
    case PTX_MOD_ANY:
        return yes != 0;
    default: /* uni: all of one mind */
        return yes == 0 || yes == members;
    }
}

EM_INLINE void vote(const em_insn *insn, unsigned char *rows, em_mask lanes, em_mask members, ptx_modifier kind)
{
    const em_mask mask = lanes, yes = EM_PREDICATE(insn->a) & members;
    if (kind == PTX_MOD_BALLOT) {
        uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
        EM_EACH_LANE
        {
            EM_PUT_MASKED(d_row, yes);
        }
    } else {
        EM_PUT_PREDICATE_MASKED(insn->d, voted(kind, yes, members) ? EM_ALL_LANES : 0);
    }
}

/* The predicate is read for each group anew: a destination may be the source, but only in lanes of its own group,
 * which no later group counts unless the masks overlap, and then the program is wrong. */
#define VOTE(name, kind)                                                                                               \
    EM_OP_STATUS(vote_##name)                                                                                          \
    {                                                                                                                  \
        if (mask != 0)                                                                                                 \
            vote(insn, rows, mask, mask, kind);                                                                        \
        return EM_GO;                                                                                                  \
    }                                                                                                                  \
    EM_OP_STATUS(vote_sync_##name)                                                                                     \
    {                                                                                                                  \
        if (mask == 0)                                                                                                 \
            return EM_GO;                                                                                              \
        const em_status status = em_converge(insn, rows, warp, mask, insn->b);                                         \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        EACH_GROUP(EM_ROW(uint32_t, insn->b), mask)                                                                    \
        {                                                                                                              \
            vote(insn, rows, group, members_here, kind);                                                               \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }
VOTE(all, PTX_MOD_ALL)
VOTE(any, PTX_MOD_ANY)
VOTE(uni, PTX_MOD_UNI)
VOTE(ballot, PTX_MOD_BALLOT)

/* ---- match ------------------------------------------------------------------------------------------------------ */

static uint64_t matched_value(const unsigned char *row, unsigned size, int lane)
{
    uint64_t value = 0;
    memcpy(&value, row + size * (unsigned)lane, size);
    return value;
}

static em_mask equal_lanes(const unsigned char *row, unsigned size, uint64_t value, em_mask among)
{
    em_mask equal = 0;
    EM_EACH_LANE_OF(among)
    {
        equal |= (em_mask)(matched_value(row, size, lane) == value) << lane;
    }
    return equal;
}

static void match(const em_insn *insn, unsigned char *rows, em_mask mask, unsigned size, bool all)
{
    const uint32_t *const members = EM_ROW(uint32_t, insn->b);
    uint32_t found[EM_LANES] = {0};
    em_mask agreed = 0;
    EM_EACH_LANE_OF(mask)
    {
        const em_mask here = members[lane] & mask;
        const unsigned char *const row = rows + insn->a;
        const em_mask equal = equal_lanes(row, size, matched_value(row, size, lane), here);
        agreed |= (em_mask)(equal == here) << lane;
        found[lane] = !all || equal == here ? equal : 0;
    }
    uint32_t *const d_row = EM_ROW(uint32_t, insn->d);
    EM_EACH_LANE
    {
        EM_PUT_MASKED(d_row, found[lane]);
    }
    if (all)
        EM_PUT_PREDICATE_MASKED(insn->e, agreed);
}

#define MATCH(name, size, all)                                                                                         \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        if (mask == 0)                                                                                                 \
            return EM_GO;                                                                                              \
        const em_status status = em_converge(insn, rows, warp, mask, insn->b);                                         \
        if (status == EM_GO)                                                                                           \
            match(insn, rows, mask, size, all);                                                                        \
        return status;                                                                                                 \
    }
MATCH(match_any_b32, 4, false)
MATCH(match_any_b64, 8, false)
MATCH(match_all_b32, 4, true)
MATCH(match_all_b64, 8, true)

/* ---- redux ------------------------------------------------------------------------------------------------------ */

#define LESSER(T, x, y)   ((T)(x) < (T)(y) ? (x) : (y))
#define GREATER(T, x, y)  ((T)(x) > (T)(y) ? (x) : (y))
#define F32_LESSER(x, y)  em_bits_of_float(em_lesser(em_float_of(x), em_float_of(y)))
#define F32_GREATER(x, y) em_bits_of_float(em_greater(em_float_of(x), em_float_of(y)))
#define F32_LESSER_NAN(x, y)                                                                                           \
    em_bits_of_float(em_or_nan(em_float_of(x), em_float_of(y), em_lesser(em_float_of(x), em_float_of(y))))
#define F32_GREATER_NAN(x, y)                                                                                          \
    em_bits_of_float(em_or_nan(em_float_of(x), em_float_of(y), em_greater(em_float_of(x), em_float_of(y))))
#define AS_IT_IS(x)  (x)
#define MAGNITUDE(x) ((x)&0x7fffffffu)

/* `first` prepares a lane's value, `expression` joins `x` with another lane's `y`. */
#define REDUX(name, first, expression)                                                                                 \
    EM_OP_STATUS(redux_##name)                                                                                         \
    {                                                                                                                  \
        if (mask == 0)                                                                                                 \
            return EM_GO;                                                                                              \
        const em_status status = em_converge(insn, rows, warp, mask, insn->b);                                         \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        uint32_t given[EM_LANES], members[EM_LANES];                                                                   \
        memcpy(given, EM_ROW(uint32_t, insn->a), sizeof given);                                                        \
        memcpy(members, EM_ROW(uint32_t, insn->b), sizeof members);                                                    \
        EACH_GROUP(members, mask)                                                                                      \
        {                                                                                                              \
            uint32_t x = first(given[__builtin_ctz(members_here)]);                                                    \
            EM_EACH_LANE_OF(members_here &(members_here - 1))                                                          \
            {                                                                                                          \
                const uint32_t y = first(given[lane]);                                                                 \
                x = (expression);                                                                                      \
            }                                                                                                          \
            EM_EACH_LANE_OF(group)                                                                                     \
            {                                                                                                          \
                EM_ROW(uint32_t, insn->d)[lane] = x;                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }
REDUX(add, AS_IT_IS, x + y)
REDUX(and, AS_IT_IS, x &y)
REDUX(or, AS_IT_IS, x | y)
REDUX(xor, AS_IT_IS, x ^ y)
REDUX(min_u32, AS_IT_IS, LESSER(uint32_t, x, y))
REDUX(max_u32, AS_IT_IS, GREATER(uint32_t, x, y))
REDUX(min_s32, AS_IT_IS, LESSER(int32_t, x, y))
REDUX(max_s32, AS_IT_IS, GREATER(int32_t, x, y))
REDUX(min_f32, AS_IT_IS, F32_LESSER(x, y))
REDUX(max_f32, AS_IT_IS, F32_GREATER(x, y))
REDUX(min_nan_f32, AS_IT_IS, F32_LESSER_NAN(x, y))
REDUX(max_nan_f32, AS_IT_IS, F32_GREATER_NAN(x, y))
REDUX(min_abs_f32, MAGNITUDE, F32_LESSER(x, y))
REDUX(max_abs_f32, MAGNITUDE, F32_GREATER(x, y))
REDUX(min_abs_nan_f32, MAGNITUDE, F32_LESSER_NAN(x, y))
REDUX(max_abs_nan_f32, MAGNITUDE, F32_GREATER_NAN(x, y))

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define FORMS_SHUFFLE(name, mode)                                                                                      \
    EM_FORM_ONE(shfl_##name, SHFL, EM_TYPES(B32), EM_MODIFIERS(mode)),                                                 \
        EM_FORM_ONE(shfl_sync_##name, SHFL, EM_TYPES(B32), EM_MODIFIERS(SYNC, mode))
#define FORMS_VOTE(name, kind, type)                                                                                   \
    EM_FORM_ONE(vote_##name, VOTE, EM_TYPES(type), EM_MODIFIERS(kind)),                                                \
        EM_FORM_ONE(vote_sync_##name, VOTE, EM_TYPES(type), EM_MODIFIERS(SYNC, kind))
#define FORM_REDUX(name, type, ...) EM_FORM_ONE(redux_##name, REDUX, EM_TYPES(type), EM_MODIFIERS(SYNC, __VA_ARGS__))

const em_form EM_ISA_NAME(em_forms_warp)[] = {
    FORMS_SHUFFLE(up, UP),
    FORMS_SHUFFLE(down, DOWN),
    FORMS_SHUFFLE(bfly, BFLY),
    FORMS_SHUFFLE(idx, IDX),
    FORMS_VOTE(all, ALL, PRED),
    FORMS_VOTE(any, ANY, PRED),
    FORMS_VOTE(uni, UNI, PRED),
    FORMS_VOTE(ballot, BALLOT, B32),
    EM_FORM_ONE(match_any_b32, MATCH, EM_TYPES(B32), EM_MODIFIERS(ANY, SYNC)),
    EM_FORM_ONE(match_any_b64, MATCH, EM_TYPES(B64), EM_MODIFIERS(ANY, SYNC)),
    EM_FORM_ONE(match_all_b32, MATCH, EM_TYPES(B32), EM_MODIFIERS(ALL, SYNC)),
    EM_FORM_ONE(match_all_b64, MATCH, EM_TYPES(B64), EM_MODIFIERS(ALL, SYNC)),
    FORM_REDUX(add, U32, ADD),
    FORM_REDUX(add, S32, ADD),
    FORM_REDUX(and, B32, AND),
    FORM_REDUX(or, B32, OR),
    FORM_REDUX(xor, B32, XOR),
    FORM_REDUX(min_u32, U32, MIN),
    FORM_REDUX(max_u32, U32, MAX),
    FORM_REDUX(min_s32, S32, MIN),
    FORM_REDUX(max_s32, S32, MAX),
    FORM_REDUX(min_f32, F32, MIN),
    FORM_REDUX(max_f32, F32, MAX),
    FORM_REDUX(min_nan_f32, F32, MIN, NAN),
    FORM_REDUX(max_nan_f32, F32, MAX, NAN),
    FORM_REDUX(min_abs_f32, F32, MIN, ABS),
    FORM_REDUX(max_abs_f32, F32, MAX, ABS),
    FORM_REDUX(min_abs_nan_f32, F32, MIN, ABS, NAN),
    FORM_REDUX(max_abs_nan_f32, F32, MAX, ABS, NAN),
    EM_FORM_END,
};
