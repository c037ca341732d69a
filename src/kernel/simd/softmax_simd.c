/* Vectorized row softmax; kernels.def has the formulas. */
#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

typedef struct softmax {
    ses_dst to;
    const float *a, *dy;
    int64_t rows, cols;
} softmax;

typedef struct exp_row {
    const float *a;
    float *y;
    vf max;
} exp_row;

VF_INLINE vf_pair add_exp(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const exp_row *r = ctx;
    vf e = vf_exp(vf_sub(vf_get(r->a + i, left), r->max));
    vf_put(r->y + i, e, left);
    sum.a = vf_add(sum.a, vf_pad(e, vf_zero(), left));
    return sum;
}

static void softmax_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const softmax *c = ctx;
    ses_range rows = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        exp_row r = { c->a + i * c->cols, c->to.data + i * c->cols, vf_zero() };
        r.max = vf_set1(max_row(r.a, c->cols));
        vf inverse = vf_set1((float)(1 / sum_row(c->cols, add_exp, &r).a));
        for (int64_t j = 0; j < c->cols; j += VF_LANES)
            vf_put(r.y + j, vf_mul(inverse, vf_get(r.y + j, c->cols - j)), c->cols - j);
    }
}

void VF_NAME(ses_k_softmax)(ses_exec *x, float *y, const float *a, int64_t rows, int64_t cols)
{
    softmax c = { { y, false }, a, NULL, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), softmax_rows, &c);
}

typedef struct grad_row {
    const float *dy, *y;
} grad_row;

VF_INLINE vf_pair add_product(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const grad_row *r = ctx;
    sum.a = vf_fma(vf_get(r->dy + i, left), vf_get(r->y + i, left), sum.a);
    return sum;
}

static void bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const softmax *c = ctx;
    ses_range rows = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        int64_t at = i * c->cols;
        grad_row r = { c->dy + at, c->a + at };
        vf dot = vf_set1((float)sum_row(c->cols, add_product, &r).a);
        for (int64_t j = 0; j < c->cols; j += VF_LANES) {
            int64_t left = c->cols - j;
            vf d = vf_mul(vf_get(r.y + j, left), vf_sub(vf_get(r.dy + j, left), dot));
            vf_put_dst(c->to, at + j, d, left);
        }
    }
}

void VF_NAME(ses_k_softmax_bwd)(ses_exec *x, ses_dst da, const float *dy, const float *y, int64_t rows,
                                int64_t cols)
{
    if (!da.data) return;
    softmax c = { da, y, dy, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), bwd_rows, &c);
}
