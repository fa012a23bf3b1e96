/* Matrices: mma, wmma, ldmatrix, stmatrix, movmatrix.
 *
 * Where each element lies is worked out here, once an instruction, so a handler only follows lists of places. Loads and
 * stores become accesses of 4 to 16 bytes a lane, one line of the matrix a lane, with every check of an ordinary one,
 * and a permutation between those bytes and the registers. A wmma fragment is laid out as this file likes: PTX leaves
 * it open. mma's is PTX's. */
#include "lower.h"
#include "matrix.h"

enum { REGISTERS = 8, LINE_PARTS = 8 };

/* An operand: its rows, each of 4 or 8 bytes a lane. */
typedef struct fragment {
    uint32_t rows[REGISTERS];
    destination to[REGISTERS];
    unsigned count;
    unsigned width; /* bytes a lane of one row */
    unsigned size;  /* bytes an element; 4 where elements go by words */
} fragment;

static unsigned bits_of(ptx_type type)
{
    return type == PTX_TF32 ? 32 : ptx_type_bits(type);
}

static const ptx_operand *elements_of(const ptx_operand *operand, unsigned *count)
{
    *count = operand->kind == PTX_OPERAND_VECTOR ? operand->count : 1;
    return operand->kind == PTX_OPERAND_VECTOR ? operand->elements : operand;
}

static bool get_fragment(lowering *self, const ptx_operand *operand, ptx_type type, bool is_result, fragment *made)
{
    const ptx_operand *const elements = elements_of(operand, &made->count);
    made->width = type == PTX_F64 ? 8 : 4;
    made->size = bits_of(type) < 8 ? 4 : bits_of(type) / 8;
    if (made->count == 0 || made->count > REGISTERS)
        return em_refuse(self, "with this many registers");
    for (unsigned i = 0; i < made->count; i++) {
        const ptx_type held = made->width == 8 ? PTX_B64 : PTX_B32;
        if (is_result) {
            made->to[i] = em_destination(self, &elements[i], held);
            made->rows[i] = made->to[i].row;
        } else {
            made->rows[i] = em_source(self, &elements[i], held);
        }
    }
    return !self->failed;
}

static void fragment_done(lowering *self, const fragment *made)
{
    for (unsigned i = 0; i < made->count; i++)
        em_destination_done(self, &made->to[i]);
}

/* How many elements (or words) a row of the fragment has for each lane. */
static unsigned each_of(const fragment *held)
{
    return held->width / held->size;
}

static uint32_t place_in(const fragment *held, unsigned reg, unsigned lane, unsigned element)
{
    return held->rows[reg] + lane * held->width + element * held->size;
}

/* ---- one instruction of each kind ------------------------------------------------------------------------------- */

static draft *emit(lowering *self, em_handlers handlers, const void *what)
{
    const uint32_t members = em_row_bits(self, 4, EM_ALL_LANES);
    draft *made = em_emit_guarded(self, handlers);
    if (made != NULL) {
        made->insn.f = members;
        made->insn.imm = (int64_t)(intptr_t)what;
    }
    return made;
}

static em_permutation *new_permutation(lowering *self, unsigned count, unsigned size)
{
    if (count > EM_PERMUTED_ELEMENTS) {
        em_refuse(self, "of this size");
        return NULL;
    }
    em_permutation *made = em_lower_own(self, sizeof *made + 2 * count * sizeof *made->from);
    if (made == NULL)
        return NULL;
    made->count = count;
    made->size = size;
    made->from = (uint32_t *)(void *)(made + 1);
    made->to = made->from + count;
    return made;
}

/* ---- products --------------------------------------------------------------------------------------------------- */

/* Which element of a fragment stands for which of the matrix. */
typedef uint32_t placing(const fragment *held, unsigned m, unsigned row, unsigned column, unsigned columns);

/* mma: groups of four lanes hold a row; the registers go on for rows 8 and up, then for further columns. */
static uint32_t place_a(const fragment *held, unsigned m, unsigned row, unsigned column, unsigned columns)
{
    (void)columns;
    const unsigned each = each_of(held), chunk = column / (4 * each), within = column % (4 * each);
    const unsigned reg = m == 16 ? 2 * chunk + row / 8 : chunk;
    return place_in(held, reg, row % 8 * 4 + within / each, within % each);
}

