/* The activations and their slopes; act_ref.h has the formulas. */
#ifndef SES_KERNEL_ACT_CUDA_CUH
#define SES_KERNEL_ACT_CUDA_CUH

#include "cuda.cuh"

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

#endif
