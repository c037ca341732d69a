/* Activation functions and their derivatives; act_ref.h has the formulas. */
#ifndef SES_KERNEL_ACT_CUDA_CUH
#define SES_KERNEL_ACT_CUDA_CUH

#include "cuda_common.cuh"

__device__ static inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/* tanh(sqrt(2/pi) (x + 0.044715 x^3)) */
__device__ static inline float gelu_tanh(float x)
{
    return tanhf(0.79788456080286535588f * (x + 0.044715f * x * x * x));
}

__device__ static inline float act_of(ses_act act, float x)
{
    switch (act) {
    case SES_ACT_GELU: return 0.5f * x * erfcf(-x * 0.70710678118654752440f);
    case SES_ACT_GELU_TANH: return 0.5f * x * (1 + gelu_tanh(x));
    case SES_ACT_RELU: return x > 0 ? x : x != x ? x : 0;
    case SES_ACT_SILU: return x * sigmoid(x);
    case SES_ACT_TANH: return tanhf(x);
    case SES_ACT_SIGMOID: return sigmoid(x);
    default: return x;
    }
}

__device__ static inline float act_slope(ses_act act, float x)
{
    switch (act) {
    case SES_ACT_GELU:
        return 0.5f * erfcf(-x * 0.70710678118654752440f) + x * 0.39894228040143267794f * expf(-0.5f * x * x);
    case SES_ACT_GELU_TANH: {
        float t = gelu_tanh(x);
        return 0.5f * (1 + t) +
               0.5f * x * (1 - t * t) * 0.79788456080286535588f * (1 + 3 * 0.044715f * x * x);
    }
    case SES_ACT_RELU: return x > 0;
    case SES_ACT_SILU: {
        float s = sigmoid(x);
        return s * (1 + x * (1 - s));
    }
    case SES_ACT_TANH: {
        float t = tanhf(x);
        return 1 - t * t;
    }
    case SES_ACT_SIGMOID: {
        float s = sigmoid(x);
        return s * (1 - s);
    }
    default: return 1;
    }
}

/* Faster versions for bf16 results, which have 8 significant bits: fast exponentials, and a polynomial for
 * the upper tail of the normal distribution (Abramowitz and Stegun 7.1.26, error at most 1.5e-7). */
struct normal {
    float below, density;
};

__device__ static inline normal normal_at(float x)
{
    float t = __fdividef(1, 1 + 0.3275911f * 0.70710678f * fabsf(x)), e = __expf(-0.5f * x * x);
    float tail = t * (0.254829592f +
                      t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    tail *= 0.5f * e;
    normal n = { x > 0 ? 1 - tail : tail, 0.39894228f * e };
    return n;
}

__device__ static inline float fast_tanh(float x)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <class T> __device__ static inline float act_for(ses_act act, float x)
{
    if (sizeof(T) == sizeof(float)) return act_of(act, x);
    switch (act) {
    case SES_ACT_GELU: return x * normal_at(x).below;
    case SES_ACT_GELU_TANH: return 0.5f * x * (1 + fast_tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    default: return act_of(act, x);
    }
}

template <class T> __device__ static inline float slope_for(ses_act act, float x)
{
    if (sizeof(T) == sizeof(float)) return act_slope(act, x);
    switch (act) {
    case SES_ACT_GELU: {
        normal n = normal_at(x);
        return n.below + x * n.density;
    }
    case SES_ACT_GELU_TANH: {
        float t = fast_tanh(0.79788456f * (x + 0.044715f * x * x * x));
        return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
    }
    default: return act_slope(act, x);
    }
}

template <class T> static void act_fwd(ses_exec *x, ses_real *y, const ses_real *a, int64_t n, ses_act kind)
{
    ses_dst to = { y, false, false };
    map_elems<T>(x, to, a, NULL, n, [=] __device__(int64_t, float u, float) { return act_for<T>(kind, u); });
}

template <class T>
static void act_bwd(ses_exec *x, ses_dst da, const ses_real *dy, const ses_real *a, int64_t n, ses_act kind)
{
    map_elems<T>(x, da, dy, a, n,
                 [=] __device__(int64_t, float d, float u) { return d * slope_for<T>(kind, u); });
}

struct act_value {
    float value, slope;
};

template <class T> __device__ static inline act_value value_and_slope(ses_act act, float x)
{
    act_value b;
    if (sizeof(T) < sizeof(float) && act == SES_ACT_GELU) {
        normal n = normal_at(x);
        b.value = x * n.below, b.slope = n.below + x * n.density;
    } else {
        b.value = act_for<T>(act, x), b.slope = slope_for<T>(act, x);
    }
    return b;
}

#endif
