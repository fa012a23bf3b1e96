/* PTX as the rest of the emulator sees it: typed, with every name resolved.
 *
 *   ptx_parse()  text -> ptx_module, or a ptx_error with line, column and an excerpt
 *   ptx_dump()   ptx_module -> PTX text again, which parses to an equal module
 *
 * A module and all that hangs off it lives in one arena and is read-only after ptx_parse; ptx_module_free drops it.
 * Nothing here knows of memory or execution. Tables: opcodes.def, modifiers.def, types.def, special.def.
 *
 * A well-formed instruction whose mnemonic or form is not in the tables does not fail the parse. It becomes
 * PTX_OP_UNSUPPORTED with its spelling and line, so that only a launch that can reach it is refused. */
#ifndef CUDA_CORE_PTX_IR_H
#define CUDA_CORE_PTX_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- vocabulary ------------------------------------------------------------------------------ */

typedef enum ptx_opcode {
    PTX_OP_UNSUPPORTED, /* see ptx_mnemonic.spelling */
#define OPCODE(identifier, spelling, tier) PTX_OP_##identifier,
#include "opcodes.def"
#undef OPCODE
    PTX_OP_COUNT
} ptx_opcode;

const char *ptx_opcode_name(ptx_opcode op); /* "bar.sync"; "unsupported" */
int ptx_opcode_tier(ptx_opcode op);         /* 1, 2, 3; 0 for PTX_OP_UNSUPPORTED */

typedef enum ptx_type {
    PTX_NO_TYPE,
#define TYPE(identifier, spelling, bits, kind) PTX_##identifier,
#include "types.def"
#undef TYPE
    PTX_TYPE_COUNT
} ptx_type;

typedef enum ptx_kind {
    PTX_KIND_NONE,
    PTX_KIND_BITS,
    PTX_KIND_UNSIGNED,
    PTX_KIND_SIGNED,
    PTX_KIND_FLOAT, /* f16 f32 f64 */
    PTX_KIND_PREDICATE,
    PTX_KIND_OTHER, /* formats that live in an untyped register of their size: f16x2 bf16 tf32 e4m3x2 ... */
    PTX_KIND_OPAQUE /* texref samplerref surfref */
} ptx_kind;

const char *ptx_type_name(ptx_type type); /* "u32" */
unsigned ptx_type_bits(ptx_type type);    /* 1 for pred */
unsigned ptx_type_size(ptx_type type);    /* bytes in memory, rounded up; 1 for pred */
ptx_kind ptx_type_kind(ptx_type type);

/* What a suffix answers; the classes are those named in modifiers.def. */
typedef enum ptx_class {
    PTX_CLASS_ROUNDING,
    PTX_CLASS_PRECISION,
    PTX_CLASS_FLUSH,
    PTX_CLASS_SATURATION,
    PTX_CLASS_HALF,
    PTX_CLASS_COMPARISON,
    PTX_CLASS_OPERATION, /* and or xor add min max inc dec cas exch popc */
    PTX_CLASS_CLASSIFY,  /* testp */
    PTX_CLASS_DIRECTION, /* l r */
    PTX_CLASS_BOUNDS,    /* clamp wrap trap zero */
    PTX_CLASS_PERMUTE,
    PTX_CLASS_SHUFFLE,
    PTX_CLASS_VOTE,
    PTX_CLASS_SPACE,
    PTX_CLASS_VECTOR,
    PTX_CLASS_SEMANTICS,
    PTX_CLASS_SCOPE,
    PTX_CLASS_CACHE,
    PTX_CLASS_GEOMETRY,
    PTX_CLASS_QUERY,
    PTX_CLASS_ACTION,
    PTX_CLASS_LOAD_MODE,
    PTX_CLASS_LAYOUT,
    PTX_CLASS_FIELD,
    PTX_CLASS_SHAPE,
    PTX_CLASS_FLAG, /* a word that answers yes or no by being there: see ptx_has */
    PTX_CLASS_COUNT
} ptx_class;

typedef enum ptx_modifier {
    PTX_MOD_NONE,
#define MODIFIER(identifier, spelling, class) PTX_MOD_##identifier,
#include "modifiers.def"
#undef MODIFIER
    PTX_MOD_COUNT
} ptx_modifier;

