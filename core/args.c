/* One argument into the bytes of one parameter. A value that the parameter cannot hold is refused, never cut. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static const char *describe(const cc_parameter *parameter, char text[64])
{
    static const char *const kinds[] = {
        [CC_TYPE_UNKNOWN] = "parameter", [CC_TYPE_INTEGER] = "integer", [CC_TYPE_POINTER] = "pointer",
        [CC_TYPE_FLOAT] = "float",       [CC_TYPE_BYTES] = "struct",
    };
    const char *article = parameter->size == 8 || parameter->size == 11 || parameter->size == 18 ? "an" : "a";
    snprintf(text, 64, "%s %u-byte %s", article, (unsigned)parameter->size, kinds[parameter->type]);
    return text;
}

static int wrong_type(const cc_parameter *parameter, const char *given, const char *advice, cc_error *error)
{
    char text[64];
    return cc__fail(error, CC_WRONG_TYPE, "expects %s, got %s%s", describe(parameter, text), given, advice);
}

static const char STRUCT_ADVICE[] = ": pass a NumPy scalar, a ctypes structure or bytes of that size";

/* ---- integers --------------------------------------------------------------------------------------------------- */

static int store_double(const cc_parameter *parameter, double value, void *slot, cc_error *error);

static bool takes_integer(const cc_parameter *parameter)
{
    bool has_size = parameter->size == 1 || parameter->size == 2 || parameter->size == 4 || parameter->size == 8;
    return has_size && (parameter->type == CC_TYPE_INTEGER || parameter->type == CC_TYPE_UNKNOWN ||
                        (parameter->type == CC_TYPE_POINTER && parameter->size == 8));
}

static void store_integer(const cc_parameter *parameter, uint64_t bits, void *slot)
{
    memcpy(slot, &bits, parameter->size); /* little-endian, like every CUDA host */
}

/* PTX does not keep whether an integer is signed: both ranges are let in. */
int cc_pack_signed(const cc_parameter *parameter, int64_t value, void *slot, cc_error *error)
{
    if (value >= 0)
        return cc_pack_unsigned(parameter, (uint64_t)value, slot, error);
    if (parameter->type == CC_TYPE_FLOAT)
        return store_double(parameter, (double)value, slot, error);
    if (!takes_integer(parameter))
        return wrong_type(parameter, "an int", parameter->type == CC_TYPE_BYTES ? STRUCT_ADVICE : "", error);
    if (parameter->type == CC_TYPE_POINTER)
        return cc__fail(error, CC_OUT_OF_RANGE, "expects a pointer, got the negative number %lld", (long long)value);
    unsigned bits = 8 * parameter->size;
    if (bits < 64 && value < -(INT64_C(1) << (bits - 1)))
        return cc__fail(error, CC_OUT_OF_RANGE, "%lld does not fit into a %u-byte integer (from %lld)",
                        (long long)value, (unsigned)parameter->size, (long long)-(INT64_C(1) << (bits - 1)));
    store_integer(parameter, (uint64_t)value, slot);
    return 0;
}

int cc_pack_unsigned(const cc_parameter *parameter, uint64_t value, void *slot, cc_error *error)
{
    if (parameter->type == CC_TYPE_FLOAT)
        return store_double(parameter, (double)value, slot, error);
    if (!takes_integer(parameter))
        return wrong_type(parameter, "an int", parameter->type == CC_TYPE_BYTES ? STRUCT_ADVICE : "", error);
    unsigned bits = 8 * parameter->size;
    if (bits < 64 && value >> bits)
        return cc__fail(error, CC_OUT_OF_RANGE, "%llu does not fit into a %u-byte integer (up to %llu)",
                        (unsigned long long)value, (unsigned)parameter->size,
                        (unsigned long long)((UINT64_C(1) << bits) - 1));
    store_integer(parameter, value, slot);
    return 0;
}

/* ---- floats ----------------------------------------------------------------------------------------------------- */

/* To the nearest half, ties to even, in one rounding. */
static uint16_t half_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00);
    double magnitude = fabs(value);
    if (magnitude >= 65520) /* halfway between the largest half and the next power of two */
        return (uint16_t)(sign | 0x7c00);
    int exponent = magnitude < 0x1p-14 ? -14 : ilogb(magnitude);
    /* In units of the last place; a carry into the exponent is what the addition below does. nearbyint rounds as the
     * mode says, which is to nearest even in every program that has not asked for another. */
    double units = nearbyint(ldexp(magnitude, 10 - exponent));
    unsigned whole = (unsigned)units;
    return (uint16_t)(sign | (whole < 1024 ? whole : (unsigned)(exponent + 14) * 1024 + whole));
}

