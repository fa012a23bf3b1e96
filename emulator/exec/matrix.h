/* Matrices spread over the registers of a warp: what lower_matrix.c works out once an instruction and ops_matrix.c
 * uses each time. */
#ifndef CUDA_CORE_EMULATOR_MATRIX_H
#define CUDA_CORE_EMULATOR_MATRIX_H

#include "engine.h"

/* d = a * b + c. An element is found by its byte offset from the frame's first row. Types of fewer than 8 bits go by
 * words of 32 bits, and k counts those. */
typedef struct em_product {
    uint16_t m, n, k;
    uint8_t a_type, b_type, c_type, d_type; /* ptx_type */
    bool saturate, exclusive;               /* .satfinite; .xor instead of .and for single bits */
    uint32_t *a, *b, *c, *d;                /* [m][k], [k][n], [m][n], [m][n] */
} em_product;

/* Elements of one size, each to a place of its own. */
typedef struct em_permutation {
    uint32_t count, size; /* size in bytes: 1, 2, 4 or 8 */
    uint32_t *from, *to;
} em_permutation;

enum {
    EM_MATRIX_ELEMENTS = 512, /* of the largest operand */
    EM_PERMUTED_ELEMENTS = 1024,
};

/* ops_matrix.c, one an instruction set. Row f holds the member mask of the instruction: all lanes. */
typedef struct em_matrix_table {
    em_handlers multiply_float, multiply_double, multiply_integer; /* imm: em_product */
    em_handlers permute;                                           /* imm: em_permutation */
    /* Lane l gets the address a of lane (l modulo aux) and that many times b (u32) times imm bits more: of 32 or 64
     * bits. */
    em_handlers addresses[2];
    /* cp.async: `1 << aux` bytes at [a + imm] to row d. Row b: how many to read, the rest are zeros; predicate c: none.
     */
    em_handlers fetch;
} em_matrix_table;

#endif
