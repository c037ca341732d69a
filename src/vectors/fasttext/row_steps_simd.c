/* Steps over rows with vectors. */
#include "row_steps.h"

#include "kernel/simd/vec/vec.h"

enum {
    SPAN = 64,
    VECTORS = SPAN / VF_LANES,
    AHEAD = 6,
    LINE = 64
}; /* columns that are summed in registers */

static inline void fetch(const float *row, size_t stride)
{
    for (size_t k = 0; k < stride * sizeof *row; k += LINE) __builtin_prefetch((const char *)row + k);
}

/* `vectors` is a constant in each caller. */
static inline __attribute__((always_inline)) void sum_span(const float *rows, size_t stride,
                                                           const int32_t *row, size_t n, float scale,
                                                           float *out, int vectors)
{
    vf total[VECTORS];
    for (int v = 0; v < vectors; v++) total[v] = vf_zero();
    for (size_t i = 0; i < n; i++) {
        const float *x = rows + (size_t)row[i] * stride;
        if (i + AHEAD < n) fetch(rows + (size_t)row[i + AHEAD] * stride, (size_t)vectors * VF_LANES);
        for (int v = 0; v < vectors; v++) total[v] = vf_add(total[v], vf_load(x + v * VF_LANES));
    }
    for (int v = 0; v < vectors; v++) vf_store(out + v * VF_LANES, vf_mul(total[v], vf_set1(scale)));
}

static void sum(const float *rows, size_t stride, const int32_t *row, size_t n, float scale, float *out)
{
    size_t k = 0;
    for (; k + SPAN <= stride; k += SPAN) sum_span(rows + k, stride, row, n, scale, out + k, VECTORS);
    if (k + SPAN / 2 <= stride) {
        sum_span(rows + k, stride, row, n, scale, out + k, VECTORS / 2);
        k += SPAN / 2;
    }
    if (k < stride) sum_span(rows + k, stride, row, n, scale, out + k, VECTORS / 4);
}

static void add(float *rows, size_t stride, const int32_t *row, size_t n, const float *x)
{
    for (size_t i = 0; i < n; i++) {
        float *y = rows + (size_t)row[i] * stride;
        if (i + AHEAD < n) fetch(rows + (size_t)row[i + AHEAD] * stride, stride);
        for (size_t k = 0; k < stride; k += VF_LANES) vf_store(y + k, vf_add(vf_load(y + k), vf_load(x + k)));
    }
}

static void axpy(float *y, const float *x, float a, size_t stride)
{
    vf by = vf_set1(a);
    for (size_t k = 0; k < stride; k += VF_LANES) vf_store(y + k, vf_fma(by, vf_load(x + k), vf_load(y + k)));
}

static float dot(const float *a, const float *b, size_t stride)
{
    vf total = vf_zero();
    for (size_t k = 0; k < stride; k += VF_LANES) total = vf_fma(vf_load(a + k), vf_load(b + k), total);
    return vf_sum(total);
}

static void step(float *row, float *gradient, const float *x, float alpha, size_t stride)
{
    vf by = vf_set1(alpha);
    for (size_t k = 0; k < stride; k += VF_LANES) {
        vf r = vf_load(row + k);
        vf_store(gradient + k, vf_fma(by, r, vf_load(gradient + k)));
        vf_store(row + k, vf_fma(by, vf_load(x + k), r));
    }
}

const ses_row_steps VF_NAME(ses_row_steps) = { sum, add, axpy, dot, step };
