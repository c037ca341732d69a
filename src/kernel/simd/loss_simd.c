/* Vectorized cross entropy over wide rows; kernels.def has the formulas. Other losses have few elements and
 * use the reference kernels. */
#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

#include <math.h>

typedef struct xent {
    ses_dst da;
    float *row_loss, *lse;
    const float *a, *lse_in;
    const int32_t *label;
    int64_t rows, cols, ld;
    float scale;
} xent;

typedef struct exp_row {
    const float *a;
    vf max;
} exp_row;

VF_INLINE vf_pair add_exp(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const exp_row *r = ctx;
    vf e = vf_exp(vf_sub(vf_get(r->a + i, left), r->max));
    sum.a = vf_add(sum.a, vf_pad(e, vf_zero(), left));
    return sum;
}

static void xent_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const xent *c = ctx;
    ses_range rows = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        c->lse[i] = c->row_loss[i] = 0;
        if (c->label[i] == SES_IGNORE_INDEX) continue;
        const float *a = c->a + i * c->ld;
        float max = max_row(a, c->cols);
        exp_row r = { a, vf_set1(max) };
        double lse = max + log(sum_row(c->cols, add_exp, &r).a);
        c->lse[i] = (float)lse;
        c->row_loss[i] = (float)(lse - a[c->label[i]]);
    }
}

void VF_NAME(ses_k_xent_rows)(ses_exec *x, float *row_loss, float *lse, const float *a, const int32_t *label,
                              int64_t rows, int64_t cols, int64_t ld)
{
    xent c = {
        .row_loss = row_loss, .lse = lse, .a = a, .label = label, .rows = rows, .cols = cols, .ld = ld
    };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), xent_chunk, &c);
}

static void bwd_row(const xent *c, int64_t row)
{
    const float *a = c->a + row * c->ld;
    ses_dst da = { c->da.data + row * c->ld, c->da.accumulate };
    int32_t label = c->label[row];
    for (int64_t j = c->cols; j < c->ld && !da.accumulate; j++) da.data[j] = 0;
    bool labeled = label != SES_IGNORE_INDEX;
    if (!labeled && da.accumulate) return;
    vf scale = vf_set1(c->scale), lse = vf_set1(c->lse_in[row]);
    float label_grad = 0; /* computed first, because da may be a */
    if (labeled) {
        vf_store_part(&label_grad, vf_exp(vf_sub(vf_set1(a[label]), lse)), 1);
        label_grad = (da.accumulate ? da.data[label] : 0) + c->scale * (label_grad - 1);
    }
    for (int64_t j = 0; j < c->cols; j += VF_LANES) {
        int64_t left = c->cols - j;
        vf d = labeled ? vf_mul(scale, vf_exp(vf_sub(vf_get(a + j, left), lse))) : vf_zero();
        vf_put_dst(da, j, d, left);
    }
    if (labeled) da.data[label] = label_grad;
}

static void xent_bwd_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const xent *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) bwd_row(c, i);
}

void VF_NAME(ses_k_xent_bwd)(ses_exec *x, ses_dst da, const float *dloss, const float *loss, const float *lse,
                             const float *a, const int32_t *label, int64_t rows, int64_t cols, int64_t ld)
{
    if (!da.data) return;
    xent c = { .da = da, .a = a, .lse_in = lse, .label = label, .rows = rows, .cols = cols, .ld = ld };
    c.scale = loss[1] * dloss[0];
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), xent_bwd_chunk, &c);
}
