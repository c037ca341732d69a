/* Cases of test_vecmath_LEVEL.c, which include a vec_*.h and define LEVEL first:
 * every function against the C library in double, over a sweep of all floats, in all lanes and parts. */
#include "check.h"

#include "kernel/kernel.h"
#include "kernel/simd/vec/vecmath.h"

#include <math.h>

enum { STRIDE = 1021 }; /* between the tested bit patterns; prime, so that mantissas vary */

typedef struct {
    const char *name;
    vf (*fn)(vf);
    double (*want)(double);
    double ulp;   /* largest error allowed, in ulp of the exact result */
    double floor; /* below this magnitude: in ulp of this magnitude */
} function;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static double gate(double x) { return sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)); }
static double gelu(double x) { return x * normal_cdf(x); }
static double gelu_tanh(double x) { return x * gate(x); }
static double relu(double x) { return x < 0 ? 0 : x; }
static double silu(double x) { return x * sigmoid(x); }
static double gelu_d(double x)
{
    return normal_cdf(x) + (isinf(x) ? 0 : x * 0.3989422804014327 * exp(-x * x / 2));
}
static double gelu_tanh_d(double x)
{
    if (fabs(x) > 30) return x > 0 ? 1 : 0;
    double s = gate(x);
    return s + x * s * (1 - s) * 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
}
static double relu_d(double x) { return isnan(x) ? 0 : x > 0; }
static double silu_d(double x) { return isinf(x) ? x > 0 : sigmoid(x) * (1 + x * (1 - sigmoid(x))); }
static double tanh_d(double x) { return 1 / (cosh(x) * cosh(x)); }
static double sigmoid_d(double x) { return sigmoid(x) * (1 - sigmoid(x)); }

#define ACT(name, act)                                  \
    static vf v_##name(vf x) { return vf_act(act, x); } \
    static vf v_##name##_d(vf x) { return vf_act_grad(act, x); }
ACT(gelu, SES_ACT_GELU)
ACT(gelu_tanh, SES_ACT_GELU_TANH)
ACT(relu, SES_ACT_RELU)
ACT(silu, SES_ACT_SILU)
ACT(tanh, SES_ACT_TANH)
ACT(sigmoid, SES_ACT_SIGMOID)

/* If a function subtracts nearly equal numbers, its error is relative to the floor. */
static const function list[] = {
    { "exp", vf_exp, exp, 1.0, 0x1p-126 },
    { "log", vf_log, log, 0.85, 0x1p-126 },
    { "tanh", v_tanh, tanh, 1.4, 0x1p-126 },
    { "erf", vf_erf, erf, 1.25, 0x1p-126 },
    { "sigmoid", v_sigmoid, sigmoid, 2.4, 0x1p-126 },
    { "gelu", v_gelu, gelu, 1.7, 0.5 },
    { "gelu_tanh", v_gelu_tanh, gelu_tanh, 2.4, 0.5 },
    { "relu", v_relu, relu, 0, 0x1p-126 },
    { "silu", v_silu, silu, 3.2, 0x1p-100 },
    { "gelu'", v_gelu_d, gelu_d, 3, 0.5 },
    { "gelu_tanh'", v_gelu_tanh_d, gelu_tanh_d, 3, 0.5 },
    { "relu'", v_relu_d, relu_d, 0, 0x1p-126 },
    { "silu'", v_silu_d, silu_d, 3, 0.5 },
    { "tanh'", v_tanh_d, tanh_d, 3, 1 },
    { "sigmoid'", v_sigmoid_d, sigmoid_d, 3, 0.25 },
};

static double ulp_of(double y, double floor)
{
    int e;
    frexp(fmax(fabs(y), floor), &e);
    return ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

/* Error in ulp; a value of the wrong kind (NaN, infinity) counts as 1e9. */
static double error(float got, double want, double floor)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
    if (fabs(want) > 0x1.ffffffp127) return isinf(got) && (got > 0) == (want > 0) ? 0 : 1e9;
    if (isinf(got)) return fabs(want) > 0x1.fffffep127 ? 0 : 1e9;
    return fabs(got - want) / ulp_of(want, floor);
}

static void sweep(const function *f)
{
    double worst = 0, at = 0;
    float x[VF_LANES], y[VF_LANES];
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)STRIDE * VF_LANES) {
        for (unsigned i = 0; i < VF_LANES; i++) {
            uint32_t b = (uint32_t)(bits + (uint64_t)i * STRIDE);
            memcpy(x + i, &b, 4);
        }
        vf_store(y, f->fn(vf_load(x)));
        for (int i = 0; i < VF_LANES; i++) {
            double e = error(y[i], f->want(x[i]), f->floor);
            if (e > worst) worst = e, at = x[i];
        }
    }
    CHECK_MSG(worst <= f->ulp, "%s: %.3g units at %.9g, %.3g allowed", f->name, worst, at, f->ulp);
}

