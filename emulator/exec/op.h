/* One bytecode instruction, and how the handlers that carry it out are written and listed.
 *
 * A handler works on a whole warp and ends in a tail call of the next one. Each operation has two: `_full` runs where
 * the fragment holds every live lane and the instruction is unguarded, so it may write all 32 lanes of its
 * destination (dead lanes hold nothing anyone reads); `_masked` writes only the lanes of its mask. Neither may touch
 * memory for a lane outside the mask.
 *
 *     EM_BINARY(add_s32, uint32_t, uint32_t, uint32_t, a + b)        defines add_s32_full and add_s32_masked
 *
 *     const em_form EM_ISA_NAME(em_forms_integer)[] = {
 *         EM_FORM(add_s32, ADD, EM_TYPES(S32), EM_NONE),
 *         EM_FORM(add_sat_s32, ADD, EM_TYPES(S32), EM_MODIFIERS(SAT)),
 *         EM_FORM_END};
 *
 * Operands: d is the destination, e a second one (`p|q`), a b c f the sources in the order PTX writes them. Immediates
 * and special registers are rows too, an operand that is absent or `_` is the frame's scratch row (scratch predicate
 * for predicates). A row has exactly the type the instruction names for that operand (ptx_operand.type); lower.c
 * converts where a register is wider, sign-extending by the operand's type. A negated predicate operand arrives
 * inverted already. Carry-chain forms read and write EM_CARRY.
 *
 * A list of forms is added to the engine by its name in forms.def. */
#ifndef CUDA_CORE_EMULATOR_OP_H
#define CUDA_CORE_EMULATOR_OP_H

#include "lanes.h"

#include "../ptx/ir.h"

typedef struct em_insn em_insn;
typedef struct em_warp em_warp;

/* Why a run of handlers came back to the scheduler. Handlers of arithmetic never return one themselves. */
typedef enum em_status {
    EM_GO,         /* in a body: no reason to stop */
    EM_RESCHEDULE, /* fragments changed: pick again */
    EM_YIELD,      /* out of fuel or asleep: let another warp run */
    EM_FAULTED,    /* the account is in the launch: stop the grid */
} em_status;

typedef em_status em_handler(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask);

struct em_insn {
    em_handler *run;
    uint32_t d, e;       /* destination rows */
    uint32_t a, b, c, f; /* source rows */
    uint32_t guard;      /* predicate row; EM_TRUE_OFFSET where unguarded */
    em_mask guard_flip;  /* all ones for @!p */
    union {
        int64_t imm;                /* displacement of an address; what control.c and memory.c need */
        const ptx_instruction *ptx; /* operations without an address: selectors and modifiers, for rare handlers */
    };
    uint16_t space; /* ptx_space of a memory access, with em_space flags */
    uint16_t aux;   /* count of vector elements, barrier ... by operation */
    uint32_t slot;  /* with an address: where the block keeps the range it hit last; else row of a fifth source */
};

/* Threads of one warp that are at one place. `base` is the byte offset of their frame in the warp's stack: threads at
 * the same depth of calls share rows, each its own column, so fragments at one pc and base can merge whatever way they
 * came. */
typedef struct em_fragment {
    const em_insn *pc; /* in the masked code */
    em_mask mask;
    uint32_t base;
    uint32_t order;  /* of the block pc is in */
    uint32_t turn;   /* when it last ran out of fuel: the oldest goes first after a rotation */
    uint8_t state;   /* em_fragment_state */
    uint8_t barrier; /* the one it waits at */
} em_fragment;

struct em_warp {
    em_mask live;   /* lanes that exist and have not exited */
    uint32_t index; /* %warpid */
    bool alone;     /* one thread of the host runs all device code: an atomic may be a plain operation */
    struct em_block *block;

    /* The engine's own. */
    int32_t fuel;          /* back edges left before another warp or fragment gets a turn */
    uint32_t limit;        /* a branch to a block of this order or later returns to the scheduler */
    struct em_slot *slots; /* the block's: last range hit, one a memory instruction */
    unsigned char *shared; /* the block's shared memory */
    uint64_t shared_bytes;
    unsigned char *local; /* lane 0's local memory */
    uint64_t local_stride, local_bytes;
    const struct em_program *program;
    unsigned char *stack; /* frames of rows */
    uint32_t stack_bytes;
    em_mask existing;     /* lanes that the block has in this warp */
    em_fragment *current; /* the running one */
    uint32_t fragment_count, turn;
    bool rotate;   /* out of fuel: the next pick is by turn, not by order */
    bool may_wait; /* since its turn began it made an access that threads wait for others with */
    em_fragment fragments[EM_LANES];
    em_mask members[EM_LANES];         /* at bar.warp.sync: whom each lane waits for */
    unsigned char *pointers[EM_LANES]; /* host addresses of the access in progress */
};