const char *ptx_modifier_name(ptx_modifier modifier); /* "rn", "shared::cluster" */

typedef enum ptx_space {
    PTX_SPACE_GENERIC, /* also: an instruction that names no space */
    PTX_SPACE_REGISTER,
    PTX_SPACE_GLOBAL,
    PTX_SPACE_SHARED,
    PTX_SPACE_LOCAL,
    PTX_SPACE_CONST,
    PTX_SPACE_PARAM,
    PTX_SPACE_TEX /* the obsolete .tex space */
} ptx_space;

const char *ptx_space_name(ptx_space space);

typedef enum ptx_special {
#define SPECIAL(identifier, spelling, type, components) PTX_SPECIAL_##identifier,
#include "special.def"
#undef SPECIAL
    PTX_SPECIAL_COUNT
} ptx_special;

const char *ptx_special_name(ptx_special special); /* "%tid" */
ptx_type ptx_special_type(ptx_special special);    /* type of one component */

/* ---- mnemonics ------------------------------------------------------------------------------- */

enum { PTX_MAX_TYPES = 8, PTX_MAX_SUFFIXES = 24 };

/* One full mnemonic, "ld.global.v4.f32", decoded once a module and shared by all instructions spelt so.
 * `index` counts the mnemonics of the module, so an engine can keep its handlers in a side table. */
typedef struct ptx_mnemonic {
    const char *spelling;
    uint32_t index;
    ptx_opcode op;
    uint8_t type_count;
    uint8_t types[PTX_MAX_TYPES]; /* ptx_type, as written: cvt.f32.s32 has {F32, S32} */
    uint8_t suffix_count;
    uint16_t suffixes[PTX_MAX_SUFFIXES]; /* ptx_modifier, as written, types left out */
    uint64_t set[(PTX_MOD_COUNT + 63) / 64];
    uint16_t by_class[PTX_CLASS_COUNT]; /* first suffix of the class, or PTX_MOD_NONE */
    uint8_t vector;                     /* 1, 2, 4 or 8 */
    uint8_t space;                      /* ptx_space of the first space suffix; GENERIC where there is none */
    uint8_t space_to;                   /* of a second space suffix, as in cp.async.bulk.shared::cta.global */
    uint16_t shape[3];                  /* m, n, k of a matrix instruction; k is 0 where only mMnN is written */
    const struct ptx_form *form;        /* private to the front end; NULL for PTX_OP_UNSUPPORTED */
} ptx_mnemonic;

/* ---- operands -------------------------------------------------------------------------------- */

#define PTX_NO_REGISTER UINT32_MAX
#define PTX_NO_BLOCK    UINT32_MAX

typedef enum ptx_operand_kind {
    PTX_OPERAND_NONE,      /* an optional operand that is absent */
    PTX_OPERAND_REGISTER,  /* reg; negated for !p of a predicate and -a of vmad; selector for video */
    PTX_OPERAND_VECTOR,    /* {a, b, ...}: elements[0..count) */
    PTX_OPERAND_PAIR,      /* p|q, d|p: elements[0], elements[1]; either may be a SINK */
    PTX_OPERAND_IMMEDIATE, /* bits, already converted to `type` and zero-extended to 64 bits */
    PTX_OPERAND_SPECIAL,   /* special, component; component 0xff: all of a vector (%tid without .x) */
    PTX_OPERAND_ADDRESS,   /* [reg + offset], [variable + offset] or, with neither, [offset] */
    PTX_OPERAND_VARIABLE,  /* address of variable + offset, as a value */
    PTX_OPERAND_LABEL,     /* target: index of an instruction of the function (may be instruction_count: the end) */
    PTX_OPERAND_FUNCTION,  /* called, or its address taken as a value */
    PTX_OPERAND_TARGETS,   /* .branchtargets or .calltargets list */
    PTX_OPERAND_PROTOTYPE, /* .callprototype */
    PTX_OPERAND_LIST,      /* arguments or results of a call: elements[0..count) */
    PTX_OPERAND_TEXTURE,   /* [t, {x, y}] or [t, s, {x, y}] and tensor coordinates: elements[0..count) */
    PTX_OPERAND_SINK,      /* _ */
    PTX_OPERAND_TEXT       /* all operands of a PTX_OP_UNSUPPORTED whose mnemonic is unknown, as written */
} ptx_operand_kind;