static uint32_t place_b(const fragment *held, unsigned m, unsigned row, unsigned column, unsigned columns)
{
    (void)m;
    (void)columns;
    const unsigned each = each_of(held), chunk = row / (4 * each), within = row % (4 * each);
    return place_in(held, chunk, column * 4 + within / each, within % each);
}

static uint32_t place_c(const fragment *held, unsigned m, unsigned row, unsigned column, unsigned columns)
{
    (void)m;
    (void)columns;
    const unsigned each = each_of(held), lane = row % 8 * 4 + column / 2;
    const unsigned reg = each == 2 ? row / 8 : 2 * (row / 8) + column % 2;
    return place_in(held, reg, lane, each == 2 ? column % 2 : 0);
}

/* wmma: in order along the rows, b along the columns; what is left of the registers repeats. */
static uint32_t place_number(const fragment *held, unsigned number)
{
    const unsigned each = each_of(held), per_lane = each * held->count;
    return place_in(held, number % per_lane / each, number / per_lane, number % each);
}

static uint32_t place_by_rows(const fragment *held, unsigned m, unsigned row, unsigned column, unsigned columns)
{
    (void)m;
    return place_number(held, row * columns + column);
}

static uint32_t place_by_columns(const fragment *held, unsigned m, unsigned row, unsigned column, unsigned columns)
{
    (void)m;
    return place_number(held, column * columns + row); /* `columns` is how many rows there are */
}

static void fill(uint32_t *places, const fragment *held, placing *place_of, unsigned m, unsigned rows, unsigned columns,
                 unsigned stride)
{
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < columns; column++)
            places[row * columns + column] = place_of(held, m, row, column, stride);
    }
}

typedef struct product_shape {
    unsigned m, n, k; /* k in words for types of fewer than 8 bits */
    ptx_type d, a, b, c;
    bool is_wmma;
} product_shape;

/* Exactly the registers that the elements fill; a wmma fragment may have more. */
static bool has_room(const fragment *held, unsigned elements, bool is_wmma)
{
    const unsigned room = held->count * each_of(held) * EM_LANES;
    return is_wmma ? room >= elements && elements != 0 : room == elements;
}

static em_product *new_product(lowering *self, const product_shape *shape, const fragment parts[4])
{
    const unsigned m = shape->m, n = shape->n, k = shape->k, is_wmma = shape->is_wmma;
    if (!has_room(&parts[0], m * n, is_wmma) || !has_room(&parts[1], m * k, is_wmma) ||
        !has_room(&parts[2], k * n, is_wmma) || !has_room(&parts[3], m * n, is_wmma) || m * n > EM_MATRIX_ELEMENTS ||
        m * k > EM_MATRIX_ELEMENTS || k * n > EM_MATRIX_ELEMENTS) {
        em_refuse(self, "in this shape");
        return NULL;
    }
    em_product *made = em_lower_own(self, sizeof *made + (m * k + k * n + 2 * m * n) * sizeof *made->a);
    if (made == NULL)
        return NULL;
    *made = (em_product){.m = (uint16_t)m, .n = (uint16_t)n, .k = (uint16_t)k};
    made->d_type = (uint8_t)shape->d;
    made->a_type = (uint8_t)shape->a;
    made->b_type = (uint8_t)shape->b;
    made->c_type = (uint8_t)shape->c;
    made->saturate = ptx_has(self->at, PTX_MOD_SATFINITE);
    made->exclusive = ptx_has(self->at, PTX_MOD_XOR);
    made->a = (uint32_t *)(void *)(made + 1);
    made->b = made->a + m * k;
    made->c = made->b + k * n;
    made->d = made->c + m * n;
    fill(made->d, &parts[0], is_wmma ? place_by_rows : place_c, m, m, n, n);
    fill(made->a, &parts[1], is_wmma ? place_by_rows : place_a, m, m, k, k);
    fill(made->b, &parts[2], is_wmma ? place_by_columns : place_b, m, k, n, k);
    fill(made->c, &parts[3], is_wmma ? place_by_rows : place_c, m, m, n, n);
    return made;
}

