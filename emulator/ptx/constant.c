/* Constant expressions: C's operators over 64-bit integers and doubles. */
#include "parser.h"

#include <float.h>
#include <string.h>

static ptx_constant integer_of(uint64_t bits, bool is_unsigned)
{
    return (ptx_constant){is_unsigned ? PTX_UNSIGNED_CONSTANT : PTX_SIGNED_CONSTANT, bits};
}

static bool is_float(ptx_constant constant)
{
    return constant.kind == PTX_SINGLE_CONSTANT || constant.kind == PTX_DOUBLE_CONSTANT;
}

static double value_of(ptx_constant constant)
{
    double value;
    if (constant.kind == PTX_SINGLE_CONSTANT) {
        const uint32_t bits = (uint32_t)constant.bits;
        float single;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    }
    memcpy(&value, &constant.bits, sizeof value);
    return value;
}

static ptx_constant float_of(double value)
{
    ptx_constant constant = {PTX_DOUBLE_CONSTANT, 0};
    memcpy(&constant.bits, &value, sizeof value);
    return constant;
}

static bool is_true(ptx_constant constant)
{
    return is_float(constant) ? value_of(constant) != 0.0 : constant.bits != 0;
}

/* ---- operators ------------------------------------------------------------------------------- */

enum {
    SHIFT_LEFT = '<' << 8 | '<',
    SHIFT_RIGHT = '>' << 8 | '>',
    LESS_EQUAL = '<' << 8 | '=',
    GREATER_EQUAL = '>' << 8 | '=',
    EQUAL = '=' << 8 | '=',
    NOT_EQUAL = '!' << 8 | '=',
    BOTH = '&' << 8 | '&',
    EITHER = '|' << 8 | '|'
};

static int precedence(unsigned mark)
{
    switch (mark) {
    case '*':
    case '/':
    case '%':
        return 10;
    case '+':
    case '-':
        return 9;
    case SHIFT_LEFT:
    case SHIFT_RIGHT:
        return 8;
    case '<':
    case '>':
    case LESS_EQUAL:
    case GREATER_EQUAL:
        return 7;
    case EQUAL:
    case NOT_EQUAL:
        return 6;
    case '&':
        return 5;
    case '^':
        return 4;
    case '|':
        return 3;
    case BOTH:
        return 2;
    case EITHER:
        return 1;
    default:
        return 0;
    }
}

static ptx_constant divide(ptx_parser *parser, const ptx_token *where, uint64_t a, uint64_t b, bool is_unsigned)
{
    if (b == 0)
        ptx_fail(parser, where, "division by zero");
    const bool remainder = where->mark == '%';
    if (is_unsigned)
        return integer_of(remainder ? a % b : a / b, true);
    if (b == UINT64_MAX) /* by -1: the one quotient that does not fit wraps */
        return integer_of(remainder ? 0 : 0 - a, false);
    const int64_t quotient = (int64_t)a / (int64_t)b, rest = (int64_t)a % (int64_t)b;
    return integer_of((uint64_t)(remainder ? rest : quotient), false);
}

static ptx_constant shift(uint64_t a, uint64_t count, unsigned mark, bool is_unsigned)
{
    const bool negative = !is_unsigned && a >> 63 != 0;
    if (count > 63)
        return integer_of(mark == SHIFT_RIGHT && negative ? UINT64_MAX : 0, is_unsigned);
    if (mark == SHIFT_LEFT)
        return integer_of(a << count, is_unsigned);
    return integer_of(negative ? ~(~a >> count) : a >> count, is_unsigned);
}

static ptx_constant combine_integers(ptx_parser *parser, const ptx_token *op, ptx_constant left, ptx_constant right)
{
    const uint64_t a = left.bits, b = right.bits;
    const bool is_unsigned = left.kind == PTX_UNSIGNED_CONSTANT || right.kind == PTX_UNSIGNED_CONSTANT;
    const bool less = is_unsigned ? a < b : (int64_t)a < (int64_t)b;
    switch (op->mark) {
    case '*':
        return integer_of(a * b, is_unsigned);
    case '/':
    case '%':
        return divide(parser, op, a, b, is_unsigned);
    case '+':
        return integer_of(a + b, is_unsigned);
    case '-':
        return integer_of(a - b, is_unsigned);
    case SHIFT_LEFT:
    case SHIFT_RIGHT:
        return shift(a, b, op->mark, left.kind == PTX_UNSIGNED_CONSTANT);
    case '<':
        return integer_of(less, false);
    case '>':
        return integer_of(!less && a != b, false);
    case LESS_EQUAL:
        return integer_of(less || a == b, false);
    case GREATER_EQUAL:
        return integer_of(!less, false);
    case EQUAL:
        return integer_of(a == b, false);
    case NOT_EQUAL:
        return integer_of(a != b, false);
    case '&':
        return integer_of(a & b, is_unsigned);
    case '^':
        return integer_of(a ^ b, is_unsigned);
    default:
        return integer_of(a | b, is_unsigned);
    }
}

