#include "lexer.h"

#include <string.h>

#include "vocabulary.h"

void ptx_lexer_start(ptx_lexer *lexer, const char *text, size_t length)
{
    const char *zero = length == 0 ? NULL : memchr(text, 0, length);
    lexer->text = lexer->at = text;
    lexer->end = text + (zero == NULL ? length : (size_t)(zero - text));
    lexer->line = 1;
}

static char peek(const ptx_lexer *lexer, size_t ahead)
{
    return ahead < (size_t)(lexer->end - lexer->at) ? lexer->at[ahead] : '\0';
}

static void skip_line(ptx_lexer *lexer)
{
    while (lexer->at < lexer->end && *lexer->at != '\n')
        lexer->at++;
}

static bool skip_block(ptx_lexer *lexer)
{
    const ptx_lexer start = *lexer;
    for (lexer->at += 2; lexer->at < lexer->end; lexer->at++) {
        if (*lexer->at == '\n')
            lexer->line++;
        if (*lexer->at == '*' && peek(lexer, 1) == '/') {
            lexer->at += 2;
            return true;
        }
    }
    *lexer = start; /* for the error */
    return false;
}

bool ptx_lexer_skip(ptx_lexer *lexer)
{
    for (; lexer->at < lexer->end; lexer->at++) {
        const char c = *lexer->at;
        if (c == '\n') {
            lexer->line++;
        } else if (c == '/' && peek(lexer, 1) == '/') {
            skip_line(lexer);
            lexer->at--;
        } else if (c == '/' && peek(lexer, 1) == '*') {
            if (!skip_block(lexer))
                return false;
            lexer->at--;
        } else if (c == '#' || (c == '@' && peek(lexer, 1) == '@')) { /* line markers, old @@DWARF lines */
            skip_line(lexer);
            lexer->at--;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v') {
            break;
        }
    }
    return true;
}

static ptx_token invalid(ptx_token token, const char *what)
{
    token.kind = PTX_TOKEN_INVALID;
    token.what = what;
    return token;
}