static bool is_float(ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16 || type == PTX_TF32 || type == PTX_E4M3 || type == PTX_E5M2;
}

static bool is_integer(ptx_type type)
{
    return type == PTX_S8 || type == PTX_U8 || type == PTX_S4 || type == PTX_U4 || type == PTX_B1;
}

/* No handlers: not a product that there is. */
static em_handlers handlers_of(const lowering *self, const product_shape *shape)
{
    const em_matrix_table *table = self->isa->matrix;
    const bool same_width = bits_of(shape->a) == bits_of(shape->b);
    if (is_float(shape->a) && is_float(shape->b) && same_width && (shape->c == PTX_F32 || shape->c == PTX_F16) &&
        (shape->d == PTX_F32 || shape->d == PTX_F16))
        return table->multiply_float;
    if (shape->a == PTX_F64 && shape->b == PTX_F64 && shape->c == PTX_F64 && shape->d == PTX_F64)
        return table->multiply_double;
    if (is_integer(shape->a) && is_integer(shape->b) && same_width && shape->c == PTX_S32 && shape->d == PTX_S32)
        return table->multiply_integer;
    return (em_handlers){0};
}

/* Words that this file knows, and no others: block scales and their like are refused. */
static bool has_known_words(const ptx_instruction *at)
{
    for (unsigned i = 0; i < at->mnemonic->suffix_count; i++) {
        switch (at->mnemonic->suffixes[i]) {
        case PTX_MOD_SYNC:
        case PTX_MOD_ALIGNED:
        case PTX_MOD_ROW:
        case PTX_MOD_COL:
        case PTX_MOD_SHAPE:
        case PTX_MOD_SATFINITE:
        case PTX_MOD_XOR:
        case PTX_MOD_AND:
        case PTX_MOD_POPC:
        case PTX_MOD_RN:
            break;
        default:
            return false;
        }
    }
    return true;
}

static void lower_product(lowering *self, bool is_wmma)
{
    const ptx_instruction *at = self->at;
    const unsigned type_count = at->mnemonic->type_count;
    product_shape shape = {at->mnemonic->shape[0], at->mnemonic->shape[1], at->mnemonic->shape[2], ptx_type_of(at, 0),
                           ptx_type_of(at, 1),     ptx_type_of(at, 2),     ptx_type_of(at, 3),     is_wmma};
    if (is_wmma && type_count == 2) { /* wmma of f16 names only d and c */
        shape.c = shape.a;
        shape.a = shape.b = PTX_F16;
    }
    const em_handlers handlers = handlers_of(self, &shape);
    if (handlers.masked == NULL || at->operand_count != 4 || !has_known_words(at)) {
        em_refuse(self, NULL);
        return;
    }
    if (bits_of(shape.a) < 8)
        shape.k = shape.k * bits_of(shape.a) / 32;
    fragment parts[4];
    const ptx_type types[4] = {shape.d, shape.a, shape.b, shape.c};
    for (unsigned i = 0; i < 4; i++) {
        if (!get_fragment(self, &at->operands[i], types[i], i == 0, &parts[i]))
            return;
    }
    const em_product *made = new_product(self, &shape, parts);
    if (made == NULL || emit(self, handlers, made) == NULL)
        return;
    fragment_done(self, &parts[0]);
}

/* ---- lines of memory -------------------------------------------------------------------------------------------- */

/* `count` lines, `parts` accesses of `bytes` each, one lane a line; lanes beyond repeat them, so what is written must
 * stand in all of them. */
typedef struct lines {
    unsigned count, parts, bytes;
    uint32_t rows[LINE_PARTS]; /* what was read, or is to be written */
    uint32_t addresses;
    place where;
} lines;