#define EM_HANDLER(name) static em_status name(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask)
/* clang keeps the frame of a handler that has an array or a barrier for memory unless it is told not to. */
#if defined(__clang__)
#define EM_NEXT __attribute__((musttail)) return insn[1].run(insn + 1, rows, warp, mask)
#else
#define EM_NEXT return insn[1].run(insn + 1, rows, warp, mask)
#endif

/* Lanes a masked handler acts on. */
static inline em_mask em_guarded(const em_insn *insn, const unsigned char *rows, em_mask mask)
{
    em_mask guard;
    memcpy(&guard, rows + insn->guard, sizeof guard);
    return mask & (guard ^ insn->guard_flip);
}

/* ---- an operation with a body of its own ------------------------------------------------------------------------- */

/* EM_OP(name) { ... EM_EACH_LANE { EM_PUT(d, a[lane] + b[lane]); } }
 * The body sees insn, rows, warp, `mask` (the lanes that act: the guard is applied) and `full`, a compile-time
 * constant. It is compiled into both handlers. */
#define EM_OP(name)                                                                                                    \
    static inline __attribute__((always_inline)) void name##_body(const em_insn *insn, unsigned char *rows,            \
                                                                  em_warp *warp, const em_mask mask, const bool full); \
    EM_HANDLER(name##_full)                                                                                            \
    {                                                                                                                  \
        name##_body(insn, rows, warp, mask, true);                                                                     \
        EM_NEXT;                                                                                                       \
    }                                                                                                                  \
    EM_HANDLER(name##_masked)                                                                                          \
    {                                                                                                                  \
        name##_body(insn, rows, warp, em_guarded(insn, rows, mask), false);                                            \
        EM_NEXT;                                                                                                       \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void name##_body(                                                     \
        __attribute__((unused)) const em_insn *insn, __attribute__((unused)) unsigned char *rows,                      \
        __attribute__((unused)) em_warp *warp, __attribute__((unused)) const em_mask mask,                             \
        __attribute__((unused)) const bool full)

/* The same for a body that can stop the warp: it returns an em_status, EM_GO to carry on. One handler serves both
 * tables (`_masked`, listed with EM_FORM_ONE), so `full` does not exist here: write with EM_PUT_MASKED. */
#define EM_OP_STATUS(name)                                                                                             \
    static em_status name##_body(const em_insn *insn, unsigned char *rows, em_warp *warp, const em_mask mask);         \
    EM_HANDLER(name##_masked)                                                                                          \
    {                                                                                                                  \
        const em_status status = name##_body(insn, rows, warp, em_guarded(insn, rows, mask));                          \
        if (__builtin_expect(status != EM_GO, 0))                                                                      \
            return status;                                                                                             \
        EM_NEXT;                                                                                                       \
    }                                                                                                                  \
    static em_status name##_body(__attribute__((unused)) const em_insn *insn,                                          \
                                 __attribute__((unused)) unsigned char *rows, __attribute__((unused)) em_warp *warp,   \
                                 __attribute__((unused)) const em_mask mask)

/* Writes one lane of a destination row, inside EM_EACH_LANE or EM_EACH_LANE_OF. */
#define EM_PUT(row, value)        ((row)[lane] = (full || (mask >> lane & 1) != 0) ? (value) : (row)[lane])
#define EM_PUT_MASKED(row, value) ((row)[lane] = (mask >> lane & 1) != 0 ? (value) : (row)[lane])
/* Writes a predicate destination from a mask of results. */
#define EM_PUT_PREDICATE(offset, results)                                                                              \
    (EM_PREDICATE(offset) = full ? (results) : (EM_PREDICATE(offset) & ~mask) | ((results)&mask))
#define EM_PUT_PREDICATE_MASKED(offset, results)                                                                       \
    (EM_PREDICATE(offset) = (EM_PREDICATE(offset) & ~mask) | ((results)&mask))

/* ---- one line an operation --------------------------------------------------------------------------------------- */

/* D, A, B, C: C types of destination and sources. `expression` sees a, b, c as values of those types. It is evaluated
 * for dead lanes too, so it must not trap (divide). */
#define EM_UNARY(name, D, A, expression)                                                                               \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        D *const d_row = EM_ROW(D, insn->d);                                                                           \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            EM_PUT(d_row, (D)(expression));                                                                            \
        }                                                                                                              \
    }

