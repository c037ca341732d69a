/* Elementwise functions on vectors.
 *
 * The result of an element depends on its value only, not on its lane. Coefficients are minimax fits. Maximum
 * error over a dense sweep of all floats, in ulp of the exact result (checked by tests/vecmath_cases.h):
 *     exp 1.0   log 0.8   tanh 1.3   erf 1.2   sigmoid 2.3   silu 3.1
 * and in ulp of max(|result|, 1/2): gelu 1.4, gelu_tanh 2.2, derivatives 2.8. Infinities, NaN and denormals
 * give the results of the C library. */
#ifndef SES_KERNEL_VECMATH_H
#define SES_KERNEL_VECMATH_H

#include "vec.h"

#include "base/rng.h"
#include "sesame/base.h"

static inline vf vf_horner(vf x, const float *c, int n) /* c[0] x^(n-1) + .. + c[n-1] */
{
    vf y = vf_set1(c[0]);
    for (int i = 1; i < n; i++) y = vf_fma(y, x, vf_set1(c[i]));
    return y;
}

/* Horner for long polynomials, n odd: two chains in x^2 halve the latency. */
static inline vf vf_horner2(vf x, const float *c, int n)
{
    vf x2 = vf_mul(x, x), even = vf_set1(c[0]), odd = vf_set1(c[1]);
    for (int i = 2; i < n; i += 2) even = vf_fma(even, x2, vf_set1(c[i]));
    for (int i = 3; i < n; i += 2) odd = vf_fma(odd, x2, vf_set1(c[i]));
    return vf_fma(odd, x, even);
}

/* e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2. Returns e^r. */
static inline vf vf_exp_parts(vf x, vf *n)
{
    static const float c[] = { 1.381453e-3f, 8.368751e-3f, 4.1668393e-2f, 1.6666520e-1f, 4.9999994e-1f };
    *n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    vf r = vf_fnma(*n, vf_set1(0.693145752f), x); /* ln 2 in two parts; n times the first is exact */
    r = vf_fnma(*n, vf_set1(1.42860682e-6f), r);
    vf p = vf_fma(vf_mul(r, r), vf_horner(r, c, 5), r);
    return vf_add(p, vf_set1(1));
}

static inline vf vf_exp(vf x)
{
    /* beyond these bounds the result is 0 or infinite */
    vf n, e = vf_exp_parts(vf_max(vf_set1(-104), vf_min(vf_set1(89), x)), &n);
    return vf_scale2(e, n);
}

/* e^x for |x| <= 87: the result is a normal number. */
static inline vf vf_exp_bounded(vf x)
{
    vf n, e = vf_exp_parts(x, &n);
    return vf_scale2_bounded(e, n);
}

/* log x = e ln 2 + log(1 + f) with x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt 2. */
static inline vf vf_log(vf x)
{
    static const float c[] = { 6.74664178e-2f,  -1.16756575e-1f, 1.18881648e-1f,
                               -1.24055882e-1f, 1.42195519e-1f,  -1.66679959e-1f,
                               2.00021187e-1f,  -2.50000096e-1f, 3.33333126e-1f };
    vm tiny = vf_lt(x, vf_set1(0x1p-126f));
    vf y = vf_select(tiny, vf_mul(x, vf_set1(0x1p24f)), x);
    vi off = vi_sub(vi_of_bits(y), vi_set1(0x3f3504f3)); /* sqrt(1/2) */
    vi e = vi_sar(off, 23);
    vf f = vf_sub(vf_of_bits(vi_sub(vi_of_bits(y), vi_shl(e, 23))), vf_set1(1));
    vf n = vf_sub(vf_from_vi(e), vf_select(tiny, vf_set1(24), vf_zero()));
    vf f2 = vf_mul(f, f);
    vf p = vf_fma(vf_mul(f2, f), vf_horner(f, c, 9), vf_mul(n, vf_set1(1.42860682e-6f)));
    p = vf_add(vf_fnma(f2, vf_set1(0.5f), p), f);
    p = vf_fma(n, vf_set1(0.693145752f), p);
    vf huge = vf_set1(__builtin_inff());
    p = vf_select(vf_lt(x, huge), p, x); /* infinity and NaN */
    p = vf_select(vf_lt(x, vf_zero()), vf_set1(__builtin_nanf("")), p);
    return vf_select(vf_eq(x, vf_zero()), vf_sub(vf_zero(), huge), p);
}

