/* Between the files of the lowering: one kernel on its way from PTX to bytecode. */
#ifndef CUDA_CORE_EMULATOR_LOWER_H
#define CUDA_CORE_EMULATOR_LOWER_H

#include "engine.h"

/* An instruction before both tables of code are laid out. */
typedef struct draft {
    em_insn insn;
    em_handlers handlers;
    em_origin origin;
    bool keeps_full; /* its full handler knows about the guard */
} draft;

/* A branch whose distance is filled in when all blocks have their place. */
typedef struct fixup {
    uint32_t at, target; /* draft; PTX instruction of the function */
} fixup;

typedef struct known_value { /* what a register always holds */
    bool is_known;
    em_constant constant;
} known_value;

typedef struct lowering {
    em_kernel *kernel;
    em_program *program;
    const em_isa *isa;
    em_detail *detail;
    bool failed; /* detail says why */

    draft *drafts;
    uint32_t count, capacity;

    /* The function being lowered. */
    em_function *function;
    const ptx_function *ptx;
    const ptx_instruction *at; /* the instruction being lowered */
    uint32_t order;            /* of its block */
    uint32_t guard;            /* predicate row of its guard */
    em_mask guard_flip;
    known_value *known; /* by register */
    bool *skipped;      /* by instruction: its destination is a known value */
    uint32_t *starts;   /* by instruction: first draft; one more for the end */
    fixup *fixups;
    uint32_t fixup_count, fixup_capacity;
    uint32_t constant_capacity;
    uint32_t *constant_table; /* hash: index + 1 */
    uint32_t constant_table_size;
    uint32_t next_row, next_predicate, predicate_end;
    uint8_t *uses;      /* by instruction: accesses of its block by its address register, from it on */
    uint32_t *patterns; /* by register: where its em_pattern is; 0: none yet */
    uint32_t *analysed; /* by register: number of the block that has found it out, 0: none */
    uint32_t scratch;   /* row that nothing reads; 0: none yet */
    uint32_t temporaries[EM_SIZES + 1][16], temporary_count[EM_SIZES + 1], temporaries_used[EM_SIZES + 1];
} lowering;

/* lower.c */
bool em_lower_out_of_memory(lowering *self);
void *em_lower_own(lowering *self, size_t bytes); /* zeroed, freed with the program */
/* Appends an instruction, unguarded; NULL: out of memory. Valid until the next one. */
draft *em_emit(lowering *self, em_handlers handlers);
/* The same under the guard of the PTX instruction. */
draft *em_emit_guarded(lowering *self, em_handlers handlers);
void em_fix_up(lowering *self, uint32_t at, uint32_t target);
/* The launch is refused: the emulator lacks the instruction being lowered. */
bool em_refuse(lowering *self, const char *why);

/* rows.c */
unsigned em_log2(unsigned bytes);
unsigned em_type_bytes(ptx_type type); /* of a lane in a row; 0: predicate */
uint32_t em_row_new(lowering *self, unsigned bytes);
uint32_t em_row_temporary(lowering *self, unsigned bytes); /* until the next PTX instruction */
uint32_t em_row_scratch(lowering *self, unsigned bytes);
uint32_t em_row_constant(lowering *self, const em_constant *wanted);
uint32_t em_row_bits(lowering *self, unsigned bytes, uint64_t bits);
void em_find_known(lowering *self);
/* operands.c */
/* Row that holds a source operand in exactly `bytes`, a lane; emits what conversion that takes. */
uint32_t em_source(lowering *self, const ptx_operand *operand, ptx_type type);
uint32_t em_source_signed(lowering *self, const ptx_operand *operand, unsigned bytes, bool is_signed);
/* Row to write a destination of that type to; em_destination_done then converts to the register. */
typedef struct destination {
    uint32_t row;
    uint32_t final_row;
    unsigned bytes, final_bytes;
    bool is_signed;
} destination;
destination em_destination(lowering *self, const ptx_operand *operand, ptx_type type);
void em_destination_done(lowering *self, const destination *made);
/* A constant that the operand is, where it is one. */
bool em_operand_constant(lowering *self, const ptx_operand *operand, unsigned bytes, em_constant *constant);
/* Address of a memory operand: row in `insn->a` form, displacement, space, path. */
typedef struct place {
    em_path path;
    ptx_space space;
    uint32_t row;
    int64_t displacement;
    bool is_parameter; /* of the kernel, at `displacement` */
} place;
bool em_address(lowering *self, const ptx_operand *operand, ptx_space space, place *found);

/* patterns.c: accesses that can share what is found out about their address. */
void em_find_uses(lowering *self);
/* The em_pattern for an access at `where` through `address`, with its `analyse` emitted; 0: the access stands alone. */
uint32_t em_pattern_of(lowering *self, const ptx_operand *address, const place *where);
void em_forget_patterns(lowering *self); /* of the registers that the instruction writes */

/* lower_memory.c, lower_move.c, lower_control.c, lower_matrix.c: true when the instruction is theirs (or failed). */
bool em_lower_memory(lowering *self);
bool em_lower_move(lowering *self);
bool em_lower_control(lowering *self);
bool em_lower_form(lowering *self);
bool em_lower_matrix(lowering *self);

#endif