/* Lines are `stride_row` times `stride_bits` apart. */
static bool get_lines(lowering *self, const ptx_operand *address, uint32_t stride_row, unsigned stride_bits,
                      lines *made)
{
    if (!em_address(self, address, (ptx_space)self->at->mnemonic->space, &made->where))
        return false;
    if (made->where.is_parameter)
        return em_refuse(self, "on a parameter");
    const bool wide = made->where.path == EM_PATH_FLAT;
    made->addresses = em_row_temporary(self, wide ? 8 : 4);
    for (unsigned i = 0; i < made->parts; i++)
        made->rows[i] = em_row_temporary(self, made->bytes);
    draft *spread = emit(self, self->isa->matrix->addresses[wide], NULL);
    if (spread == NULL)
        return false;
    spread->insn.a = made->where.row;
    spread->insn.b = stride_row;
    spread->insn.imm = stride_bits;
    spread->insn.aux = (uint16_t)made->count;
    spread->insn.d = made->addresses;
    return !self->failed;
}

static void access_lines(lowering *self, const lines *memory, bool writes)
{
    const em_memory_table *table = self->isa->memory;
    const unsigned size = em_log2(memory->bytes);
    for (unsigned i = 0; i < memory->parts; i++) {
        draft *made = em_emit_guarded(self, writes ? table->store[memory->where.path][size][0]
                                                   : table->load[memory->where.path][size][0]);
        if (made == NULL)
            return;
        made->insn.a = memory->addresses;
        made->insn.imm = memory->where.displacement + (int64_t)(i * memory->bytes);
        made->insn.space = (uint16_t)memory->where.space;
        made->insn.slot = self->program->slot_count++;
        made->insn.d = memory->rows[i];
    }
}

static uint32_t place_in_line(const lines *memory, unsigned line, unsigned offset)
{
    return memory->rows[offset / memory->bytes] + line * memory->bytes + offset % memory->bytes;
}

/* ---- ldmatrix, stmatrix, movmatrix: 8 by 8 halves --------------------------------------------------------------- */

/* Where half (row, column) of matrix `reg` is held: lanes 4 row to 4 row + 3, or, transposed, by columns. */
static uint32_t place_of_half(const fragment *held, unsigned reg, unsigned row, unsigned column, bool transposed)
{
    const unsigned i = transposed ? column : row, j = transposed ? row : column;
    return held->rows[reg] + (4 * i + j / 2) * 4 + j % 2 * 2;
}

static void lower_matrix_access(lowering *self, bool writes)
{
    const ptx_instruction *at = self->at;
    const bool transposed = ptx_has(at, PTX_MOD_TRANS);
    fragment held;
    if (ptx_type_of(at, 0) != PTX_B16 || at->mnemonic->shape[0] != 8 || at->mnemonic->shape[1] != 8 ||
        at->mnemonic->type_count != 1) {
        em_refuse(self, NULL);
        return;
    }
    if (!get_fragment(self, &at->operands[writes ? 1 : 0], PTX_B32, !writes, &held))
        return;
    lines memory = {.count = 8 * held.count, .parts = 1, .bytes = 16};
    em_permutation *moved = new_permutation(self, 8 * (writes ? EM_LANES : memory.count), 2);
    if (moved == NULL || !get_lines(self, &at->operands[writes ? 0 : 1], em_row_bits(self, 4, 0), 0, &memory))
        return;
    for (unsigned i = 0; i < moved->count; i++) {
        const unsigned line = i / 8 % memory.count;
        const uint32_t in_register = place_of_half(&held, line / 8, line % 8, i % 8, transposed);
        const uint32_t in_memory = place_in_line(&memory, i / 8, i % 8 * 2);
        moved->from[i] = writes ? in_register : in_memory;
        moved->to[i] = writes ? in_memory : in_register;
    }
    if (!writes)
        access_lines(self, &memory, false);
    if (emit(self, self->isa->matrix->permute, moved) == NULL)
        return;
    if (writes)
        access_lines(self, &memory, true);
    else
        fragment_done(self, &held);
}