static ptx_constant combine_floats(ptx_parser *parser, const ptx_token *op, double a, double b)
{
    switch (op->mark) {
    case '*':
        return float_of(a * b);
    case '/':
        return float_of(a / b);
    case '+':
        return float_of(a + b);
    case '-':
        return float_of(a - b);
    case '<':
        return integer_of(a < b, false);
    case '>':
        return integer_of(a > b, false);
    case LESS_EQUAL:
        return integer_of(a <= b, false);
    case GREATER_EQUAL:
        return integer_of(a >= b, false);
    case EQUAL:
        return integer_of(a == b, false);
    case NOT_EQUAL:
        return integer_of(a != b, false);
    default:
        ptx_fail(parser, op, "this operator takes integers");
    }
}

static ptx_constant combine(ptx_parser *parser, const ptx_token *op, ptx_constant left, ptx_constant right)
{
    if (op->mark == BOTH)
        return integer_of(is_true(left) && is_true(right), false);
    if (op->mark == EITHER)
        return integer_of(is_true(left) || is_true(right), false);
    if (is_float(left) != is_float(right))
        ptx_fail(parser, op, "an integer and a floating-point constant do not mix");
    if (is_float(left))
        return combine_floats(parser, op, value_of(left), value_of(right));
    return combine_integers(parser, op, left, right);
}

/* ---- grammar --------------------------------------------------------------------------------- */

static ptx_constant parse_conditional(ptx_parser *parser);

bool ptx_starts_constant(const ptx_parser *parser)
{
    const ptx_token *token = &parser->token;
    switch (token->kind) {
    case PTX_TOKEN_INTEGER:
    case PTX_TOKEN_SINGLE:
    case PTX_TOKEN_DOUBLE:
        return true;
    case PTX_TOKEN_WORD:
        return ptx_is_digit(token->start[1]);
    case PTX_TOKEN_NAME:
        return token->length == 7 && memcmp(token->start, "WARP_SZ", 7) == 0;
    case PTX_TOKEN_MARK:
        return token->mark == '(' || token->mark == '-' || token->mark == '+' || token->mark == '~' ||
               token->mark == '!';
    default:
        return false;
    }
}

static ptx_constant parse_primary(ptx_parser *parser)
{
    const ptx_token token = parser->token;
    if (!ptx_starts_constant(parser) || token.kind == PTX_TOKEN_MARK)
        ptx_fail(parser, &token, "expected a constant");
    if (token.kind == PTX_TOKEN_WORD) { /* .5 */
        parser->token = ptx_lexer_number_at(&parser->lexer, token.start);
        if (parser->token.kind != PTX_TOKEN_DOUBLE)
            ptx_fail(parser, &token, "expected a constant");
        return parse_primary(parser);
    }
    ptx_advance(parser);
    if (token.kind == PTX_TOKEN_NAME) /* WARP_SZ */
        return integer_of(32, false);
    if (token.kind == PTX_TOKEN_INTEGER)
        return integer_of(token.bits, token.is_unsigned);
    return (ptx_constant){token.kind == PTX_TOKEN_SINGLE ? PTX_SINGLE_CONSTANT : PTX_DOUBLE_CONSTANT, token.bits};
}

static ptx_constant parse_unary(ptx_parser *parser);

/* ( expression ), or a cast (.s64) and (.u64) */
static ptx_constant parse_bracket(ptx_parser *parser)
{
    const ptx_token where = parser->token;
    ptx_expect(parser, '(');
    const bool to_signed = ptx_at_word(parser, "s64"), to_unsigned = ptx_at_word(parser, "u64");
    if (!to_signed && !to_unsigned) {
        const ptx_constant inner = parse_conditional(parser);
        ptx_expect(parser, ')');
        return inner;
    }
    ptx_advance(parser);
    ptx_expect(parser, ')');
    const ptx_constant value = parse_unary(parser);
    if (is_float(value))
        ptx_fail(parser, &where, "only integers can be cast");
    return integer_of(value.bits, to_unsigned);
}