static void extremes(const function *f)
{
    static const float x[] = { 0,          -0.0f,     INFINITY,  -INFINITY, NAN,   0x1p-149f,
                               -0x1p-149f, 0x1p-126f, 1e38f,     -1e38f,    88.7f, 88.8f,
                               -87.4f,     -103.9f,   -104.1f,   1,         -1,    0.625f,
                               3.92f,      3.94f,     0x1p-127f, 12,        -12,   9.02f };
    for (size_t i = 0; i < SES_LEN(x); i++) {
        float y[VF_LANES];
        double want = f->want(x[i]);
        if (isinf(x[i]) && isnan(want)) continue; /* infinity times 0: either result is accepted */
        vf_store(y, f->fn(vf_set1(x[i])));
        double e = error(y[0], want, f->floor);
        CHECK_MSG(e <= f->ulp, "%s(%g) = %g, %g expected", f->name, x[i], y[0], want);
    }
}

/* The same value in every lane, and in a part of any length, gives the same bits. */
static void lanes(const function *f)
{
    for (int t = 0; t < 200; t++) {
        float x[VF_LANES], y[VF_LANES], one[VF_LANES], part[VF_LANES];
        for (unsigned i = 0; i < VF_LANES; i++)
            x[i] = (float)(8 * ses_rand_normal((ses_rng_key){ .seed = 5 }, (unsigned)t * VF_LANES + i));
        vf_store(y, f->fn(vf_load(x)));
        bool same = true;
        for (int i = 0; i < VF_LANES; i++) {
            vf_store(one, f->fn(vf_set1(x[i])));
            same = same && !memcmp(one, y + i, 4) && !memcmp(one + VF_LANES - 1, y + i, 4);
        }
        int n = t % (VF_LANES + 1);
        memset(part, 0x55, sizeof part);
        vf_store_part(part, f->fn(vf_load_part(x, n)), n);
        same = same && !memcmp(part, y, (size_t)n * 4);
        for (int i = n; i < VF_LANES; i++) same = same && ((unsigned char *)(part + i))[0] == 0x55;
        if (!CHECK(same)) return;
    }
}

static void reductions(void)
{
    for (int t = 0; t < 50; t++) {
        float x[VF_LANES], max = -INFINITY;
        double sum = 0, size = 0;
        for (unsigned i = 0; i < VF_LANES; i++) {
            x[i] = (float)ses_rand_normal((ses_rng_key){ .seed = 6 }, (unsigned)t * VF_LANES + i);
            sum += x[i], size += fabs(x[i]), max = fmaxf(max, x[i]);
        }
        CHECK(fabs(vf_sum(vf_load(x)) - sum) <= size * 0x1p-22);
        CHECK(fabs(vf_sum_double(vf_load(x)) - sum) <= size * 0x1p-48);
        CHECK(vf_hmax(vf_load(x)) == max);
    }
}

static void random_numbers(void)
{
    static const uint64_t start[] = { 0, 7, 0xfffffff9u, UINT64_C(0x123456789abcdef) };
    for (size_t s = 0; s < SES_LEN(start); s++) {
        ses_rng_key key = { UINT64_C(0xfeedface12345678), 3, (uint32_t)s };
        uint32_t out[4 * VF_LANES];
        vf_philox(out, key, start[s]);
        bool same = true;
        for (unsigned i = 0; i < SES_LEN(out); i++)
            same = same && out[i] == ses_rand32(key, 4 * start[s] + i);
        CHECK(same);
        uint32_t draw[8 * VF_LANES], keys[8 * VF_LANES];
        uint64_t first = start[s] / 4 * 4;
        vf_drop_draws(draw, key, start[s]);
        vf_drop_keys(keys, key, first);
        for (unsigned i = 0; i < SES_LEN(draw); i++)
            same = same && draw[i] == ses_dropout_draw(key, 8 * start[s] + i) &&
                   keys[i] == ses_dropout_draw(key, 8 * first + ses_dropout_swizzle(i));
        CHECK(same);
    }
}

int main(void)
{
    if (ses_isa_best() < LEVEL) {
        SKIP("this CPU lacks the instructions");
        return check_report();
    }
    for (size_t i = 0; i < SES_LEN(list); i++) {
        sweep(&list[i]);
        extremes(&list[i]);
        lanes(&list[i]);
    }
    reductions();
    random_numbers();
    return check_report();
}
