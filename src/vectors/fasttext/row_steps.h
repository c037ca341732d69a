/* Steps over rows of floats for the supervised trainer. A row has `stride` numbers, a multiple of 16, at a
 * 64-byte boundary. One implementation per SIMD level; ses_row_steps_of picks one. */
#ifndef SES_VECTORS_ROW_STEPS_H
#define SES_VECTORS_ROW_STEPS_H

#include "sesame/base.h"

enum { SES_ROW_BLOCK = 16 };

typedef struct ses_row_steps {
    /* out = scale * the sum of n rows */
    void (*sum)(const float *rows, size_t stride, const int32_t *row, size_t n, float scale, float *out);
    /* each of n rows += x */
    void (*add)(float *rows, size_t stride, const int32_t *row, size_t n, const float *x);
    void (*axpy)(float *y, const float *x, float a, size_t stride); /* y += a x */
    float (*dot)(const float *a, const float *b, size_t stride);
    /* gradient += alpha * row; row += alpha * x */
    void (*step)(float *row, float *gradient, const float *x, float alpha, size_t stride);
} ses_row_steps;

extern const ses_row_steps ses_row_steps_ref;
#if !defined SES_REF_ONLY
extern const ses_row_steps ses_row_steps_avx2, ses_row_steps_avx512, ses_row_steps_neon;
#endif
const ses_row_steps *ses_row_steps_of(ses_isa isa);

#endif