/* x + x^3 P(x^2) near 0; otherwise 1 - 2 / (e^2|x| + 1) with the sign of x. */
static inline vf vf_tanh(vf x)
{
    static const float c[] = { -5.70118266e-3f, 2.0635817e-2f, -5.37387574e-2f, 1.33314313e-1f,
                               -3.33332816e-1f };
    vf a = vf_abs(x), x2 = vf_mul(x, x);
    vf near = vf_fma(vf_mul(x2, x), vf_horner(x2, c, 5), x);
    vf e = vf_exp_bounded(vf_min(vf_set1(40), vf_add(a, a)));
    vf far = vf_sub(vf_set1(1), vf_div(vf_set1(2), vf_add(e, vf_set1(1))));
    return vf_select(vf_lt(a, vf_set1(0.625f)), near, vf_copysign(far, x));
}

/* x + x P(x^2) for |x| <= 1; then 1 - e^-Q(|x|) with Q = -log erfc; from 4 on erf rounds to 1. */
static inline vf vf_erf(vf x)
{
    static const float p[] = { 7.84723595e-5f, -8.00835171e-4f, 5.18813689e-3f, -2.68537215e-2f,
                               1.12835832e-1f, -3.76126257e-1f, 1.28379166e-1f };
    static const float q[] = { -1.86379329e-4f, 2.94765969e-3f, -2.18380697e-2f, 1.03106767e-1f,
                               6.38144818e-1f,  1.1270892f,     3.41520767e-4f };
    vf one = vf_set1(1), x2 = vf_mul(x, x);
    vf a = vf_min(vf_set1(4), vf_abs(x));
    vf near = vf_fma(x, vf_horner(x2, p, 7), x);
    vf far = vf_sub(one, vf_exp_bounded(vf_sub(vf_zero(), vf_horner(a, q, 7))));
    return vf_select(vf_lt(a, one), near, vf_copysign(far, x));
}

/* s = 1 / (1 + e^-x) and *rest = 1 - s, both without cancellation. */
static inline vf vf_logistic(vf x, vf *rest)
{
    vf one = vf_set1(1), e = vf_exp(vf_sub(vf_zero(), vf_abs(x)));
    vf big = vf_div(one, vf_add(one, e)), small = vf_mul(e, big);
    vm negative = vf_lt(x, vf_zero());
    *rest = vf_select(negative, big, small);
    return vf_select(negative, small, big);
}

static inline vf vf_sigmoid(vf x)
{
    vf one = vf_set1(1), e = vf_exp(vf_sub(vf_zero(), vf_abs(x)));
    return vf_div(vf_select(vf_lt(x, vf_zero()), e, one), vf_add(one, e));
}

/* P(X > a) of the standard normal distribution for 0 <= a <= TAIL_END; beyond it the tail is negligible. */
#define TAIL_END 6.25f
#if VF_LANES == 16
/* One of 16 polynomials in the distance to the nearest multiple of a step; error at most 1e-8. Adding 1.5 *
 * 2^23 leaves the number of the multiple in the low bits. */