#define EM_BINARY(name, D, A, B, expression)                                                                           \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        D *const d_row = EM_ROW(D, insn->d);                                                                           \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        const B *const b_row = EM_ROW(B, insn->b);                                                                     \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            const B b = b_row[lane];                                                                                   \
            EM_PUT(d_row, (D)(expression));                                                                            \
        }                                                                                                              \
    }

#define EM_TERNARY(name, D, A, B, C, expression)                                                                       \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        D *const d_row = EM_ROW(D, insn->d);                                                                           \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        const B *const b_row = EM_ROW(B, insn->b);                                                                     \
        const C *const c_row = EM_ROW(C, insn->c);                                                                     \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            const B b = b_row[lane];                                                                                   \
            const C c = c_row[lane];                                                                                   \
            EM_PUT(d_row, (D)(expression));                                                                            \
        }                                                                                                              \
    }

/* As EM_BINARY and EM_TERNARY with the host's rounding mode switched to `mode`. */
#define EM_UNARY_ROUNDED(name, mode, D, A, expression)                                                                 \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const uint64_t old_rounding = em_rounding_set(mode);                                                           \
        D *const d_row = EM_ROW(D, insn->d);                                                                           \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            EM_PUT(d_row, (D)(expression));                                                                            \
        }                                                                                                              \
        em_rounding_restore(old_rounding);                                                                             \
    }

#define EM_BINARY_ROUNDED(name, mode, D, A, B, expression)                                                             \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const uint64_t old_rounding = em_rounding_set(mode);                                                           \
        D *const d_row = EM_ROW(D, insn->d);                                                                           \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        const B *const b_row = EM_ROW(B, insn->b);                                                                     \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            const B b = b_row[lane];                                                                                   \
            EM_PUT(d_row, (D)(expression));                                                                            \
        }                                                                                                              \
        em_rounding_restore(old_rounding);                                                                             \
    }

#define EM_TERNARY_ROUNDED(name, mode, D, A, B, C, expression)                                                         \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const uint64_t old_rounding = em_rounding_set(mode);                                                           \
        D *const d_row = EM_ROW(D, insn->d);                                                                           \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        const B *const b_row = EM_ROW(B, insn->b);                                                                     \
        const C *const c_row = EM_ROW(C, insn->c);                                                                     \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            const B b = b_row[lane];                                                                                   \
            const C c = c_row[lane];                                                                                   \
            EM_PUT(d_row, (D)(expression));                                                                            \
        }                                                                                                              \
        em_rounding_restore(old_rounding);                                                                             \
    }

/* Predicate p (and p|q with q its opposite) from a comparison of a and b. `join` combines the mask `results` with the
 * mask `third` (the predicate operand c of setp.lt.and and the like): write `results` where there is none. */
#define EM_COMPARE(name, A, B, expression) EM_COMPARE_JOINED(name, A, B, expression, results, results_opposite)
#define EM_COMPARE_JOINED(name, A, B, expression, join, join_opposite)                                                 \
    EM_OP(name)                                                                                                        \
    {                                                                                                                  \
        const A *const a_row = EM_ROW(A, insn->a);                                                                     \
        const B *const b_row = EM_ROW(B, insn->b);                                                                     \
        em_mask results = 0;                                                                                           \
        EM_EACH_LANE                                                                                                   \
        {                                                                                                              \
            const A a = a_row[lane];                                                                                   \
            const B b = b_row[lane];                                                                                   \
            results |= (em_mask)((expression) ? 1 : 0) << lane;                                                        \
        }                                                                                                              \
        const em_mask results_opposite = ~results;                                                                     \
        const em_mask third = EM_PREDICATE(insn->c);                                                                   \
        const em_mask first = (join), second = (join_opposite);                                                        \
        (void)third;                                                                                                   \
        EM_PUT_PREDICATE(insn->e, second);                                                                             \
        EM_PUT_PREDICATE(insn->d, first);                                                                              \
    }
/* (insn->e and an absent insn->c are the frame's scratch predicate.) */

/* ---- the table of forms ------------------------------------------------------------------------------------------ */

enum { EM_FORM_TYPES = 4, EM_FORM_MODIFIERS = 7 };

/* Which instructions a handler serves: the opcode, all its types in order, and the exact set of its modifiers (any
 * order here), less those that lower.c takes out first: the classes SPACE (it is in insn->space), SEMANTICS, SCOPE,
 * CACHE and VECTOR, the words L1, L2, L1_*, L2_*, ALIGNED and UNI of bra and call. */