static int digit_value(char c)
{
    if (ptx_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* Digits of `base` from lexer->at on; false where there is none or the value passes 64 bits. */
static bool read_digits(ptx_lexer *lexer, unsigned base, uint64_t *value)
{
    const char *start = lexer->at;
    *value = 0;
    for (; lexer->at < lexer->end; lexer->at++) {
        const int digit = digit_value(*lexer->at);
        if (digit >= (int)base)
            break;
        if (*value > (UINT64_MAX - (uint64_t)digit) / base)
            return false;
        *value = *value * base + (uint64_t)digit;
    }
    return lexer->at > start;
}

/* 0f and 0d with exactly 8 or 16 hexadecimal digits */
static ptx_token float_bits(ptx_lexer *lexer, ptx_token token)
{
    const bool is_double = (peek(lexer, 1) | 0x20) == 'd';
    lexer->at += 2;
    const char *start = lexer->at;
    if (!read_digits(lexer, 16, &token.bits) || lexer->at - start != (is_double ? 16 : 8))
        return invalid(token, is_double ? "0d takes 16 hexadecimal digits" : "0f takes 8 hexadecimal digits");
    token.kind = is_double ? PTX_TOKEN_DOUBLE : PTX_TOKEN_SINGLE;
    return token;
}

static ptx_token decimal_float(ptx_lexer *lexer, ptx_token token)
{
    char text[320];
    const char *start = lexer->at;
    while (ptx_is_digit(peek(lexer, 0)))
        lexer->at++;
    if (peek(lexer, 0) == '.')
        lexer->at++;
    while (ptx_is_digit(peek(lexer, 0)))
        lexer->at++;
    if ((peek(lexer, 0) | 0x20) == 'e') {
        lexer->at++;
        if (peek(lexer, 0) == '+' || peek(lexer, 0) == '-')
            lexer->at++;
        while (ptx_is_digit(peek(lexer, 0)))
            lexer->at++;
    }
    const size_t length = (size_t)(lexer->at - start);
    double value;
    if (length >= sizeof text)
        return invalid(token, "number is too long");
    memcpy(text, start, length);
    text[length] = '\0';
    if (!ptx_text_to_double(text, &value))
        return invalid(token, "malformed number");
    memcpy(&token.bits, &value, sizeof value);
    token.kind = PTX_TOKEN_DOUBLE;
    return token;
}

static ptx_token integer(ptx_lexer *lexer, ptx_token token)
{
    unsigned base = 10;
    if (peek(lexer, 0) == '0') {
        const char second = (char)(peek(lexer, 1) | 0x20);
        base = second == 'x' ? 16 : second == 'b' ? 2 : 8;
        lexer->at += base == 8 ? 0 : 2;
    }
    if (!read_digits(lexer, base, &token.bits))
        return invalid(token, "malformed number, or one of more than 64 bits");
    token.kind = PTX_TOKEN_INTEGER;
    token.is_unsigned = token.bits >> 63 != 0;
    if ((peek(lexer, 0) | 0x20) == 'u') {
        token.is_unsigned = true;
        lexer->at++;
    }
    return token;
}

static bool looks_float(const ptx_lexer *lexer)
{
    size_t ahead = 0;
    while (ptx_is_digit(peek(lexer, ahead)))
        ahead++;
    const char next = peek(lexer, ahead);
    return next == '.' || (next | 0x20) == 'e';
}

static ptx_token number(ptx_lexer *lexer, ptx_token token)
{
    const char second = (char)(peek(lexer, 1) | 0x20);
    if (peek(lexer, 0) == '0' && (second == 'f' || second == 'd'))
        token = float_bits(lexer, token);
    else if (looks_float(lexer))
        token = decimal_float(lexer, token);
    else
        token = integer(lexer, token);
    token.length = (size_t)(lexer->at - token.start);
    if (token.kind != PTX_TOKEN_INVALID && ptx_is_name(peek(lexer, 0)))
        return invalid(token, "malformed number");
    return token;
}

ptx_token ptx_lexer_number_at(ptx_lexer *lexer, const char *start)
{
    ptx_token token = {.start = start, .line = lexer->line};
    lexer->at = start;
    return number(lexer, token);
}

static ptx_token word(ptx_lexer *lexer, ptx_token token)
{
    token.kind = PTX_TOKEN_WORD;
    lexer->at++;
    for (;;) {
        while (ptx_is_name(peek(lexer, 0)))
            lexer->at++;
        if (peek(lexer, 0) != ':' || peek(lexer, 1) != ':' || !ptx_is_name(peek(lexer, 2)))
            break;
        lexer->at += 2;
    }
    token.length = (size_t)(lexer->at - token.start);
    return token;
}

static ptx_token string(ptx_lexer *lexer, ptx_token token)
{
    token.kind = PTX_TOKEN_STRING;
    token.start = ++lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n')
        lexer->at += *lexer->at == '\\' && peek(lexer, 1) != '\0' && peek(lexer, 1) != '\n' ? 2 : 1;
    if (peek(lexer, 0) != '"')
        return invalid(token, "string without an end");
    token.length = (size_t)(lexer->at++ - token.start);
    return token;
}

static ptx_token mark(ptx_lexer *lexer, ptx_token token)
{
    const char c = peek(lexer, 0), next = peek(lexer, 1);
    const bool two = ((c == '<' || c == '>') && (next == c || next == '=')) ||
                     ((c == '=' || c == '!') && next == '=') || ((c == '&' || c == '|') && next == c);
    if (strchr("!%&()*+,-/:;<=>?@[]^{|}~", c) == NULL)
        return invalid(token, "unexpected character");
    token.kind = PTX_TOKEN_MARK;
    token.mark = two ? PTX_MARK2(c, next) : (unsigned char)c;
    token.length = two ? 2 : 1;
    lexer->at += token.length;
    return token;
}

ptx_token ptx_lexer_next(ptx_lexer *lexer)
{
    const bool skipped = ptx_lexer_skip(lexer);
    ptx_token token = {.start = lexer->at, .line = lexer->line};
    if (!skipped)
        return invalid(token, "comment without an end");
    if (lexer->at >= lexer->end)
        return token; /* END */
    const char c = *lexer->at, next = peek(lexer, 1);
    if (ptx_is_digit(c))
        return number(lexer, token);
    if (ptx_is_name(c) || (c == '%' && ptx_is_name(next) && !ptx_is_digit(next))) {
        token.kind = PTX_TOKEN_NAME;
        do
            lexer->at++;
        while (ptx_is_name(peek(lexer, 0)));
        token.length = (size_t)(lexer->at - token.start);
        return token;
    }
    if (c == '.' && ptx_is_name(next))
        return word(lexer, token);
    if (c == '"')
        return string(lexer, token);
    return mark(lexer, token);
}