static void lower_movmatrix(lowering *self)
{
    const ptx_instruction *at = self->at;
    fragment from, to;
    if (ptx_type_of(at, 0) != PTX_B16 || at->mnemonic->shape[0] != 8) {
        em_refuse(self, NULL);
        return;
    }
    em_permutation *moved = new_permutation(self, 64, 2);
    if (moved == NULL || !get_fragment(self, &at->operands[1], PTX_B32, false, &from) ||
        !get_fragment(self, &at->operands[0], PTX_B32, true, &to))
        return;
    for (unsigned i = 0; i < 64; i++) {
        moved->from[i] = place_of_half(&from, 0, i / 8, i % 8, false);
        moved->to[i] = place_of_half(&to, 0, i / 8, i % 8, true);
    }
    if (emit(self, self->isa->matrix->permute, moved) != NULL)
        fragment_done(self, &to);
}

/* ---- wmma.load, wmma.store -------------------------------------------------------------------------------------- */

/* Rows and columns of the operand that the instruction names, in elements. */
static void wmma_shape(const ptx_instruction *at, unsigned *rows, unsigned *columns, bool *along_columns)
{
    const uint16_t *const shape = at->mnemonic->shape;
    const bool is_a = ptx_has(at, PTX_MOD_COMPONENT_A), is_b = ptx_has(at, PTX_MOD_COMPONENT_B);
    *rows = is_b ? shape[2] : shape[0];
    *columns = is_a ? shape[2] : shape[1];
    *along_columns = is_b;
}

/* Which of a fragment, in its own order, stands at (line, position): lines go along rows, or, .col, along columns. */
static unsigned wmma_number(unsigned line, unsigned position, unsigned rows, unsigned columns, bool along_columns,
                            bool lines_are_columns)
{
    const unsigned row = lines_are_columns ? position : line, column = lines_are_columns ? line : position;
    return along_columns ? column * rows + row : row * columns + column;
}

/* From memory every place of the fragment is filled, some elements more than once. */
static void wmma_moves(em_permutation *moved, const lines *memory, const fragment *held, unsigned rows,
                       unsigned columns, bool along_columns, bool lines_are_columns, bool writes)
{
    const unsigned elements = rows * columns, length = elements / memory->count;
    const unsigned copies = writes ? EM_LANES / memory->count : held->count * each_of(held) * EM_LANES / elements;
    for (unsigned i = 0; i < copies * elements; i++) {
        const unsigned line = i / length % memory->count, copy = i / elements;
        const unsigned number = wmma_number(line, i % length, rows, columns, along_columns, lines_are_columns);
        const uint32_t in_memory = place_in_line(memory, writes ? i / length : line, i % length * held->size);
        const uint32_t in_register = place_number(held, writes ? number : number + copy * elements);
        moved->from[i] = writes ? in_register : in_memory;
        moved->to[i] = writes ? in_memory : in_register;
    }
}

static void lower_wmma_access(lowering *self, bool writes)
{
    const ptx_instruction *at = self->at;
    const ptx_type type = ptx_type_of(at, 0);
    const bool lines_are_columns = ptx_has(at, PTX_MOD_COL);
    unsigned rows, columns;
    bool along_columns;
    fragment held;
    wmma_shape(at, &rows, &columns, &along_columns);
    if (!get_fragment(self, &at->operands[writes ? 1 : 0], type, !writes, &held))
        return;
    const unsigned bits = bits_of(type), line_bits = (lines_are_columns ? rows : columns) * bits;
    if (bits < 8 && lines_are_columns != along_columns) {
        em_refuse(self, "in this layout");
        return;
    }
    if (bits < 8) { /* by words from here on */
        rows = along_columns ? rows * bits / 32 : rows;
        columns = along_columns ? columns : columns * bits / 32;
    }
    lines memory = {.count = lines_are_columns ? columns : rows};
    memory.bytes = line_bits >= 128 ? 16 : line_bits / 8;
    memory.parts = memory.bytes != 0 ? line_bits / 8 / memory.bytes : 0;
    const unsigned elements = rows * columns, room = held.count * each_of(&held) * EM_LANES;
    if (memory.parts == 0 || memory.parts > LINE_PARTS || memory.count == 0 || EM_LANES % memory.count != 0 ||
        room < elements || room % elements != 0) {
        em_refuse(self, "in this shape");
        return;
    }
    const bool has_stride = at->operand_count > 2;
    const uint32_t stride = has_stride ? em_source(self, &at->operands[2], PTX_U32)
                                       : em_row_bits(self, 4, lines_are_columns ? rows : columns);
    const unsigned stride_bits = has_stride ? bits : 8 * held.size;
    em_permutation *moved = new_permutation(self, writes ? elements * (EM_LANES / memory.count) : room, held.size);
    if (moved == NULL || !get_lines(self, &at->operands[writes ? 0 : 1], stride, stride_bits, &memory))
        return;
    wmma_moves(moved, &memory, &held, rows, columns, along_columns, lines_are_columns, writes);
    if (!writes)
        access_lines(self, &memory, false);
    if (emit(self, self->isa->matrix->permute, moved) == NULL)
        return;
    if (writes)
        access_lines(self, &memory, true);
    else
        fragment_done(self, &held);
}

