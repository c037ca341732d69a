#include "base/half.h"
#include "check.h"
#include "sesame/unstable/tensor.h"

#include <math.h>

/* Value of a 16-bit float by definition. */
static double define(uint16_t h, int mant, int bias)
{
    int exp = (h & 0x7FFF) >> mant, frac = h & ((1 << mant) - 1);
    double x;
    if (exp == 2 * bias + 1)
        x = frac ? NAN : INFINITY;
    else if (exp == 0)
        x = ldexp(frac, 1 - bias - mant);
    else
        x = ldexp(frac + (1 << mant), exp - bias - mant);
    return h & 0x8000 ? -x : x;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static bool is_nan16(uint16_t h, int mant) { return (h & 0x7FFF) > ((0x7FFF >> mant) << mant); }

/* All 2^16 values to float and back; the midpoint of two neighbors rounds to even. */
static void check_16(int mant, int bias, float (*up)(uint16_t), uint16_t (*down)(float),
                     uint16_t (*down64)(double))
{
    long bad_up = 0, bad_down = 0, bad_tie = 0, bad_near = 0;
    uint16_t inf = (uint16_t)((2 * bias + 1) << mant);
    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t h = (uint16_t)i;
        float x = up(h);
        bad_up += !same(x, define(h, mant, bias));
        bool nan = is_nan16(h, mant);
        bad_down +=
            nan ? !is_nan16(down(x), mant) || !is_nan16(down64(x), mant) : down(x) != h || down64(x) != h;
        bad_down += nan && (down(x) & 0x8000) != (h & 0x8000);
        if ((h & 0x7FFF) >= inf) continue;
        /* Infinity is one step beyond the largest number. */
        double low = fabs(define(h, mant, bias)),
               step = define((uint16_t)((h & 0x7FFF) + 1), mant, bias) - low;
        if ((h & 0x7FFF) == inf - 1) step = low - define((uint16_t)((h & 0x7FFF) - 1), mant, bias);
        double sign = h & 0x8000 ? -1 : 1, mid = sign * (low + step / 2);
        uint16_t even = h & 1 ? (uint16_t)(h + 1) : h, next = (uint16_t)(h + 1);
        bad_tie += down64(mid) != even || ((double)(float)mid == mid && down((float)mid) != even);
        double below = nextafter(mid, 0), above = nextafter(mid, sign * INFINITY);
        bad_near += down64(below) != h || down64(above) != next;
        float fb = nextafterf((float)mid, 0), fa = nextafterf((float)mid, (float)sign * INFINITY);
        if ((double)(float)mid == mid) bad_near += down(fb) != h || down(fa) != next;
    }
    CHECK_MSG(!bad_up, "%ld", bad_up);
    CHECK_MSG(!bad_down, "%ld", bad_down);
    CHECK_MSG(!bad_tie, "%ld", bad_tie);
    CHECK_MSG(!bad_near, "%ld", bad_near);
}

static float f16_up(uint16_t h) { return ses_f16_to_f32(h); }
static float bf16_up(uint16_t h) { return ses_bf16_to_f32(h); }
static uint16_t bf16_down(float x) { return ses_f32_to_bf16(x); }

/* The loops over arrays agree with the conversion of one number, in every lane: all 2^16, at odd
 * addresses. */
static void check_arrays(ses_dtype type, float (*up)(uint16_t), uint16_t (*down)(float))
{
    enum { N = 0x10000 };
    static unsigned char half[2 * N + 1], wide[4 * N + 1], back[2 * N + 1];
    for (uint32_t i = 0; i < N; i++) memcpy(half + 1 + 2 * i, &(uint16_t){ (uint16_t)i }, 2);
    CHECK(ses_convert(wide + 1, SES_F32, half + 1, type, N, NULL) &&
          ses_convert(back + 1, type, wide + 1, SES_F32, N, NULL));
    long bad = 0;
    for (uint32_t i = 0; i < N; i++) {
        float x, want = up((uint16_t)i);
        uint16_t h, again = down(want);
        memcpy(&x, wide + 1 + 4 * i, sizeof x);
        memcpy(&h, back + 1 + 2 * i, sizeof h);
        bad += memcmp(&x, &want, sizeof x) != 0 || h != again;
    }
    CHECK_MSG(!bad, "%s: %ld", ses_dtype_name(type), bad);
}

/* Each pair of dtypes on numbers both can represent, at unaligned addresses. */
static void check_pairs(void)
{
    static const double values[] = { 0, 1, 2, 100, 127 };
    enum { N = SES_LEN(values) };
    for (int a = 0; a < SES_DTYPE_COUNT; a++)
        for (int b = 0; b < SES_DTYPE_COUNT; b++) {
            unsigned char from[8 * N + 1], to[8 * N + 1];
            double back[N];
            ses_err e = { 0 };
            CHECK(ses_convert(from + 1, (ses_dtype)a, values, SES_F64, N, &e));
            CHECK(ses_convert(to + 1, (ses_dtype)b, from + 1, (ses_dtype)a, N, &e));
            CHECK(ses_convert(back, SES_F64, to + 1, (ses_dtype)b, N, &e));
            bool truth = a == SES_BOOL || b == SES_BOOL, ok = true;
            for (int i = 0; i < N; i++) ok = ok && back[i] == (truth ? values[i] != 0 : values[i]);
            CHECK_MSG(ok, "%s to %s", ses_dtype_name((ses_dtype)a), ses_dtype_name((ses_dtype)b));
        }
}

