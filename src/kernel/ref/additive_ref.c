/* Reference scores of additive attention and their backward pass, see ses_additive. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct work {
    const ses_additive *a;
    ses_real *y;
    const ses_real *dy;
    ses_real *dq, *dk, *dv;
} work;

/* Queries, keys and first score of a sequence. */
typedef struct block {
    int64_t q, n_q, k, n_k;
} block;

static block block_of(const ses_additive *a, int64_t s)
{
    return (block){ a->cu_seqlens_q[s], a->cu_seqlens_q[s + 1] - a->cu_seqlens_q[s], a->cu_seqlens_k[s],
                    a->cu_seqlens_k[s + 1] - a->cu_seqlens_k[s] };
}

static double tanh_sum(const ses_additive *a, int64_t q, int64_t k, int64_t c)
{
    return tanh((double)a->q[q * a->cols + c] + (double)a->k[k * a->cols + c]);
}

void ses_k_additive_ref(ses_exec *x, const ses_additive *a, ses_real *y)
{
    (void)x;
    for (int64_t s = 0; s < a->seqs; s++) {
        block b = block_of(a, s);
        for (int64_t i = 0; i < b.n_q; i++)
            for (int64_t j = 0; j < b.n_k; j++) {
                double sum = 0;
                for (int64_t c = 0; c < a->cols; c++)
                    sum += (double)a->v[c] * tanh_sum(a, b.q + i, b.k + j, c);
                *y++ = (ses_real)sum;
            }
    }
}

/* Gradients of one column in a sequence; returns the part of dv. */
static double column_grad(const work *w, block b, const ses_real *dy, int64_t c)
{
    const ses_additive *a = w->a;
    double dv = 0, v = (double)a->v[c];
    for (int64_t i = 0; i < b.n_q; i++) {
        double dq = 0;
        for (int64_t j = 0; j < b.n_k; j++) {
            double t = tanh_sum(a, b.q + i, b.k + j, c), d = (double)dy[i * b.n_k + j];
            dq += d * v * (1 - t * t);
            dv += d * t;
        }
        if (w->dq) w->dq[(b.q + i) * a->cols + c] = (ses_real)(w->dq[(b.q + i) * a->cols + c] + dq);
    }
    for (int64_t j = 0; w->dk && j < b.n_k; j++) {
        double dk = 0;
        for (int64_t i = 0; i < b.n_q; i++) {
            double t = tanh_sum(a, b.q + i, b.k + j, c);
            dk += (double)dy[i * b.n_k + j] * v * (1 - t * t);
        }
        w->dk[(b.k + j) * a->cols + c] = (ses_real)(w->dk[(b.k + j) * a->cols + c] + dk);
    }
    return dv;
}

static void column(void *ctx, int64_t c, void *scratch)
{
    (void)scratch;
    const work *w = ctx;
    const ses_real *dy = w->dy;
    double dv = 0;
    for (int64_t s = 0; s < w->a->seqs; s++) {
        block b = block_of(w->a, s);
        dv += column_grad(w, b, dy, c);
        dy += b.n_q * b.n_k;
    }
    if (w->dv) w->dv[c] = (ses_real)(w->dv[c] + dv);
}

void ses_k_additive_bwd_ref(ses_exec *x, const ses_additive *a, const ses_real *dy, ses_dst dq, ses_dst dk,
                            ses_real *dv)
{
    work w = { .a = a, .dy = dy, .dq = dq.data, .dk = dk.data, .dv = dv };
    ses_parallel_for(x->pool, a->cols, column, &w);
}
