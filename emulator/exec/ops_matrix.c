/* Products of matrices that a warp holds in its registers, and what brings them there. */
#include "matrix.h"
#include "values.h"

/* ---- getting elements ------------------------------------------------------------------------------------------- */

static void gather_16(uint16_t *to, const unsigned char *rows, const uint32_t *places, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        memcpy(&to[i], rows + places[i], sizeof to[i]);
}

static void gather_32(uint32_t *to, const unsigned char *rows, const uint32_t *places, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        memcpy(&to[i], rows + places[i], sizeof to[i]);
}

static float float_of_e4m3(uint32_t code)
{
    const uint32_t magnitude = code & 0x7fu;
    const float value =
        magnitude >= 8u ? em_float_of((magnitude << 20) + (120u << 23)) : (float)(int)magnitude * 0x1p-9f;
    const float signed_value = em_float_of(em_bits_of_float(value) | (code & 0x80u) << 24);
    return magnitude == 0x7fu ? em_float_of(EM_F32_NAN) : signed_value;
}

/* As f32, exactly, whatever float type. tf32 is f32 whose low 13 bits the hardware does not look at. */
static void gather_floats(float *to, const unsigned char *rows, const uint32_t *places, unsigned count, ptx_type type)
{
    uint16_t halves[EM_MATRIX_ELEMENTS];
    uint32_t words[EM_MATRIX_ELEMENTS];
    switch (type) {
    case PTX_F16:
        gather_16(halves, rows, places, count);
        for (unsigned i = 0; i < count; i++)
            to[i] = em_float_of_f16(halves[i]);
        break;
    case PTX_BF16:
        gather_16(halves, rows, places, count);
        for (unsigned i = 0; i < count; i++)
            to[i] = em_float_of_bf16(halves[i]);
        break;
    case PTX_E4M3:
        for (unsigned i = 0; i < count; i++)
            to[i] = float_of_e4m3(rows[places[i]]);
        break;
    case PTX_E5M2:
        for (unsigned i = 0; i < count; i++)
            to[i] = em_float_of_f16((uint16_t)(rows[places[i]] << 8));
        break;
    default:
        gather_32(words, rows, places, count);
        for (unsigned i = 0; i < count; i++)
            to[i] = em_float_of(type == PTX_TF32 ? words[i] & 0xffffe000u : words[i]);
        break;
    }
}

static void scatter_floats(unsigned char *rows, const uint32_t *places, const float *from, unsigned count,
                           ptx_type type)
{
    for (unsigned i = 0; i < count; i++) {
        if (type == PTX_F16) {
            const uint16_t half = em_f16_of_float(from[i], EM_ROUND_NEAREST);
            memcpy(rows + places[i], &half, sizeof half);
        } else {
            const float value = em_canonical(from[i]);
            memcpy(rows + places[i], &value, sizeof value);
        }
    }
}

/* ---- products --------------------------------------------------------------------------------------------------- */

/* Products of halves and tf32 are exact in f32, so each step rounds once with or without the fused instruction. */
EM_INLINE void multiply_columns(const em_product *how, const float *a, const float *b, float *c, unsigned columns)
{
    for (unsigned row = 0; row < how->m; row++) {
        float *const sums = c + row * columns;
        for (unsigned step = 0; step < how->k; step++) {
            const float left = a[row * how->k + step];
            const float *const right = b + step * columns;
            for (unsigned column = 0; column < columns; column++)
                sums[column] = left * right[column] + sums[column];
        }
    }
}

static __attribute__((noinline)) void multiply_floats(const em_product *how, unsigned char *rows)
{
    _Alignas(64) float a[EM_MATRIX_ELEMENTS], b[EM_MATRIX_ELEMENTS], c[EM_MATRIX_ELEMENTS];
    gather_floats(a, rows, how->a, (unsigned)how->m * how->k, (ptx_type)how->a_type);
    gather_floats(b, rows, how->b, (unsigned)how->k * how->n, (ptx_type)how->b_type);
    gather_floats(c, rows, how->c, (unsigned)how->m * how->n, (ptx_type)how->c_type);
    switch (how->n) {
    case 8:
        multiply_columns(how, a, b, c, 8);
        break;
    case 16:
        multiply_columns(how, a, b, c, 16);
        break;
    default:
        multiply_columns(how, a, b, c, 32);
        break;
    }
    scatter_floats(rows, how->d, c, (unsigned)how->m * how->n, (ptx_type)how->d_type);
}