static inline vf vf_normal_tail(vf a)
{
    enum { DEGREE = 5 };
    static const float c[DEGREE + 1][VF_LANES] = {
        { -0.00969396532f, -0.00616074586f, 0.00125789968f, 0.00581161585f, 0.00516140135f, 0.00197813427f,
          -0.000448650215f, -0.00114822458f, -0.000857654901f, -0.000418241922f, -0.000151558037f,
          -4.28527201e-05f, -9.6897993e-06f, -1.77777963e-06f, -2.67144912e-07f, -3.46111371e-08f },
        { -8.46265611e-05f, -0.0174429771f, -0.0225264672f, -0.0145502593f, -0.00266309571f, 0.0047431183f,
          0.00606776029f, 0.00421586493f, 0.00209059916f, 0.000798180641f, 0.000242550348f, 5.97269427e-05f,
          1.20496716e-05f, 2.00622799e-06f, 2.77082052e-07f, 3.18908668e-08f },
        { 0.0665001795f, 0.0511168465f, 0.0162423346f, -0.0153552089f, -0.0291296542f, -0.0264103487f,
          -0.0168436263f, -0.00826373883f, -0.00323420786f, -0.00102879095f, -0.000268932607f,
          -5.81843524e-05f, -1.04697929e-05f, -1.57241868e-06f, -1.97623692e-07f, -2.07399626e-08f },
        { -4.68802853e-07f, 0.074613452f, 0.116503797f, 0.115678169f, 0.0865635574f, 0.0514886752f,
          0.0249274187f, 0.0099476669f, 0.00329698832f, 0.000911957759f, 0.000211217673f, 4.10587927e-05f,
          6.71049156e-06f, 9.23300092e-07f, 1.07055932e-07f, 1.04675939e-08f },
        { -0.398942262f, -0.367343426f, -0.286786646f, -0.189832285f, -0.106538288f, -0.0506950803f,
          -0.0204526838f, -0.00699614687f, -0.00202904339f, -0.000498938316f, -0.000104021849f,
          -1.83875163e-05f, -2.75575485e-06f, -3.50166459e-07f, -3.77243552e-08f, -3.44676887e-09f },
        { 0.5f, 0.342279464f, 0.2082524f, 0.111469552f, 0.0520812757f, 0.0211148169f, 0.00739460532f,
          0.00222930079f, 0.000577025581f, 0.000127966327f, 2.42751776e-05f, 3.93396977e-06f, 5.44059958e-07f,
          6.41563389e-08f, 6.44621911e-09f, 5.51568236e-10f },
    };
    vf step = vf_set1(0.40625f), shift = vf_set1(0x1.8p23f);
    vf at = vf_fma(a, vf_set1(1 / 0.40625f), shift), u = vf_fnma(vf_sub(at, shift), step, a);
    vf y = vf_choose(c[0], at);
    for (int i = 1; i <= DEGREE; i++) y = vf_fma(y, u, vf_choose(c[i], at));
    return y;
}
#else
/* e^-Q / 2 with Q = -log erfc(a / sqrt 2), fitted up to 7. */
static inline vf vf_normal_tail(vf a)
{
    static const float q[] = { -1.51768603e-9f, 6.01418309e-8f, -1.04246319e-6f, 1.03261988e-5f,
                               -6.28713702e-5f, 2.15533344e-4f, -2.80957441e-5f, -4.79531439e-3f,
                               3.63430738e-2f,  3.18308089e-1f, 7.97884698e-1f };
    vf minus = vf_sub(vf_zero(), a);
    return vf_mul(vf_set1(0.5f), vf_exp_bounded(vf_mul(minus, vf_horner2(a, q, 11))));
}
#endif

static inline vf vf_normal_cdf(vf x)
{
    vf end = vf_set1(TAIL_END), a = vf_min(end, vf_abs(x));
    vf tail = vf_select(vf_eq(a, end), vf_zero(), vf_normal_tail(a));
    return vf_select(vf_lt(x, vf_zero()), tail, vf_sub(vf_set1(1), tail));
}

/* Gate of gelu_tanh: (1 + tanh u) / 2 = sigmoid(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3). Returns 2 u. */
static inline vf vf_gelu_logit(vf x)
{
    return vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(0.0713548163f), vf_set1(1.59576912f)));
}

