/* Shared by the files of the parser; private to ptx/.
 *
 *   parser.c       the module: directives between functions      symbols.c     names, scopes, labels, registers
 *   declaration.c  variables and registers                        constant.c    constant expressions
 *   initialiser.c  initial values                                 location.c    .file, .loc, debug sections
 *   function.c     headers, parameters, bodies                    instruction.c guards, mnemonics, calls
 *   operand.c      operands as written                            mnemonic.c    suffixes against forms.def
 *   check.c        operands against a form                        cfg.c         basic blocks
 *
 * Any of them may stop the parse with ptx_fail, which does not return: ptx_parse catches it, drops the arena and the
 * scratch lists, and gives the status to its caller. Nothing in here owns anything outside those. */
#ifndef CUDA_CORE_PTX_PARSER_H
#define CUDA_CORE_PTX_PARSER_H

#include <setjmp.h>

#include "arena.h"
#include "ir.h"
#include "lexer.h"
#include "vocabulary.h"

enum {
    PTX_MAX_OPERANDS = 24,
    PTX_MAX_DEPTH = 128 /* of braces in a body, of brackets in an expression or initialiser */
};

/* ---- names and symbols ----------------------------------------------------------------------- */

typedef enum ptx_symbol_kind {
    PTX_SYMBOL_REGISTER,
    PTX_SYMBOL_RANGE, /* %r<10> under the name %r */
    PTX_SYMBOL_VARIABLE,
    PTX_SYMBOL_FUNCTION,
    PTX_SYMBOL_LABEL,
    PTX_SYMBOL_TARGETS,
    PTX_SYMBOL_PROTOTYPE
} ptx_symbol_kind;

typedef struct ptx_name { /* a spelling, once a module */
    const char *text;
    uint32_t length, hash;
    struct ptx_symbol *symbol; /* what it means here and now: the innermost declaration */
    struct ptx_symbol *range;  /* the innermost %r<10> */
    ptx_mnemonic *mnemonic;    /* where the spelling has been one */
    const char *debug_text;    /* where it labels a string of .debug_str */
    size_t debug_length;
    uint32_t first_location, last_location; /* where it is the key of a place: see location.c */
} ptx_name;

typedef struct ptx_symbol {
    ptx_symbol_kind kind;
    uint32_t depth, line;
    ptx_name *name;
    struct ptx_symbol *shadowed, *next_of_scope;
    ptx_type type;    /* REGISTER, RANGE */
    uint8_t vector;   /* REGISTER, RANGE: components */
    uint64_t count;   /* RANGE */
    uint32_t number;  /* REGISTER: of the first component; PTX_NO_REGISTER until used */
    uint32_t used_by; /* VARIABLE, FUNCTION: serial of the body that named it last */
    union {
        ptx_variable *variable;
        ptx_function *function;
        ptx_targets *targets;
        ptx_prototype *prototype;
        uint32_t target;
    };
} ptx_symbol;

typedef struct ptx_scope {
    ptx_symbol *symbols;
    size_t first_pending;     /* label references made since the scope opened */
    uint64_t parameter_frame; /* where .param variables of the scope began */
} ptx_scope;

typedef struct ptx_pending { /* a label named before the end of its scope */
    ptx_name *name;
    uint64_t *operand; /* one of the two is set */
    uint32_t *list;
    ptx_token where;
} ptx_pending;

typedef struct ptx_inlined { /* a .loc whose function_name is known once .debug_str has been read */
    ptx_name *label;
    uint64_t offset;
    size_t location;
} ptx_inlined;

/* ---- scratch lists: grown on the heap, copied to the arena when they are complete ------------ */

typedef struct ptx_list {
    void *items;
    size_t count, capacity, item;
} ptx_list;

/* ---- the parser ------------------------------------------------------------------------------ */

typedef struct ptx_parser {
    ptx_lexer lexer;
    ptx_token token; /* the current one, not yet taken */
    ptx_module *module;
    ptx_arena *arena;
    ptx_error *error;
    jmp_buf failed;

    ptx_name **names; /* open hash */
    size_t name_count, name_slots;
    ptx_scope scopes[PTX_MAX_DEPTH];
    uint32_t depth;     /* of the innermost scope; 0: the module's */
    uint32_t nesting;   /* of expressions and initialisers */
    bool known_version; /* .version is not newer than the tables: forms that they lack are errors */

    ptx_function *function; /* the one whose body is being read, or NULL */
    bool inner_ranges;      /* a %r<10> stands inside braces: a register name may mean different things */
    uint32_t location;      /* of the next instruction */
    uint32_t serial;        /* counts bodies */

    ptx_list variables, functions, files, locations, mnemonics;                                   /* of the module */
    ptx_list registers, body_variables, instructions, labels, targets, prototypes, callees, used; /* of the body */
    ptx_list pending;
    ptx_list bytes, relocations;            /* of an initialiser */
    ptx_list operands;                      /* of an instruction, and of vectors inside it */
    ptx_token operand_at[PTX_MAX_OPERANDS]; /* where each operand of the instruction begins */
    ptx_list inlined;                       /* location.c */
} ptx_parser;

#define PTX_ITEM(list, type, index) (((type *)(list).items)[index])