/* ---- cp.async --------------------------------------------------------------------------------------------------- */

/* Done at once, which a program that waits as it must cannot tell: a fetch into a row, and a store. */
static void lower_copy(lowering *self)
{
    const ptx_instruction *at = self->at;
    const unsigned bytes = (unsigned)at->operands[2].bits;
    place from, to;
    if (bytes != 4 && bytes != 8 && bytes != 16) {
        em_refuse(self, "of this size");
        return;
    }
    if (!em_address(self, &at->operands[0], PTX_SPACE_SHARED, &to) ||
        !em_address(self, &at->operands[1], PTX_SPACE_GLOBAL, &from))
        return;
    if (from.path != EM_PATH_FLAT || from.is_parameter || to.is_parameter) {
        em_refuse(self, "between these spaces");
        return;
    }
    uint32_t wanted = em_row_bits(self, 4, bytes), skipped = em_row_bits(self, 0, 0);
    const ptx_operand *last = at->operand_count > 3 ? &at->operands[3] : NULL;
    if (last != NULL && last->type == PTX_PRED)
        skipped = em_source(self, last, PTX_PRED);
    else if (last != NULL && last->type == PTX_U32)
        wanted = em_source(self, last, PTX_U32);
    const uint32_t held = em_row_temporary(self, bytes);
    draft *fetch = em_emit_guarded(self, self->isa->matrix->fetch);
    if (fetch == NULL)
        return;
    fetch->insn.a = from.row;
    fetch->insn.b = wanted;
    fetch->insn.c = skipped;
    fetch->insn.d = held;
    fetch->insn.imm = from.displacement;
    fetch->insn.space = (uint16_t)from.space;
    fetch->insn.aux = (uint16_t)em_log2(bytes);
    fetch->insn.slot = self->program->slot_count++;
    draft *store = em_emit_guarded(self, self->isa->memory->store[to.path][em_log2(bytes)][0]);
    if (store == NULL)
        return;
    store->insn.a = to.row;
    store->insn.d = held;
    store->insn.imm = to.displacement;
    store->insn.space = (uint16_t)to.space;
    store->insn.slot = self->program->slot_count++;
}

bool em_lower_matrix(lowering *self)
{
    switch (self->at->op) {
    case PTX_OP_MMA:
        lower_product(self, false);
        return true;
    case PTX_OP_WMMA_MMA:
        lower_product(self, true);
        return true;
    case PTX_OP_LDMATRIX:
        lower_matrix_access(self, false);
        return true;
    case PTX_OP_STMATRIX:
        lower_matrix_access(self, true);
        return true;
    case PTX_OP_MOVMATRIX:
        lower_movmatrix(self);
        return true;
    case PTX_OP_WMMA_LOAD:
        lower_wmma_access(self, false);
        return true;
    case PTX_OP_WMMA_STORE:
        lower_wmma_access(self, true);
        return true;
    case PTX_OP_CP_ASYNC:
        lower_copy(self);
        return true;
    case PTX_OP_CP_ASYNC_COMMIT_GROUP: /* every copy is complete where it stands */
    case PTX_OP_CP_ASYNC_WAIT_GROUP:
    case PTX_OP_CP_ASYNC_WAIT_ALL:
        return true;
    default:
        return false;
    }
}