static int overflow(const cc_parameter *parameter, double value, cc_error *error)
{
    return cc__fail(error, CC_OUT_OF_RANGE, "%.17g does not fit into a %u-byte float", value,
                    (unsigned)parameter->size);
}

static int store_double(const cc_parameter *parameter, double value, void *slot, cc_error *error)
{
    if (parameter->size == 8) {
        memcpy(slot, &value, 8);
        return 0;
    }
    if (parameter->size == 4) {
        /* Halfway between the largest float and 2^128: from there on it rounds to infinity. */
        if (isfinite(value) && fabs(value) >= 0x1.ffffffp127)
            return overflow(parameter, value, error);
        float narrow = (float)value;
        memcpy(slot, &narrow, 4);
        return 0;
    }
    uint16_t half = half_bits(value);
    if (isfinite(value) && (half & 0x7fff) == 0x7c00)
        return overflow(parameter, value, error);
    memcpy(slot, &half, 2);
    return 0;
}

int cc_pack_double(const cc_parameter *parameter, double value, void *slot, cc_error *error)
{
    bool by_size = parameter->type == CC_TYPE_UNKNOWN && (parameter->size == 4 || parameter->size == 8);
    if (parameter->type == CC_TYPE_FLOAT || by_size)
        return store_double(parameter, value, slot, error);
    const char *advice = "";
    if (parameter->type == CC_TYPE_INTEGER)
        advice = ": convert it with int()";
    else if (parameter->type == CC_TYPE_BYTES)
        advice = STRUCT_ADVICE; /* a half is 2 bytes in PTX: numpy.float16 says that it is meant */
    return wrong_type(parameter, "a float", advice, error);
}

int cc_pack_complex(const cc_parameter *parameter, double real, double imaginary, void *slot, cc_error *error)
{
    bool pair = parameter->type == CC_TYPE_BYTES || parameter->type == CC_TYPE_UNKNOWN;
    if (!pair || (parameter->size != 8 && parameter->size != 16))
        return wrong_type(parameter, "a complex number", "", error);
    cc_parameter half = {.size = parameter->size / 2, .type = CC_TYPE_FLOAT};
    unsigned char both[16];
    if (store_double(&half, real, both, error) || store_double(&half, imaginary, both + half.size, error))
        return -1;
    memcpy(slot, both, parameter->size);
    return 0;
}

/* ---- pointers and bits ------------------------------------------------------------------------------------------ */

int cc_pack_pointer(const cc_parameter *parameter, CUdeviceptr value, void *slot, cc_error *error)
{
    if (CC__UNLIKELY(parameter->size != sizeof value || parameter->type == CC_TYPE_FLOAT ||
                     parameter->type == CC_TYPE_BYTES))
        return wrong_type(parameter, "an 8-byte pointer", "", error);
    memcpy(slot, &value, sizeof value);
    return 0;
}

/* Bits of one kind into a parameter of another would be reinterpreted, which nobody means. */
static bool is_compatible(cc_type given, cc_type wanted)
{
    if (given == wanted || given == CC_TYPE_BYTES || given == CC_TYPE_UNKNOWN)
        return true;
    if (wanted == CC_TYPE_UNKNOWN || wanted == CC_TYPE_BYTES)
        return true;
    return given != CC_TYPE_FLOAT && wanted != CC_TYPE_FLOAT; /* integers and pointers */
}

int cc_pack_bits(const cc_parameter *parameter, cc_type type, const void *bits, size_t size, void *slot,
                 cc_error *error)
{
    if (CC__UNLIKELY(size != parameter->size || !is_compatible(type, parameter->type))) {
        char text[64];
        cc_parameter given = {.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size, .type = type};
        if (type == CC_TYPE_BYTES && parameter->type != CC_TYPE_BYTES)
            return cc__fail(error, CC_WRONG_TYPE, "expects %s, got %zu bytes", describe(parameter, text), size);
        char given_text[64];
        return wrong_type(parameter, describe(&given, given_text), "", error);
    }
    memcpy(slot, bits, size);
    return 0;
}