/* Call it from a loop inside a switch on act, or inline it with a constant act. */
static inline __attribute__((always_inline)) vf vf_act(ses_act act, vf x)
{
    switch (act) {
    case SES_ACT_GELU: return vf_mul(x, vf_normal_cdf(x));
    case SES_ACT_GELU_TANH: return vf_mul(x, vf_sigmoid(vf_gelu_logit(x)));
    case SES_ACT_RELU: return vf_max(vf_zero(), x);
    case SES_ACT_SILU: return vf_mul(x, vf_sigmoid(x));
    case SES_ACT_TANH: return vf_tanh(x);
    case SES_ACT_SIGMOID: return vf_sigmoid(x);
    default: return x;
    }
}

/* GELU with an error of at most 2e-4, for operands that are quantized to int8. */
#if VF_LANES == 16
/* max(0, x) - |x| P(X > |x|): one of 16 parabolas, selected as in vf_normal_tail. It uses few
 * multiplications, because the surrounding tiles saturate the multipliers. */
static inline vf vf_gelu_approx(vf x)
{
    static const float c[3][VF_LANES] = {
        { -0.39727366f, -0.373465657f, -0.307395548f, -0.216348886f, -0.121377341f, -0.0406207889f,
          0.0154862572f, 0.0452697761f, 0.0536969639f, 0.0484508574f, 0.0372372083f, 0.0253521018f,
          0.0155905923f, 0.00875555072f, 0.00452105328f, 0.00215941505f },
        { 0.499911249f, 0.305366963f, 0.133790269f, 0.00228680135f, -0.0819004178f, -0.121575862f,
          -0.126805037f, -0.110648885f, -0.0852311999f, -0.0593366697f, -0.0378029421f, -0.0222012457f,
          -0.0120754652f, -0.00610200269f, -0.00287109753f, -0.00172504608f },
        { 0, 0.100319937f, 0.1542667f, 0.169970214f, 0.158656478f, 0.132064298f, 0.100212999f, 0.0701052845f,
          0.0455008633f, 0.0275055319f, 0.0155241964f, 0.00819415972f, 0.0040494469f, 0.00187511684f,
          0.000814050029f, 0.00027972777f },
    };
    vf quarters = vf_set1(0x1.8p21f), a = vf_min(vf_set1(3.874f), vf_abs(x)), near = vf_add(a, quarters);
    vf d = vf_sub(a, vf_sub(near, quarters));
    vf p = vf_fma(vf_choose(c[0], near), d, vf_choose(c[1], near));
    return vf_sub(vf_max(vf_zero(), x), vf_fma(p, d, vf_choose(c[2], near)));
}
#else
/* x P(X <= x) with P = 1/2 + x Q(x^2), clamped at |x| = 4. */
static inline vf vf_gelu_approx(vf x)
{
    static const float q[] = { 2.258820508e-08f, -1.588826990e-06f, 4.776388596e-05f, -8.121874998e-04f,
                               8.763691410e-03f, -6.455441564e-02f, 3.978702724e-01f };
    vf a = vf_max(vf_set1(-4), vf_min(vf_set1(4), x));
    return vf_mul(x, vf_fma(a, vf_horner(vf_mul(a, a), q, 7), vf_set1(0.5f)));
}
#endif

