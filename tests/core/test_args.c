/* One argument into one parameter: what is let in, as which bits, and what is refused with which words. */
#include "check.h"

#include <float.h>
#include <math.h>

static cc_error error;
static unsigned char slot[32];

static cc_parameter parameter(cc_type type, uint32_t size)
{
    memset(slot, 0xee, sizeof slot);
    return (cc_parameter){.size = size, .align = size, .type = type};
}

/* The slot holds `size` bytes of `bits` and nothing behind them was touched. */
static void check_slot(const void *bits, size_t size)
{
    CHECK(memcmp(slot, bits, size) == 0);
    CHECK_INT(slot[size], 0xee);
}

static void test_integers(void)
{
    static const struct {
        uint32_t size;
        int64_t low;
        uint64_t high;
    } ranges[] = {{1, -128, 255}, {2, -32768, 65535}, {4, INT32_MIN, UINT32_MAX}, {8, INT64_MIN, UINT64_MAX}};
    for (size_t i = 0; i < 4; i++) {
        uint32_t size = ranges[i].size;
        cc_parameter wanted = parameter(CC_TYPE_INTEGER, size);
        MUST(cc_pack_signed(&wanted, ranges[i].low, slot, &error));
        check_slot(&ranges[i].low, size);
        MUST(cc_pack_unsigned(&wanted, ranges[i].high, slot, &error));
        check_slot(&ranges[i].high, size);
        MUST(cc_pack_signed(&wanted, 0, slot, &error));
        check_slot("\0\0\0\0\0\0\0", size);
        if (size == 8)
            continue;
        REFUSED(cc_pack_signed(&wanted, ranges[i].low - 1, slot, &error), CC_OUT_OF_RANGE, "does not fit into a");
        REFUSED(cc_pack_unsigned(&wanted, ranges[i].high + 1, slot, &error), CC_OUT_OF_RANGE, "does not fit into a");
    }
    cc_parameter unknown = parameter(CC_TYPE_UNKNOWN, 4);
    MUST(cc_pack_signed(&unknown, -1, slot, &error));
    check_slot("\377\377\377\377", 4);
    cc_parameter strange = parameter(CC_TYPE_UNKNOWN, 12);
    REFUSED(cc_pack_signed(&strange, 1, slot, &error), CC_WRONG_TYPE, "expects a 12-byte parameter, got an int");
}

static void test_integer_for_others(void)
{
    double wide = 1e9, negative = -3;
    float narrow = 7;
    cc_parameter f64 = parameter(CC_TYPE_FLOAT, 8), f32 = parameter(CC_TYPE_FLOAT, 4);
    MUST(cc_pack_signed(&f64, 1000000000, slot, &error));
    check_slot(&wide, 8);
    parameter(CC_TYPE_FLOAT, 8);
    MUST(cc_pack_signed(&f64, -3, slot, &error));
    check_slot(&negative, 8);
    parameter(CC_TYPE_FLOAT, 4);
    MUST(cc_pack_unsigned(&f32, 7, slot, &error));
    check_slot(&narrow, 4);
    MUST(cc_pack_unsigned(&f32, UINT64_MAX, slot, &error));

    cc_parameter pointer = parameter(CC_TYPE_POINTER, 8);
    MUST(cc_pack_unsigned(&pointer, 0x7f00deadbeef, slot, &error));
    check_slot("\xef\xbe\xad\xde\x00\x7f\0\0", 8);
    REFUSED(cc_pack_signed(&pointer, -1, slot, &error), CC_OUT_OF_RANGE, "negative number -1");
    cc_parameter bytes = parameter(CC_TYPE_BYTES, 2);
    REFUSED(cc_pack_signed(&bytes, 1, slot, &error), CC_WRONG_TYPE,
            "expects a 2-byte struct, got an int: pass a NumPy");
}

