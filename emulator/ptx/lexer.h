/* Text to tokens. The text need not be terminated; nothing past its end is read. */
#ifndef CUDA_CORE_PTX_LEXER_H
#define CUDA_CORE_PTX_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ptx_token_kind {
    PTX_TOKEN_END,
    PTX_TOKEN_NAME,    /* add, %r1, $L__BB0_1, _ */
    PTX_TOKEN_WORD,    /* .reg, .v4, .L2::128B; start points at the dot */
    PTX_TOKEN_INTEGER, /* bits; is_unsigned for U or where the value needs bit 63 */
    PTX_TOKEN_SINGLE,  /* 0f3F800000: bits */
    PTX_TOKEN_DOUBLE,  /* 0d..., 1.0, 1e3: bits */
    PTX_TOKEN_STRING,  /* start and length without the quotes */
    PTX_TOKEN_MARK,    /* mark: the character, or first << 8 | second for << >> <= >= == != && || */
    PTX_TOKEN_INVALID  /* what: why */
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    unsigned mark;
    uint32_t line;
    bool is_unsigned;
    size_t length;
    const char *start;
    uint64_t bits;
    const char *what;
} ptx_token;

typedef struct ptx_lexer {
    const char *text, *end; /* the whole input */
    const char *at;
    uint32_t line;
} ptx_lexer;

#define PTX_MARK2(first, second) ((unsigned)(first) << 8 | (unsigned)(second))

void ptx_lexer_start(ptx_lexer *lexer, const char *text, size_t length);
ptx_token ptx_lexer_next(ptx_lexer *lexer);
/* `.5` where a constant is wanted: reads the WORD token that starts at `start` again as a number. */
ptx_token ptx_lexer_number_at(ptx_lexer *lexer, const char *start);
/* Moves over blanks and comments; false: a comment that does not end. */
bool ptx_lexer_skip(ptx_lexer *lexer);

static inline bool ptx_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ptx_is_name(char c) /* may continue a name */
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || ptx_is_digit(c) || c == '_' || c == '$';
}

#endif