static __attribute__((noinline)) void multiply_doubles(const em_product *how, unsigned char *rows)
{
    double results[16 * 8]; /* the largest f64 shape */
    for (unsigned row = 0; row < how->m; row++) {
        for (unsigned column = 0; column < how->n; column++) {
            double sum, left, right;
            memcpy(&sum, rows + how->c[row * how->n + column], sizeof sum);
            for (unsigned step = 0; step < how->k; step++) {
                memcpy(&left, rows + how->a[row * how->k + step], sizeof left);
                memcpy(&right, rows + how->b[step * how->n + column], sizeof right);
                sum = __builtin_fma(left, right, sum);
            }
            results[row * how->n + column] = sum;
        }
    }
    for (unsigned i = 0; i < (unsigned)how->m * how->n; i++)
        memcpy(rows + how->d[i], &results[i], sizeof results[i]);
}

/* The `index`-th 4-bit element. */
static int32_t nibble_of(uint32_t word, unsigned index, bool is_signed)
{
    const uint32_t top = word << (28 - 4 * index);
    return is_signed ? (int32_t)top >> 28 : (int32_t)(top >> 28);
}

/* One step of the sum: a product of bytes, of eight nibbles, or of 32 bits. */
static int32_t integer_step(const em_product *how, uint32_t a, uint32_t b)
{
    const ptx_type type = (ptx_type)how->a_type, other = (ptx_type)how->b_type;
    if (type == PTX_B1)
        return __builtin_popcount(how->exclusive ? a ^ b : a & b);
    if (type == PTX_S4 || type == PTX_U4) {
        int32_t sum = 0;
        for (unsigned i = 0; i < 8; i++)
            sum += nibble_of(a, i, type == PTX_S4) * nibble_of(b, i, other == PTX_S4);
        return sum;
    }
    return (type == PTX_S8 ? (int32_t)(int8_t)a : (int32_t)a) * (other == PTX_S8 ? (int32_t)(int8_t)b : (int32_t)b);
}

static void gather_integers(uint32_t *to, const unsigned char *rows, const uint32_t *places, unsigned count,
                            ptx_type type)
{
    if (type == PTX_S8 || type == PTX_U8) {
        for (unsigned i = 0; i < count; i++)
            to[i] = rows[places[i]];
    } else {
        gather_32(to, rows, places, count);
    }
}

static __attribute__((noinline)) void multiply_integers(const em_product *how, unsigned char *rows)
{
    uint32_t a[EM_MATRIX_ELEMENTS], b[EM_MATRIX_ELEMENTS], results[EM_MATRIX_ELEMENTS];
    const unsigned count = (unsigned)how->m * how->n;
    gather_integers(a, rows, how->a, (unsigned)how->m * how->k, (ptx_type)how->a_type);
    gather_integers(b, rows, how->b, (unsigned)how->k * how->n, (ptx_type)how->b_type);
    gather_32(results, rows, how->c, count);
    for (unsigned row = 0; row < how->m; row++) {
        for (unsigned column = 0; column < how->n; column++) {
            int64_t sum = (int32_t)results[row * how->n + column];
            for (unsigned step = 0; step < how->k; step++)
                sum += integer_step(how, a[row * how->k + step], b[step * how->n + column]);
            if (how->saturate)
                sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            results[row * how->n + column] = (uint32_t)sum;
        }
    }
    for (unsigned i = 0; i < count; i++)
        memcpy(rows + how->d[i], &results[i], sizeof results[i]);
}

#define MULTIPLY(name, function)                                                                                       \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        if (mask == 0)                                                                                                 \
            return EM_GO;                                                                                              \
        const em_status status = em_converge(insn, rows, warp, mask, insn->f);                                         \
        if (status == EM_GO)                                                                                           \
            function((const em_product *)(intptr_t)insn->imm, rows);                                                   \
        return status;                                                                                                 \
    }
MULTIPLY(multiply_float, multiply_floats)
MULTIPLY(multiply_double, multiply_doubles)
MULTIPLY(multiply_integer, multiply_integers)

/* ---- moving elements -------------------------------------------------------------------------------------------- */