typedef enum ptx_selector { /* video instructions: which part of the register */
                            PTX_SELECT_ALL,
                            PTX_SELECT_B0,
                            PTX_SELECT_B1,
                            PTX_SELECT_B2,
                            PTX_SELECT_B3,
                            PTX_SELECT_H0,
                            PTX_SELECT_H1,
                            PTX_SELECT_MASK /* .b3210 and .h10 of the SIMD forms: selector_mask holds the digits,
                                               highest first, 4 bits each */
} ptx_selector;

struct ptx_variable;
struct ptx_function;
struct ptx_targets;
struct ptx_prototype;

typedef struct ptx_operand {
    uint8_t kind;      /* ptx_operand_kind */
    uint8_t type;      /* ptx_type under which the instruction reads or writes the operand (not the register's own) */
    uint8_t selector;  /* ptx_selector */
    uint8_t component; /* of SPECIAL: 0 to 3 for x y z w, 0xff for the whole */
    bool negated;
    bool destination; /* written by the instruction (also set on the elements of a destination vector or pair) */
    uint16_t selector_mask;
    uint32_t reg;   /* REGISTER, ADDRESS: number in function->registers, else PTX_NO_REGISTER */
    uint32_t count; /* of elements */
    uint64_t bits;  /* IMMEDIATE; ADDRESS and VARIABLE: the byte offset (two's complement); SPECIAL: ptx_special;
                       LABEL: target */
    union {
        const struct ptx_variable *variable;   /* ADDRESS (NULL: none), VARIABLE */
        const struct ptx_function *function;   /* FUNCTION */
        const struct ptx_targets *targets;     /* TARGETS */
        const struct ptx_prototype *prototype; /* PROTOTYPE */
        struct ptx_operand *elements;          /* VECTOR, PAIR, LIST, TEXTURE */
        const char *text;                      /* TEXT */
    };
} ptx_operand;

/* ---- instructions ---------------------------------------------------------------------------- */

/* Operands stand in written order, absent optional ones at the end left out, except for `call`, which always has four:
 * results (LIST, maybe empty), callee (FUNCTION or REGISTER), arguments (LIST), and NONE, TARGETS or PROTOTYPE. */
typedef struct ptx_instruction {
    const ptx_mnemonic *mnemonic;
    uint16_t op; /* ptx_opcode, same as mnemonic->op unless the operands fit no form: then PTX_OP_UNSUPPORTED */
    uint8_t operand_count;
    bool guard_negated;
    uint32_t guard;    /* predicate register, or PTX_NO_REGISTER */
    uint32_t line;     /* of the PTX text, from 1 */
    uint32_t location; /* index in module->locations; 0: none */
    uint32_t block;    /* index in function->blocks */
    ptx_operand *operands;
} ptx_instruction;

static inline bool ptx_has(const ptx_instruction *instruction, ptx_modifier modifier)
{
    return (instruction->mnemonic->set[modifier / 64] >> (modifier % 64)) & 1u;
}

static inline ptx_modifier ptx_modifier_of(const ptx_instruction *instruction, ptx_class class_of)
{
    return (ptx_modifier)instruction->mnemonic->by_class[class_of];
}

/* The index-th type suffix, PTX_NO_TYPE where there are fewer. */
static inline ptx_type ptx_type_of(const ptx_instruction *instruction, unsigned index)
{
    return index < instruction->mnemonic->type_count ? (ptx_type)instruction->mnemonic->types[index] : PTX_NO_TYPE;
}

/* ---- variables and parameters ---------------------------------------------------------------- */

typedef enum ptx_linkage {
    PTX_LINKAGE_INTERNAL,
    PTX_LINKAGE_VISIBLE,
    PTX_LINKAGE_EXTERN,
    PTX_LINKAGE_WEAK,
    PTX_LINKAGE_COMMON
} ptx_linkage;

/* `width` bytes at `offset` of the initialiser become
 * ((address of target + addend) & mask) >> (number of trailing zeros of mask); mask is all ones without mask(). */