typedef struct fit_case {
    ses_dtype to;
    double x;
    double want; /* NAN: does not fit */
} fit_case;

static const fit_case fits[] = {
    { SES_I8, 127.9, 127 },
    { SES_I8, -128.9, -128 },
    { SES_I8, 128, NAN },
    { SES_I8, -129, NAN },
    { SES_U8, 255.5, 255 },
    { SES_U8, -0.5, 0 },
    { SES_U8, -1, NAN },
    { SES_U8, 256, NAN },
    { SES_I16, 32767, 32767 },
    { SES_I16, 32768, NAN },
    { SES_I32, 2147483647., 2147483647. },
    { SES_I32, 2147483648., NAN },
    { SES_I32, -2147483648., -2147483648. },
    { SES_I64, -0x1p63, -0x1p63 },
    { SES_I64, 0x1p63, NAN },
    { SES_I64, NAN, NAN },
    { SES_I64, INFINITY, NAN },
    { SES_I64, 1e300, NAN },
    { SES_BOOL, 0.25, 1 },
    { SES_BOOL, -0.0, 0 },
    { SES_F32, 1e300, INFINITY },
    { SES_F16, 65519.99, 65504 },
    { SES_F16, 65520, INFINITY },
    { SES_F16, 0x1p-25, 0 },
    { SES_F16, 0x1.0001p-25, 0x1p-24 },
    { SES_BF16, 1e39, INFINITY },
    { SES_BF16, 5e-324, 0 },
    /* Rounding through float would round twice and give the wrong result. */
    { SES_F16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10 },
    { SES_BF16, 1 + 0x1p-8 - 0x1p-40, 1 },
};

static void check_fits(void)
{
    for (size_t i = 0; i < SES_LEN(fits); i++) {
        unsigned char out[8];
        double back = 0;
        ses_err e = { 0 };
        bool ok = ses_convert(out, fits[i].to, &fits[i].x, SES_F64, 1, &e);
        if (isnan(fits[i].want)) {
            char want[64];
            snprintf(want, sizeof want, "element 0 does not fit into %s", ses_dtype_name(fits[i].to));
            CHECK_STR(ok ? "fits" : e.msg, want);
            CHECK(e.code == SES_EARG);
            continue;
        }
        CHECK(ok && ses_convert(&back, SES_F64, out, fits[i].to, 1, &e));
        CHECK_MSG(back == fits[i].want, "case %zu: %.17g", i, back);
    }
    int64_t big =
        /* one rounding to float is up; through double it is a tie to even: down */
        INT64_C(0x40000040000001);
    float f = 0;
    CHECK(ses_convert(&f, SES_F32, &big, SES_I64, 1, NULL) && f == (float)big);
    int32_t wide = 70000;
    int16_t narrow;
    CHECK(!ses_convert(&narrow, SES_I16, &wide, SES_I32, 1, NULL));
    ses_err e = { 0 };
    CHECK(!ses_convert(&f, SES_F32, &big, SES_DTYPE_COUNT, 1, &e) && e.code == SES_EARG);
    CHECK(ses_convert(NULL, SES_F32, NULL, SES_F32, 0, &e) &&
          ses_convert(NULL, SES_F16, NULL, SES_I8, 0, &e));
    CHECK(!ses_convert(&f, SES_F32, &f, SES_F16, SIZE_MAX / 2, &e));
}

static void check_names(void)
{
    for (int d = 0; d < SES_DTYPE_COUNT; d++) {
        ses_dtype back;
        CHECK(ses_dtype_from_name(ses_dtype_name((ses_dtype)d), &back) && (int)back == d);
        CHECK(ses_dtype_size((ses_dtype)d) > 0);
    }
    for (int a = 0; a < SES_ACT_COUNT; a++) {
        ses_act back;
        CHECK(ses_act_from_name(ses_act_name((ses_act)a), &back) && (int)back == a);
    }
    ses_act act;
    ses_dtype dtype;
    CHECK(ses_act_from_name("gelu_pytorch_tanh", &act) && act == SES_ACT_GELU_TANH);
    CHECK(ses_act_from_name("swish", &act) && act == SES_ACT_SILU);
    CHECK(!ses_act_from_name("quick_gelu", &act) && !ses_act_from_name(NULL, &act));
    CHECK(!ses_dtype_from_name("F8_E4M3", &dtype) && !ses_dtype_from_name("f32", &dtype));
    CHECK_STR(ses_act_name(SES_ACT_GELU_TANH), "gelu_new");
    CHECK_STR(ses_dtype_name(SES_DTYPE_COUNT), "?");
}

int main(void)
{
    check_16(10, 15, f16_up, ses_f32_to_f16, ses_f64_to_f16);
    check_16(7, 127, bf16_up, bf16_down, ses_f64_to_bf16);
    check_arrays(SES_F16, f16_up, ses_f32_to_f16);
    check_arrays(SES_BF16, bf16_up, bf16_down);
    check_pairs();
    check_fits();
    check_names();
    return check_report();
}
