/* Steps over rows: plain loops. */
#include "row_steps.h"

#include "kernel/levels.h"

#include <string.h>

static void sum(const float *rows, size_t stride, const int32_t *row, size_t n, float scale, float *out)
{
    memset(out, 0, stride * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < stride; k++) out[k] += rows[(size_t)row[i] * stride + k];
    for (size_t k = 0; k < stride; k++) out[k] *= scale;
}

static void add(float *rows, size_t stride, const int32_t *row, size_t n, const float *x)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < stride; k++) rows[(size_t)row[i] * stride + k] += x[k];
}

static void axpy(float *y, const float *x, float a, size_t stride)
{
    for (size_t k = 0; k < stride; k++) y[k] += a * x[k];
}

static float dot(const float *a, const float *b, size_t stride)
{
    float lane[SES_ROW_BLOCK] = { 0 }, total = 0;
    for (size_t k = 0; k < stride; k += SES_ROW_BLOCK)
        for (size_t l = 0; l < SES_ROW_BLOCK; l++) lane[l] += a[k + l] * b[k + l];
    for (size_t l = 0; l < SES_ROW_BLOCK; l++) total += lane[l];
    return total;
}

static void step(float *row, float *gradient, const float *x, float alpha, size_t stride)
{
    for (size_t k = 0; k < stride; k++) {
        gradient[k] += alpha * row[k];
        row[k] += alpha * x[k];
    }
}

const ses_row_steps ses_row_steps_ref = { sum, add, axpy, dot, step };

const ses_row_steps *ses_row_steps_of(ses_isa isa)
{
    const ses_row_steps *steps = &ses_row_steps_ref;
#if defined __aarch64__
    if (isa >= SES_ISA_NEON) steps = SES_IF_neon(&ses_row_steps_neon, steps);
#else
    if (isa >= SES_ISA_AVX2) steps = SES_IF_avx2(&ses_row_steps_avx2, steps);
    if (isa >= SES_ISA_AVX512) steps = SES_IF_avx512(&ses_row_steps_avx512, steps);
#endif
    return steps;
}