typedef struct ptx_relocation {
    uint64_t offset;
    const struct ptx_variable *variable; /* one of these two is set */
    const struct ptx_function *function;
    int64_t addend;
    uint64_t mask;
    uint8_t width;
    bool generic; /* written generic(name): a generic address, else one of the variable's own space */
} ptx_relocation;

/* A variable of the module or of a body, or a parameter. */
typedef struct ptx_variable {
    const char *name;
    uint32_t index; /* in module->variables, or in owner->variables / ->parameters / ->results */
    uint32_t line;
    ptx_space space; /* REGISTER: a .reg parameter of a .func, see reg */
    ptx_type type;   /* of one element */
    uint8_t vector;  /* 1, 2, 4, 8 */
    ptx_linkage linkage;
    bool is_parameter, is_result;
    bool is_array;   /* declared with [] */
    bool is_unsized; /* extern .shared s[]: size is 0, bytes come from the launch */
    bool managed, unified;
    uint32_t align;  /* bytes, a power of two, always set */
    uint64_t count;  /* elements, 1 for a scalar */
    uint64_t size;   /* bytes */
    uint64_t offset; /* see ptx_function: position in the parameter buffer, parameter frame or local frame */
    uint32_t reg;    /* of a .reg parameter, else PTX_NO_REGISTER */
    bool is_pointer; /* .ptr attribute of a kernel parameter */
    ptx_space pointer_space;
    uint32_t pointer_align;
    const uint8_t *bytes; /* initial value, initialised bytes; NULL: all zero */
    uint64_t initialised; /* length of bytes, at most size; what follows is zero */
    const ptx_relocation *relocations;
    uint32_t relocation_count;
    const char *fields;               /* "{...}" of a .samplerref, .texref or .surfref, or NULL */
    const struct ptx_function *owner; /* function it is declared in; NULL: the module */
} ptx_variable;

/* ---- functions ------------------------------------------------------------------------------- */

typedef struct ptx_register {
    const char *name; /* as first used; not unique where scopes reuse names */
    ptx_type type;
} ptx_register;

typedef struct ptx_label {
    const char *name;
    uint32_t target; /* index of the instruction it stands before; may be instruction_count */
} ptx_label;

typedef struct ptx_targets { /* .branchtargets: labels are instruction indexes; .calltargets: functions */
    const char *name;
    uint32_t index; /* in function->targets */
    uint32_t count;
    const uint32_t *labels;                      /* NULL for .calltargets */
    const struct ptx_function *const *functions; /* NULL for .branchtargets */
} ptx_targets;

typedef struct ptx_prototype { /* .callprototype: what an indirect call passes; offsets as for a .func */
    const char *name;
    uint32_t index; /* in function->prototypes */
    ptx_variable *const *results;
    ptx_variable *const *parameters;
    uint32_t result_count, parameter_count;
    uint32_t parameter_frame;
    bool noreturn;
} ptx_prototype;

/* A basic block: instructions [first, end), ended by a branch, exit, return or the next label. */
typedef struct ptx_block {
    uint32_t first, end;
    uint32_t order;          /* number in reverse post-order from the entry; unreachable blocks come last */
    uint32_t post_dominator; /* block index of the immediate post-dominator; PTX_NO_BLOCK: the function's end */
    uint32_t successor_count;
    const uint32_t *successors; /* block indexes; a path off the end of the function is left out */
    bool reachable;
    bool loop_head; /* target of an edge that does not go forward in `order` */
} ptx_block;

/* Offsets of variables, by where they are declared:
 *   parameter of an entry     in the launch's parameter buffer, parameter_bytes long
 *   parameter and result of a .func, .param variable of any body
 *                             in the function's parameter frame, parameter_frame bytes, one a thread and activation:
 *                             parameters first, then results, then those of the body
 *   .local of a body          in the function's local frame, local_bytes
 *   .shared of a body         none: static shared memory is laid out by the engine a kernel */