typedef struct em_form {
    em_handler *full, *masked;
    uint16_t opcode;                       /* ptx_opcode */
    uint16_t types[EM_FORM_TYPES];         /* ptx_type; PTX_NO_TYPE ends */
    uint16_t modifiers[EM_FORM_MODIFIERS]; /* ptx_modifier; PTX_MOD_NONE ends */
    uint16_t shape[3];                     /* m, n, k of matrix forms, else zeros */
} em_form;

#define EM_COUNT_(a, b, c, d, e, f, g, n, ...) n
#define EM_COUNT(...)                          EM_COUNT_(__VA_ARGS__, 7, 6, 5, 4, 3, 2, 1, 0)
#define EM_MAP1(prefix, a)                     prefix##a
#define EM_MAP2(prefix, a, ...)                prefix##a, EM_MAP1(prefix, __VA_ARGS__)
#define EM_MAP3(prefix, a, ...)                prefix##a, EM_MAP2(prefix, __VA_ARGS__)
#define EM_MAP4(prefix, a, ...)                prefix##a, EM_MAP3(prefix, __VA_ARGS__)
#define EM_MAP5(prefix, a, ...)                prefix##a, EM_MAP4(prefix, __VA_ARGS__)
#define EM_MAP6(prefix, a, ...)                prefix##a, EM_MAP5(prefix, __VA_ARGS__)
#define EM_MAP7(prefix, a, ...)                prefix##a, EM_MAP6(prefix, __VA_ARGS__)
#define EM_MAP_(n, prefix, ...)                EM_MAP##n(prefix, __VA_ARGS__)
#define EM_MAP__(n, prefix, ...)               EM_MAP_(n, prefix, __VA_ARGS__)
#define EM_MAP(prefix, ...)                    EM_MAP__(EM_COUNT(__VA_ARGS__), prefix, __VA_ARGS__)

#define EM_TYPES(...)                                                                                                  \
    {                                                                                                                  \
        EM_MAP(PTX_, __VA_ARGS__)                                                                                      \
    }
#define EM_MODIFIERS(...)                                                                                              \
    {                                                                                                                  \
        EM_MAP(PTX_MOD_, __VA_ARGS__)                                                                                  \
    }
#define EM_NONE                                                                                                        \
    {                                                                                                                  \
        0                                                                                                              \
    }
/* `name` was made by EM_OP or a one-liner; EM_FORM_ONE is for EM_OP_STATUS. */
#define EM_FORM(name, opcode, types, modifiers)                                                                        \
    {                                                                                                                  \
        name##_full, name##_masked, PTX_OP_##opcode, types, modifiers,                                                 \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
#define EM_FORM_ONE(name, opcode, types, modifiers)                                                                    \
    {                                                                                                                  \
        name##_masked, name##_masked, PTX_OP_##opcode, types, modifiers,                                               \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
#define EM_FORM_END                                                                                                    \
    {                                                                                                                  \
        0                                                                                                              \
    }

/* ---- for operations that touch memory
 * -------------------------------------------------------------------------------- */

/* Host pointers of the lanes in `mask`, whose addresses are row insn->a plus insn->imm in insn->space, after every
 * check (live range, bounds, alignment to `size`, writable). pointers[lane] is set for those lanes only. Anything but
 * EM_GO is returned by the handler at once: the fault is reported. */
typedef enum em_touch { EM_READ = 1, EM_WRITE = 2, EM_READ_WRITE = 3 } em_touch;
em_status em_pointers(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t size,
                      em_touch touch, unsigned char *pointers[EM_LANES]);

/* ---- for operations that need other lanes
 * ---------------------------------------------------------------------------- */

/* `.sync`: EM_GO when, for each lane of `mask`, every live lane of its member mask (row `members`) is in `mask` too.
 * Otherwise the fragment was set to wait, or split, and the handler returns the status; it runs again, from the
 * start, once the missing lanes are here. Call it before any write. Faults when a lane is not in its own mask. */
em_status em_converge_slow(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask, uint32_t members);
static inline em_status em_converge(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask,
                                    uint32_t members)
{
    if (__builtin_expect(mask == warp->live, 1))
        return EM_GO;
    return em_converge_slow(insn, rows, warp, mask, members);
}

/* Stops the grid with error `code` (a CUresult) and a text that is followed by kernel, block, thread and source line of
 * the lowest lane in `lanes`. */
em_status em_raise(const em_insn *insn, em_warp *warp, em_mask lanes, int code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