/* Everything is read before anything is written: a result may be an operand. */
#define PERMUTE(T)                                                                                                     \
    do {                                                                                                               \
        T values[EM_PERMUTED_ELEMENTS];                                                                                \
        for (uint32_t i = 0; i < how->count; i++)                                                                      \
            memcpy(&values[i], rows + how->from[i], sizeof(T));                                                        \
        for (uint32_t i = 0; i < how->count; i++)                                                                      \
            memcpy(rows + how->to[i], &values[i], sizeof(T));                                                          \
    } while (0)

static __attribute__((noinline)) void permute_elements(const em_permutation *how, unsigned char *rows)
{
    switch (how->size) {
    case 1:
        PERMUTE(uint8_t);
        break;
    case 2:
        PERMUTE(uint16_t);
        break;
    case 4:
        PERMUTE(uint32_t);
        break;
    default:
        PERMUTE(uint64_t);
        break;
    }
}

EM_OP_STATUS(permute)
{
    if (mask == 0)
        return EM_GO;
    const em_status status = em_converge(insn, rows, warp, mask, insn->f);
    if (status == EM_GO)
        permute_elements((const em_permutation *)(intptr_t)insn->imm, rows);
    return status;
}

#define ADDRESSES(name, T)                                                                                             \
    EM_OP_STATUS(name)                                                                                                 \
    {                                                                                                                  \
        if (mask == 0)                                                                                                 \
            return EM_GO;                                                                                              \
        const em_status status = em_converge(insn, rows, warp, mask, insn->f);                                         \
        if (status != EM_GO)                                                                                           \
            return status;                                                                                             \
        const T *const a_row = EM_ROW(T, insn->a);                                                                     \
        const uint32_t *const b_row = EM_ROW(uint32_t, insn->b);                                                       \
        T *const d_row = EM_ROW(T, insn->d);                                                                           \
        for (unsigned lane = 0; lane < EM_LANES; lane++) {                                                             \
            const unsigned line = lane % insn->aux;                                                                    \
            d_row[lane] = (T)(a_row[line] + line * (uint64_t)b_row[line] * (uint64_t)insn->imm / 8);                   \
        }                                                                                                              \
        return EM_GO;                                                                                                  \
    }
ADDRESSES(addresses_32, uint32_t)
ADDRESSES(addresses_64, uint64_t)

/* ---- cp.async: at once ------------------------------------------------------------------------------------------ */

static em_status fetch_lanes(const em_insn *insn, unsigned char *rows, em_warp *warp, em_mask mask)
{
    const uint32_t size = 1u << insn->aux;
    const uint32_t *const wanted = EM_ROW(uint32_t, insn->b);
    const uint64_t *const addresses = EM_ROW(uint64_t, insn->a);
    const em_mask reading = mask & ~EM_PREDICATE(insn->c);
    em_mask whole = 0;
    EM_EACH_LANE_OF(reading)
    {
        whole |= (em_mask)(wanted[lane] >= size) << lane;
    }
    const em_status status = em_locate(insn, rows, warp, whole, size, EM_READ);
    if (status != EM_GO)
        return status;
    EM_EACH_LANE_OF(mask)
    {
        unsigned char *const to = rows + insn->d + size * (unsigned)lane;
        if ((whole >> lane & 1u) != 0) {
            memcpy(to, warp->pointers[lane], size);
            continue;
        }
        const uint32_t bytes = (reading >> lane & 1u) != 0 ? wanted[lane] : 0;
        memset(to, 0, size);
        if (bytes == 0)
            continue;
        const uint64_t address = addresses[lane] + (uint64_t)insn->imm;
        const unsigned char *const from = em_reach(warp, (unsigned)lane, address, bytes, EM_READ);
        if (from == NULL || address % size != 0)
            return em_fault_access(insn, warp, (unsigned)lane, address, size, EM_READ);
        memcpy(to, from, bytes);
    }
    return EM_GO;
}

EM_OP_STATUS(fetch)
{
    return fetch_lanes(insn, rows, warp, mask);
}

#define ONE(name)                                                                                                      \
    {                                                                                                                  \
        name##_masked, name##_masked                                                                                   \
    }
const em_matrix_table EM_ISA_NAME(em_matrix) = {
    .multiply_float = ONE(multiply_float),
    .multiply_double = ONE(multiply_double),
    .multiply_integer = ONE(multiply_integer),
    .permute = ONE(permute),
    .addresses = {ONE(addresses_32), ONE(addresses_64)},
    .fetch = ONE(fetch),
};