typedef struct ptx_function {
    const char *name;
    uint32_t index; /* in module->functions */
    uint32_t line;
    ptx_linkage linkage;
    bool is_entry;
    bool has_body; /* false: a prototype that nothing in this module defines (vprintf, malloc, ...) */
    bool noreturn;
    bool address_taken; /* may be the target of an indirect call */
    bool calls_indirectly;
    const struct ptx_function *alias_of; /* .alias: same as that function; otherwise NULL */

    ptx_variable **parameters, **results;
    uint32_t parameter_count, result_count;
    uint64_t parameter_bytes; /* entries */
    uint64_t parameter_frame, local_bytes;
    uint32_t parameter_align, frame_align, local_align;

    uint32_t max_threads[3];      /* .maxntid, zeros where absent */
    uint32_t required_threads[3]; /* .reqntid */
    uint32_t required_cluster[3]; /* .reqnctapercluster */
    uint32_t max_cluster_rank;    /* .maxclusterrank */
    uint32_t min_blocks;          /* .minnctapersm */
    uint32_t max_registers;       /* .maxnreg */
    bool explicit_cluster;
    bool blocks_are_clusters; /* .blocksareclusters */

    ptx_register *registers; /* only those that the body uses, and .reg parameters */
    uint32_t register_count;
    ptx_variable **variables; /* .local .shared .param ... declared in the body, scopes flattened */
    uint32_t variable_count;
    ptx_instruction *instructions;
    uint32_t instruction_count;
    ptx_label *labels;
    uint32_t label_count;
    ptx_targets **targets;
    uint32_t target_list_count;
    ptx_prototype **prototypes;
    uint32_t prototype_count;
    ptx_block *blocks; /* in text order; blocks[0] is the entry */
    uint32_t block_count;
    const struct ptx_function **callees; /* called directly or through .calltargets, each once */
    uint32_t callee_count;
    const ptx_variable **used; /* variables of the module that the body names, each once */
    uint32_t used_count;
    const ptx_instruction *unsupported; /* the first PTX_OP_UNSUPPORTED of the body, or NULL */
} ptx_function;

/* ---- modules --------------------------------------------------------------------------------- */

typedef struct ptx_file {
    uint32_t number; /* as .loc says it */
    const char *name;
} ptx_file;

typedef struct ptx_location {
    const char *file; /* "" where the .file directive is missing */
    uint32_t file_number, line, column;
    const char *function; /* function_name of inlined code, or NULL */
    uint32_t inlined_at;  /* location index of the call, 0: not inlined */
    uint32_t place;       /* first location of the same file, line and column, whatever it is inlined in */
} ptx_location;

typedef struct ptx_module {
    int version; /* 90 for .version 9.0 */
    int version_major, version_minor;
    int target;         /* 90 for sm_90a */
    char target_suffix; /* 'a', 'f' or 0 */
    int address_size;   /* 32 or 64 */
    bool debug;         /* .target ..., debug */
    bool texmode_independent;
    ptx_variable **variables;
    uint32_t variable_count;
    ptx_function **functions; /* each name once: a definition takes the place of its forward declarations */
    uint32_t function_count;
    ptx_file *files;
    uint32_t file_count;
    ptx_location *locations; /* locations[0] is "none" */
    uint32_t location_count;
    ptx_mnemonic **mnemonics;
    uint32_t mnemonic_count;
    struct ptx_arena *arena;
} ptx_module;

typedef struct ptx_error {
    unsigned line, column; /* from 1; 0 where the module as a whole is meant */
    bool out_of_memory;
    char message[256];
    char excerpt[256]; /* the source line and, under it, a caret; empty where there is no line */
} ptx_error;

/* Parses `length` bytes (no terminating zero needed; one at the end is allowed). NULL with `error` filled on a syntax
 * error, an undefined or doubly defined name, an operand of the wrong type, or lack of memory. Thread-safe. */
ptx_module *ptx_parse(const char *text, size_t length, ptx_error *error);
void ptx_module_free(ptx_module *module); /* NULL allowed */

const ptx_function *ptx_find_function(const ptx_module *module, const char *name); /* NULL: none */
const ptx_variable *ptx_find_variable(const ptx_module *module, const char *name);

/* PTX text of the whole module, or of one instruction (no line end). The caller frees; NULL: out of memory. */
char *ptx_dump(const ptx_module *module);
char *ptx_dump_instruction(const ptx_module *module, const ptx_function *function, const ptx_instruction *instruction);

#endif