static void test_doubles(void)
{
    cc_parameter f32 = parameter(CC_TYPE_FLOAT, 4), f64 = parameter(CC_TYPE_FLOAT, 8);
    float third = (float)(1.0 / 3), largest = FLT_MAX, infinity = INFINITY;
    double exact = 1.0 / 3;
    MUST(cc_pack_double(&f32, 1.0 / 3, slot, &error));
    check_slot(&third, 4);
    MUST(cc_pack_double(&f32, FLT_MAX * (1 + 0x1p-26), slot, &error)); /* rounds down to the largest */
    check_slot(&largest, 4);
    MUST(cc_pack_double(&f32, INFINITY, slot, &error));
    check_slot(&infinity, 4);
    MUST(cc_pack_double(&f32, NAN, slot, &error));
    float nan;
    memcpy(&nan, slot, 4);
    CHECK(isnan(nan));
    REFUSED(cc_pack_double(&f32, 1e39, slot, &error), CC_OUT_OF_RANGE,
            "9.9999999999999994e+38 does not fit into a 4-byte float");
    REFUSED(cc_pack_double(&f32, -0x1.ffffffp127, slot, &error), CC_OUT_OF_RANGE, "does not fit");
    parameter(CC_TYPE_FLOAT, 8);
    MUST(cc_pack_double(&f64, 1.0 / 3, slot, &error));
    check_slot(&exact, 8);

    cc_parameter unknown = parameter(CC_TYPE_UNKNOWN, 4);
    MUST(cc_pack_double(&unknown, 1.0 / 3, slot, &error));
    check_slot(&third, 4);
    unknown = parameter(CC_TYPE_UNKNOWN, 2);
    REFUSED(cc_pack_double(&unknown, 1, slot, &error), CC_WRONG_TYPE, "expects a 2-byte parameter, got a float");
    cc_parameter i32 = parameter(CC_TYPE_INTEGER, 4), pointer = parameter(CC_TYPE_POINTER, 8);
    REFUSED(cc_pack_double(&i32, 1, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte integer, got a float: convert it with int()");
    REFUSED(cc_pack_double(&pointer, 1, slot, &error), CC_WRONG_TYPE, "expects an 8-byte pointer, got a float");
}

static void check_half(double value, uint16_t bits)
{
    cc_parameter f16 = parameter(CC_TYPE_FLOAT, 2);
    MUST(cc_pack_double(&f16, value, slot, &error));
    check_slot(&bits, 2);
}

static void test_halves(void)
{
    check_half(0.0, 0x0000);
    check_half(-0.0, 0x8000);
    check_half(1.5, 0x3e00);
    check_half(-2, 0xc000);
    check_half(65504, 0x7bff);
    check_half(65519.99, 0x7bff);
    check_half(0x1p-14, 0x0400);     /* the smallest normal one */
    check_half(0x1.ff8p-15, 0x03ff); /* the largest subnormal one */
    check_half(0x1.ffcp-15, 0x0400); /* a tie that carries into the exponent */
    check_half(0x1p-24, 0x0001);
    check_half(0x1p-25, 0x0000);             /* ties to even */
    check_half(0x1.8p-24, 0x0002);           /* ties to even */
    check_half(0x1.002p0, 0x3c00);           /* ties to even */
    check_half(0x1.006p0, 0x3c02);           /* ties to even */
    check_half(0x1.0020000000001p0, 0x3c01); /* just above: rounded once, not by way of a float */
    check_half(0x1.fffp0, 0x4000);           /* carries */
    check_half(INFINITY, 0x7c00);
    check_half(-INFINITY, 0xfc00);
    check_half(NAN, 0x7e00);
    cc_parameter f16 = parameter(CC_TYPE_FLOAT, 2);
    REFUSED(cc_pack_double(&f16, 65520, slot, &error), CC_OUT_OF_RANGE, "65520 does not fit into a 2-byte float");
}

static void test_complex(void)
{
    float narrow[2] = {1.5f, -2};
    double wide[2] = {1.5, -2};
    cc_parameter eight = parameter(CC_TYPE_BYTES, 8);
    MUST(cc_pack_complex(&eight, 1.5, -2, slot, &error));
    check_slot(narrow, 8);
    cc_parameter sixteen = parameter(CC_TYPE_BYTES, 16);
    MUST(cc_pack_complex(&sixteen, 1.5, -2, slot, &error));
    check_slot(wide, 16);
    sixteen = parameter(CC_TYPE_UNKNOWN, 16);
    MUST(cc_pack_complex(&sixteen, 1.5, -2, slot, &error));
    check_slot(wide, 16);
    cc_parameter f64 = parameter(CC_TYPE_FLOAT, 8), twelve = parameter(CC_TYPE_BYTES, 12);
    REFUSED(cc_pack_complex(&f64, 1, 1, slot, &error), CC_WRONG_TYPE, "expects an 8-byte float, got a complex number");
    REFUSED(cc_pack_complex(&twelve, 1, 1, slot, &error), CC_WRONG_TYPE, "expects a 12-byte struct");
    REFUSED(cc_pack_complex(&eight, 1, 1e300, slot, &error), CC_OUT_OF_RANGE, "does not fit into a 4-byte float");
}

static void test_pointers(void)
{
    CUdeviceptr address = 0x123456789abc;
    static const cc_type good[] = {CC_TYPE_POINTER, CC_TYPE_INTEGER, CC_TYPE_UNKNOWN};
    for (size_t i = 0; i < 3; i++) {
        cc_parameter wanted = parameter(good[i], 8);
        MUST(cc_pack_pointer(&wanted, address, slot, &error));
        check_slot(&address, 8);
    }
    cc_parameter i32 = parameter(CC_TYPE_INTEGER, 4), f64 = parameter(CC_TYPE_FLOAT, 8),
                 f2 = parameter(CC_TYPE_BYTES, 8);
    REFUSED(cc_pack_pointer(&i32, address, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte integer, got an 8-byte pointer");
    REFUSED(cc_pack_pointer(&f64, address, slot, &error), CC_WRONG_TYPE,
            "expects an 8-byte float, got an 8-byte pointer");
    REFUSED(cc_pack_pointer(&f2, address, slot, &error), CC_WRONG_TYPE, "expects an 8-byte struct");
}

static void test_bits(void)
{
    uint16_t half = 0x3e00;
    double number = 1.5;
    int32_t integer = -5;
    cc_parameter f32 = parameter(CC_TYPE_FLOAT, 4), i32 = parameter(CC_TYPE_INTEGER, 4),
                 h = parameter(CC_TYPE_BYTES, 2);
    MUST(cc_pack_bits(&h, CC_TYPE_FLOAT, &half, 2, slot, &error)); /* numpy.float16 for a __half */
    check_slot(&half, 2);
    MUST(cc_pack_bits(&i32, CC_TYPE_INTEGER, &integer, 4, slot, &error));
    check_slot(&integer, 4);
    parameter(CC_TYPE_FLOAT, 4);
    MUST(cc_pack_bits(&f32, CC_TYPE_BYTES, "\1\2\3\4", 4, slot, &error));
    check_slot("\1\2\3\4", 4);
    REFUSED(cc_pack_bits(&f32, CC_TYPE_FLOAT, &number, 8, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte float, got an 8-byte float");
    REFUSED(cc_pack_bits(&f32, CC_TYPE_INTEGER, &integer, 4, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte float, got a 4-byte integer");
    REFUSED(cc_pack_bits(&i32, CC_TYPE_FLOAT, &integer, 4, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte integer, got a 4-byte float");
    REFUSED(cc_pack_bits(&i32, CC_TYPE_INTEGER, &number, 8, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte integer, got an 8-byte integer");
    REFUSED(cc_pack_bits(&f32, CC_TYPE_BYTES, "12345", 5, slot, &error), CC_WRONG_TYPE,
            "expects a 4-byte float, got 5 bytes");
    REFUSED(cc_pack_bits(&h, CC_TYPE_BYTES, "12345", 5, slot, &error), CC_WRONG_TYPE,
            "expects a 2-byte struct, got a 5-byte struct");
}

static const check_test tests[] = {
    TEST(test_integers), TEST(test_integer_for_others), TEST(test_doubles), TEST(test_halves),
    TEST(test_complex),  TEST(test_pointers),           TEST(test_bits)};
CHECK_MAIN(tests)
