/* Activation functions and their derivatives: the formulas that every other variant is tested against. */
#ifndef SES_KERNEL_ACT_REF_H
#define SES_KERNEL_ACT_REF_H

#include "sesame/base.h"

#include <math.h>

#define SES_SQRT1_2 0.70710678118654752440      /* sqrt(1/2) */
#define SES_SQRT2_PI 0.79788456080286535588     /* sqrt(2/pi) */
#define SES_INV_SQRT_2PI 0.39894228040143267794 /* sqrt(1/(2 pi)) */
#define SES_GELU_CUBIC 0.044715

static inline double ses_sigmoid_ref(double x) { return 1 / (1 + exp(-x)); }

static inline double ses_act_ref(ses_act act, double x)
{
    switch (act) {
    case SES_ACT_GELU: return 0.5 * x * erfc(-x * SES_SQRT1_2);
    case SES_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(SES_SQRT2_PI * (x + SES_GELU_CUBIC * x * x * x)));
    case SES_ACT_RELU: return x > 0 ? x : x != x ? x : 0;
    case SES_ACT_SILU: return x * ses_sigmoid_ref(x);
    case SES_ACT_TANH: return tanh(x);
    case SES_ACT_SIGMOID: return ses_sigmoid_ref(x);
    default: return x;
    }
}

/* d act(x) / dx */
static inline double ses_act_slope_ref(ses_act act, double x)
{
    switch (act) {
    case SES_ACT_GELU: return 0.5 * erfc(-x * SES_SQRT1_2) + x * SES_INV_SQRT_2PI * exp(-0.5 * x * x);
    case SES_ACT_GELU_TANH: {
        double t = tanh(SES_SQRT2_PI * (x + SES_GELU_CUBIC * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SES_SQRT2_PI * (1 + 3 * SES_GELU_CUBIC * x * x);
    }
    case SES_ACT_RELU: return x > 0;
    case SES_ACT_SILU: {
        double s = ses_sigmoid_ref(x);
        return s * (1 + x * (1 - s));
    }
    case SES_ACT_TANH: return 1 - tanh(x) * tanh(x);
    case SES_ACT_SIGMOID: return ses_sigmoid_ref(x) * (1 - ses_sigmoid_ref(x));
    default: return 1;
    }
}

#endif
