/* Vectorized steps of GloVe; kernels.def has the formulas. */
#include "kernel/simd/vec/vec_loop.h"

/* Pairs between the prefetch of a row and its use. */
enum { AHEAD = 6, LINE_FLOATS = 16, PREFETCH_FLOATS = 512 };

VF_INLINE void prefetch_row(const float *row, int64_t width)
{
    int64_t n = width < PREFETCH_FLOATS ? width : PREFETCH_FLOATS; /* the hardware fetches the rest */
    for (int64_t i = 0; i < n; i += LINE_FLOATS) prefetch_write(row + i);
}

VF_INLINE float dot(const float *a, const float *b, int64_t n)
{
    vf s0 = vf_zero(), s1 = s0;
    int64_t i = 0;
    for (; n - i >= 2 * VF_LANES; i += 2 * VF_LANES) {
        s0 = vf_fma(vf_load(a + i), vf_load(b + i), s0);
        s1 = vf_fma(vf_load(a + i + VF_LANES), vf_load(b + i + VF_LANES), s1);
    }
    for (; i < n; i += VF_LANES) s0 = vf_fma(vf_get(a + i, n - i), vf_get(b + i, n - i), s0);
    return vf_sum(vf_add(s0, s1));
}

typedef struct bounds {
    vf f, low, high;
} bounds;

VF_INLINE void adapt(float *value, vf old, float *squares, vf other, const float *rate, bounds b,
                     int64_t left)
{
    vf step = vf_mul(vf_min(vf_max(vf_mul(b.f, other), b.low), b.high), vf_get(rate, left));
    vf s = vf_pad(vf_get(squares, left), vf_set1(1), left);
    vf_put(value, vf_sub(old, vf_div(step, vf_sqrt(s))), left);
    vf_put(squares, vf_fma(step, step, s), left);
}

VF_INLINE void step_part(const ses_glove *g, float *w, float *c, bounds b, int64_t i, int64_t left)
{
    int64_t width = g->width;
    vf word = vf_get(w + i, left), context = vf_get(c + i, left);
    adapt(w + i, word, w + width + i, context, g->word_rate + i, b, left);
    adapt(c + i, context, c + width + i, word, g->context_rate + i, b, left);
}

double VF_NAME(ses_k_glove_steps)(const ses_glove *g, const ses_glove_pair *pair, int64_t n)
{
    int64_t width = g->width;
    double loss = 0;
    for (int64_t k = 0; k < n; k++) {
        const ses_glove_pair *p = pair + k;
        if (k + AHEAD < n) {
            prefetch_row(g->word + 2 * width * p[AHEAD].word, 2 * width);
            prefetch_row(g->context + 2 * width * p[AHEAD].context, 2 * width);
        }
        float *w = g->word + 2 * width * p->word, *c = g->context + 2 * width * p->context;
        float diff = dot(w, c, width) - p->log_count, f = p->weight * diff;
        if (!isfinite(f)) continue;
        loss += 0.5 * (double)f * (double)diff;
        bounds b = { vf_set1(f), vf_set1(-g->limit), vf_set1(g->limit) };
        int64_t i = 0;
        for (; width - i >= VF_LANES; i += VF_LANES) step_part(g, w, c, b, i, VF_LANES);
        if (i < width) step_part(g, w, c, b, i, width - i);
    }
    return loss;
}
