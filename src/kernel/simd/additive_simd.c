/* Vectorized scores of additive attention; see ses_additive for the formula. */
#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

typedef struct work {
    const ses_additive *a;
    float *y;
    const float *dy;
    float *dq, *dk, *dv;
} work;

/* ---- forward: a sequence per chunk ---- */

typedef struct pair {
    const float *q, *k, *v;
} pair;

VF_INLINE vf_pair add_product(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const pair *p = ctx;
    vf t = vf_tanh(vf_add(vf_get(p->q + i, left), vf_get(p->k + i, left)));
    sum.a = vf_fma(t, vf_get(p->v + i, left), sum.a);
    return sum;
}

static void score_sequence(void *ctx, int64_t s, void *scratch)
{
    (void)scratch;
    const work *w = ctx;
    const ses_additive *a = w->a;
    float *y = w->y;
    for (int64_t i = 0; i < s; i++)
        y += (int64_t)(a->cu_seqlens_q[i + 1] - a->cu_seqlens_q[i]) *
             (a->cu_seqlens_k[i + 1] - a->cu_seqlens_k[i]);
    for (int64_t i = a->cu_seqlens_q[s]; i < a->cu_seqlens_q[s + 1]; i++)
        for (int64_t j = a->cu_seqlens_k[s]; j < a->cu_seqlens_k[s + 1]; j++) {
            pair p = { a->q + i * a->cols, a->k + j * a->cols, a->v };
            *y++ = (float)sum_row(a->cols, add_product, &p).a;
        }
}

void VF_NAME(ses_k_additive)(ses_exec *x, const ses_additive *a, float *y)
{
    work w = { .a = a, .y = y };
    ses_parallel_for(x->pool, a->seqs, score_sequence, &w);
}

/* ---- backward: VF_LANES columns per chunk, so that all sums are the chunk's own ---- */

/* Adds the gradients of a query. Returns its part of dv. */
VF_INLINE vf query_grad(const work *w, const float *dy, int64_t i, int64_t k, int64_t n_k, int64_t c)
{
    const ses_additive *a = w->a;
    int64_t left = a->cols - c;
    vf q = vf_get(a->q + i * a->cols + c, left), v = vf_get(a->v + c, left), one = vf_set1(1);
    vf dq = vf_zero(), dv = vf_zero();
    for (int64_t j = 0; j < n_k; j++) {
        int64_t at = (k + j) * a->cols + c;
        vf t = vf_tanh(vf_add(q, vf_get(a->k + at, left))), d = vf_set1(dy[j]);
        vf slope = vf_mul(vf_mul(d, v), vf_fnma(t, t, one));
        dq = vf_add(dq, slope);
        dv = vf_fma(d, t, dv);
        if (w->dk) vf_put(w->dk + at, vf_add(vf_get(w->dk + at, left), slope), left);
    }
    if (w->dq) vf_put_dst((ses_dst){ w->dq, true }, i * a->cols + c, dq, left);
    return dv;
}

static void columns(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const work *w = ctx;
    const ses_additive *a = w->a;
    const float *dy = w->dy;
    int64_t c = chunk * VF_LANES;
    double dv[VF_LANES] = { 0 };
    for (int64_t s = 0; s < a->seqs; s++) {
        int64_t k = a->cu_seqlens_k[s], n_k = a->cu_seqlens_k[s + 1] - k;
        for (int64_t i = a->cu_seqlens_q[s]; i < a->cu_seqlens_q[s + 1]; i++, dy += n_k) {
            float part[VF_LANES];
            vf_store(part, query_grad(w, dy, i, k, n_k, c));
            for (int l = 0; l < VF_LANES; l++) dv[l] += (double)part[l];
        }
    }
    for (int64_t l = 0; w->dv && l < VF_LANES && c + l < a->cols; l++)
        w->dv[c + l] = (float)(w->dv[c + l] + dv[l]);
}

void VF_NAME(ses_k_additive_bwd)(ses_exec *x, const ses_additive *a, const float *dy, ses_dst dq, ses_dst dk,
                                 float *dv)
{
    work w = { .a = a, .dy = dy, .dq = dq.data, .dk = dk.data, .dv = dv };
    ses_parallel_for(x->pool, ses_chunks(a->cols, VF_LANES), columns, &w);
}