static ptx_constant parse_unary_here(ptx_parser *parser)
{
    const ptx_token op = parser->token;
    if (op.kind != PTX_TOKEN_MARK || !ptx_starts_constant(parser))
        return parse_primary(parser);
    if (op.mark == '(')
        return parse_bracket(parser);
    ptx_advance(parser);
    const ptx_constant value = parse_unary(parser);
    if (op.mark == '+')
        return value;
    if (op.mark == '!')
        return integer_of(!is_true(value), false);
    if (op.mark == '~' && is_float(value))
        ptx_fail(parser, &op, "this operator takes an integer");
    if (op.mark == '~')
        return integer_of(~value.bits, value.kind == PTX_UNSIGNED_CONSTANT);
    if (value.kind == PTX_SINGLE_CONSTANT)
        return (ptx_constant){PTX_SINGLE_CONSTANT, value.bits ^ UINT64_C(0x80000000)};
    if (value.kind == PTX_DOUBLE_CONSTANT)
        return (ptx_constant){PTX_DOUBLE_CONSTANT, value.bits ^ UINT64_C(0x8000000000000000)};
    return integer_of(0 - value.bits, value.kind == PTX_UNSIGNED_CONSTANT);
}

static ptx_constant parse_unary(ptx_parser *parser)
{
    ptx_enter(parser);
    const ptx_constant value = parse_unary_here(parser);
    ptx_leave(parser);
    return value;
}

static ptx_constant parse_binary(ptx_parser *parser, int lowest)
{
    ptx_constant left = parse_unary(parser);
    for (;;) {
        const ptx_token op = parser->token;
        const int strength = op.kind == PTX_TOKEN_MARK ? precedence(op.mark) : 0;
        if (strength < lowest)
            return left;
        ptx_advance(parser);
        left = combine(parser, &op, left, parse_binary(parser, strength + 1));
    }
}

static ptx_constant parse_conditional(ptx_parser *parser)
{
    ptx_enter(parser);
    ptx_constant value = parse_binary(parser, 1);
    if (ptx_take_mark(parser, '?')) {
        const ptx_constant yes = parse_conditional(parser);
        ptx_expect(parser, ':');
        const ptx_constant no = parse_conditional(parser);
        value = is_true(value) ? yes : no;
    }
    ptx_leave(parser);
    return value;
}

ptx_constant ptx_parse_constant(ptx_parser *parser)
{
    return parse_conditional(parser);
}

int64_t ptx_parse_integer(ptx_parser *parser)
{
    const ptx_token where = parser->token;
    const ptx_constant value = parse_conditional(parser);
    if (is_float(value))
        ptx_fail(parser, &where, "expected an integer");
    return (int64_t)value.bits;
}

/* ---- to the type of an operand --------------------------------------------------------------- */

static uint64_t double_to_single_bits(double value)
{
    float single;
    uint32_t bits;
    if (value > (double)FLT_MAX || value < -(double)FLT_MAX) {
        /* C leaves this conversion open; round to nearest even, as everywhere else here */
        const double limit = (double)FLT_MAX + 0x1p103;
        bits = value >= limit || value <= -limit ? 0x7F800000u : 0x7F7FFFFFu;
        return bits | (value < 0 ? 0x80000000u : 0u);
    }
    single = (float)value;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

static bool convert_float(ptx_constant constant, ptx_type type, uint64_t *bits)
{
    const bool single = constant.kind == PTX_SINGLE_CONSTANT;
    if (type == PTX_F32)
        *bits = single ? constant.bits : double_to_single_bits(value_of(constant));
    else if (type == PTX_F64)
        *bits = single ? float_of(value_of(constant)).bits : constant.bits;
    else if (type == (single ? PTX_B32 : PTX_B64))
        *bits = constant.bits;
    else
        return false;
    return true;
}

bool ptx_convert_constant(ptx_constant constant, ptx_type type, uint64_t *bits)
{
    const ptx_kind kind = ptx_type_kind(type);
    if (is_float(constant))
        return convert_float(constant, type, bits);
    if (kind == PTX_KIND_PREDICATE) {
        *bits = constant.bits != 0;
        return true;
    }
    if (kind != PTX_KIND_BITS && kind != PTX_KIND_UNSIGNED && kind != PTX_KIND_SIGNED)
        return false;
    const unsigned width = ptx_type_size(type) * 8;
    *bits = width >= 64 ? constant.bits : constant.bits & ((UINT64_C(1) << width) - 1);
    return true;
}