/* d act(x) / dx. Clamps prevent infinity times 0. */
static inline __attribute__((always_inline)) vf vf_act_grad(ses_act act, vf x)
{
    vf one = vf_set1(1), s, rest;
    switch (act) {
    case SES_ACT_GELU: { /* Phi + x phi */
        vf y = vf_max(vf_set1(-20), vf_min(vf_set1(20), x));
        vf phi = vf_mul(vf_set1(0.39894228f), vf_exp(vf_mul(vf_mul(y, y), vf_set1(-0.5f))));
        return vf_fma(y, phi, vf_normal_cdf(y));
    }
    case SES_ACT_GELU_TANH: /* s + x s (1 - s) 2 u' */
        x = vf_max(vf_set1(-20), vf_min(vf_set1(20), x));
        s = vf_logistic(vf_gelu_logit(x), &rest);
        x = vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(0.214064449f), vf_set1(1.59576912f)));
        return vf_fma(vf_mul(x, s), rest, s);
    case SES_ACT_RELU: return vf_select(vf_lt(vf_zero(), x), one, vf_zero());
    case SES_ACT_SILU: /* s + x s (1 - s) */
        x = vf_max(vf_set1(-200), vf_min(vf_set1(200), x));
        s = vf_logistic(x, &rest);
        return vf_fma(vf_mul(x, s), rest, s);
    case SES_ACT_TANH: s = vf_tanh(x); return vf_fnma(s, s, one);
    case SES_ACT_SIGMOID: s = vf_logistic(x, &rest); return vf_mul(s, rest);
    default: return one;
    }
}

/* Random numbers 4 b .. 4 (b + VF_LANES) - 1 of key, as ses_rand32 returns them. A Philox block is a pair of
 * lanes of c[0..3]; the odd lanes are meaningless until the end. Pairs are numbered such that blocks are
 * stored in order: the even pairs are the first half. */
static inline void vf_philox_rounds(uint32_t out[4 * VF_LANES], ses_rng_key key, uint64_t b, int rounds)
{
    enum { HALF = VF_LANES / 2 };
    uint64_t number[HALF];
    for (unsigned i = 0; i < HALF; i++) number[i] = i % 2 * (HALF / 2) + i / 2;
    for (unsigned half = 0; half < 2; half++) {
        vi c0 = vi_add_pairs(vi_set1_pair(b + half * HALF), vi_load(number)), c1 = vi_odd_to_even(c0);
        vi c2 = vi_set1((int32_t)key.step), c3 = vi_set1((int32_t)key.site);
        uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
        for (int round = 0; round < rounds; round++) {
            vi p0 = vi_mul_even(c0, vi_set1((int32_t)0xD2511F53u));
            vi p1 = vi_mul_even(c2, vi_set1((int32_t)0xCD9E8D57u));
            c0 = vi_xor3(vi_odd_to_even(p1), c1, vi_set1((int32_t)k0));
            c2 = vi_xor3(vi_odd_to_even(p0), c3, vi_set1((int32_t)k1));
            c1 = p1;
            c3 = p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        vi_store_quads(out + half * 2 * VF_LANES, vi_pairs(c0, c1), vi_pairs(c2, c3));
    }
}

static inline void vf_philox(uint32_t out[4 * VF_LANES], ses_rng_key key, uint64_t b)
{
    vf_philox_rounds(out, key, b, 10);
}

/* Random numbers 8 b .. 8 (b + VF_LANES) - 1 of key, as ses_dropout_draw returns them. */
static inline void vf_drop_draws(uint32_t out[8 * VF_LANES], ses_rng_key key, uint64_t b)
{
    uint32_t word[4 * VF_LANES];
    vf_philox_rounds(word, key, b, SES_DROPOUT_ROUNDS);
    for (int i = 0; i < 4 * VF_LANES; i++) out[2 * i] = word[i] & 0xffff, out[2 * i + 1] = word[i] >> 16;
}

/* The same in the order of keys, see ses_dropout_swizzle. */
static inline void vf_drop_keys(uint32_t out[8 * VF_LANES], ses_rng_key key, uint64_t b)
{
    uint32_t word[4 * VF_LANES];
    vf_philox_rounds(word, key, b, SES_DROPOUT_ROUNDS);
    for (int g = 0; g < 4 * VF_LANES; g += 16) /* block c, word b */
        for (int i = 0; i < 16; i++) {
            uint32_t two = word[g + i % 4 * 4 + i / 4];
            out[2 * (g + i)] = two & 0xffff, out[2 * (g + i) + 1] = two >> 16;
        }
}

#endif
