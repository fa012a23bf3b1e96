/* f64 arithmetic. A NaN operand passes its payload on, quieted; which of several was measured: the second operand
 * before the third, and that before the first, but a quotient's first. A NaN made anew is EM_F64_NAN. */
#include "op.h"
#include "values.h"

EM_INLINE double quieted(double nan)
{
    return em_double_of(em_bits_of_double(nan) | 0x0008000000000000ull);
}

EM_INLINE double nan_of_one(double a, double result)
{
    const double nan = a == a ? em_double_of(EM_F64_NAN) : quieted(a);
    return result == result ? result : nan;
}

EM_INLINE double nan_of_two(double a, double b, double result)
{
    const double first = a == a ? em_double_of(EM_F64_NAN) : quieted(a);
    const double nan = b == b ? first : quieted(b);
    return result == result ? result : nan;
}

EM_INLINE double nan_of_three(double a, double b, double c, double result)
{
    const double first = a == a ? em_double_of(EM_F64_NAN) : quieted(a);
    const double third = c == c ? first : quieted(c);
    const double nan = b == b ? third : quieted(b);
    return result == result ? result : nan;
}

#define TWO(name, expression)                                                                                          \
    EM_BINARY(name##_rn, double, double, double, expression)                                                           \
    EM_BINARY_ROUNDED(name##_rz, EM_ROUND_ZERO, double, double, double, expression)                                    \
    EM_BINARY_ROUNDED(name##_rm, EM_ROUND_DOWN, double, double, double, expression)                                    \
    EM_BINARY_ROUNDED(name##_rp, EM_ROUND_UP, double, double, double, expression)
#define ONE(name, expression)                                                                                          \
    EM_UNARY(name##_rn, double, double, expression)                                                                    \
    EM_UNARY_ROUNDED(name##_rz, EM_ROUND_ZERO, double, double, expression)                                             \
    EM_UNARY_ROUNDED(name##_rm, EM_ROUND_DOWN, double, double, expression)                                             \
    EM_UNARY_ROUNDED(name##_rp, EM_ROUND_UP, double, double, expression)
#define THREE(name, expression)                                                                                        \
    EM_TERNARY(name##_rn, double, double, double, double, expression)                                                  \
    EM_TERNARY_ROUNDED(name##_rz, EM_ROUND_ZERO, double, double, double, double, expression)                           \
    EM_TERNARY_ROUNDED(name##_rm, EM_ROUND_DOWN, double, double, double, double, expression)                           \
    EM_TERNARY_ROUNDED(name##_rp, EM_ROUND_UP, double, double, double, double, expression)

TWO(add, nan_of_two(a, b, a + b))
TWO(sub, nan_of_two(a, b, a - b))
TWO(mul, nan_of_two(a, b, a *b))
TWO(div, nan_of_two(b, a, a / b))
ONE(rcp, nan_of_one(a, 1.0 / a))
ONE(sqrt, nan_of_one(a, __builtin_sqrt(a)))
THREE(fma, nan_of_three(a, b, c, __builtin_fma(a, b, c)))

/* ---- signs and extremes ----------------------------------------------------------------------------------------- */

#define SIGN 0x8000000000000000ull
EM_UNARY(abs_f64, double, double, nan_of_one(a, em_double_of(em_bits_of_double(a) & ~SIGN)))
EM_UNARY(neg_f64, double, double, nan_of_one(a, em_double_of(em_bits_of_double(a) ^ SIGN)))
EM_BINARY(copysign_f64, uint64_t, uint64_t, uint64_t, (a & SIGN) | (b & ~SIGN))

/* -0 is below +0, so equal operands join their signs. A NaN gives way to a number. */
EM_INLINE double lesser(double a, double b)
{
    const double equal = em_double_of(em_bits_of_double(a) | em_bits_of_double(b));
    const double less = a < b ? a : b;
    const double ordered = a == b ? equal : less;
    return nan_of_two(a, b, b == b ? (a == a ? ordered : b) : a);
}

EM_INLINE double greater(double a, double b)
{
    const double equal = em_double_of(em_bits_of_double(a) & em_bits_of_double(b));
    const double more = a > b ? a : b;
    const double ordered = a == b ? equal : more;
    return nan_of_two(a, b, b == b ? (a == a ? ordered : b) : a);
}

EM_BINARY(min_f64, double, double, double, lesser(a, b))
EM_BINARY(max_f64, double, double, double, greater(a, b))

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define F64 EM_TYPES(F64)
#define FORMS_ROUNDED(name, opcode)                                                                                    \
    EM_FORM(name##_rn, opcode, F64, EM_MODIFIERS(RN)), EM_FORM(name##_rz, opcode, F64, EM_MODIFIERS(RZ)),              \
        EM_FORM(name##_rm, opcode, F64, EM_MODIFIERS(RM)), EM_FORM(name##_rp, opcode, F64, EM_MODIFIERS(RP))

const em_form EM_ISA_NAME(em_forms_double)[] = {
    FORMS_ROUNDED(add, ADD),
    EM_FORM(add_rn, ADD, F64, EM_NONE),
    FORMS_ROUNDED(sub, SUB),
    EM_FORM(sub_rn, SUB, F64, EM_NONE),
    FORMS_ROUNDED(mul, MUL),
    EM_FORM(mul_rn, MUL, F64, EM_NONE),
    FORMS_ROUNDED(fma, FMA),
    FORMS_ROUNDED(fma, MAD),
    FORMS_ROUNDED(div, DIV),
    FORMS_ROUNDED(rcp, RCP),
    FORMS_ROUNDED(sqrt, SQRT),
    EM_FORM(abs_f64, ABS, F64, EM_NONE),
    EM_FORM(neg_f64, NEG, F64, EM_NONE),
    EM_FORM(copysign_f64, COPYSIGN, F64, EM_NONE),
    EM_FORM(min_f64, MIN, F64, EM_NONE),
    EM_FORM(max_f64, MAX, F64, EM_NONE),
    EM_FORM_END,
};