/* parser.c */
_Noreturn void ptx_fail(ptx_parser *parser, const ptx_token *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void ptx_fail_memory(ptx_parser *parser);
void *ptx_take(ptx_parser *parser, size_t size);
void *ptx_push(ptx_parser *parser, ptx_list *list); /* a zeroed item at the end; valid until the next push */
void *ptx_copy_list(ptx_parser *parser, const ptx_list *list, size_t first); /* items [first, count), in the arena */
const char *ptx_text(ptx_parser *parser, const char *start, size_t length);

void ptx_advance(ptx_parser *parser);
bool ptx_at_mark(const ptx_parser *parser, unsigned mark);
bool ptx_at_word(const ptx_parser *parser, const char *word); /* without its dot */
bool ptx_take_mark(ptx_parser *parser, unsigned mark);        /* takes it where it stands here */
bool ptx_take_word(ptx_parser *parser, const char *word);
void ptx_expect(ptx_parser *parser, unsigned mark);
ptx_token ptx_expect_name(ptx_parser *parser, const char *what);
uint32_t ptx_expect_count(ptx_parser *parser, const char *what); /* a plain integer of at most 32 bits */
void ptx_enter(ptx_parser *parser);                              /* bounds recursion */
void ptx_leave(ptx_parser *parser);
void ptx_skip_statement(ptx_parser *parser); /* up to and with the next ';' outside braces */

/* symbols.c */
ptx_name *ptx_intern(ptx_parser *parser, const char *text, size_t length);
ptx_symbol *ptx_declare(ptx_parser *parser, const ptx_token *token, ptx_symbol_kind kind, uint32_t depth);
ptx_symbol *ptx_lookup(ptx_parser *parser, const ptx_token *token); /* NULL: unknown */
void ptx_open_scope(ptx_parser *parser, const ptx_token *where);
void ptx_close_scope(ptx_parser *parser);
void ptx_define_label(ptx_parser *parser, const ptx_token *token);
void ptx_refer_to_label(ptx_parser *parser, const ptx_token *token, uint64_t *operand, uint32_t *list);
uint32_t ptx_register_number(ptx_parser *parser, ptx_symbol *symbol); /* of the first component */

/* constant.c */
typedef struct ptx_constant {
    enum { PTX_SIGNED_CONSTANT, PTX_UNSIGNED_CONSTANT, PTX_SINGLE_CONSTANT, PTX_DOUBLE_CONSTANT } kind;
    uint64_t bits;
} ptx_constant;
ptx_constant ptx_parse_constant(ptx_parser *parser);
int64_t ptx_parse_integer(ptx_parser *parser); /* a constant that must be an integer */
bool ptx_starts_constant(const ptx_parser *parser);
/* False: a constant of this kind is not allowed for the type. */
bool ptx_convert_constant(ptx_constant constant, ptx_type type, uint64_t *bits);

/* declaration.c, initialiser.c */
bool ptx_at_space(const ptx_parser *parser, ptx_space *space);     /* .reg .global .shared ... */
void ptx_parse_variables(ptx_parser *parser, ptx_linkage linkage); /* at the space; up to and with ';' */
ptx_variable *ptx_parse_parameter(ptx_parser *parser, ptx_token *name);
void ptx_parse_initialiser(ptx_parser *parser, ptx_variable *variable, const uint64_t *dimensions, unsigned rank);
/* Gives the variable its offset, at the end of a frame. */
void ptx_place(ptx_parser *parser, uint64_t *frame, uint32_t *frame_align, ptx_variable *variable);

/* function.c */
void ptx_parse_function(ptx_parser *parser, ptx_linkage linkage); /* at .entry or .func */
void ptx_parse_prototype(ptx_parser *parser, const ptx_token *name);
void ptx_note_variable(ptx_parser *parser, ptx_symbol *symbol); /* the body names it: function->used */
void ptx_note_call(ptx_parser *parser, ptx_symbol *symbol);     /* function->callees */

/* instruction.c, operand.c, mnemonic.c, check.c */
void ptx_parse_instruction(ptx_parser *parser);
ptx_operand ptx_parse_operand(ptx_parser *parser);
ptx_operand ptx_register_operand(ptx_parser *parser, ptx_symbol *symbol);
ptx_mnemonic *ptx_find_mnemonic(ptx_parser *parser, const char *spelling, size_t length);
void ptx_check_operands(ptx_parser *parser, ptx_instruction *instruction, const ptx_token *where);

/* location.c */
void ptx_parse_file(ptx_parser *parser);
void ptx_parse_loc(ptx_parser *parser);
void ptx_parse_section(ptx_parser *parser);
void ptx_finish_locations(ptx_parser *parser);

/* cfg.c: false: out of memory */
bool ptx_build_blocks(ptx_arena *arena, ptx_function *function);

/* ---- forms ----------------------------------------------------------------------------------- */

/* What one operand may be; made from the words of forms.def, types of the mnemonic put in. */
typedef struct ptx_slot {
    char role;               /* see forms.def */
    uint8_t type;            /* ptx_type, or one of: */
#define PTX_ADDRESS_TYPE 254 /* a 32 or 64-bit integer, as the register is */
#define PTX_OWN_TYPE     255 /* the register's own */
    uint16_t vector;         /* elements that it must have; 0: any number, 1: a scalar */
    bool wider;              /* a register may be wider than the type */
    bool pair, pair_required;
    bool optional;
} ptx_slot;

typedef struct ptx_form {
    const struct ptx_form *next; /* another form that the same mnemonic fits, with other operands */
    uint8_t count;
    bool any; /* operands are not checked */
    ptx_slot slots[];
} ptx_form;

#endif
