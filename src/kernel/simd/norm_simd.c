/* Vectorized layer norm; kernels.def has the formulas. */
#include "kernel/simd/vec/vecmath.h"
#include "norm_row.h"

/* Rows per chunk: a quarter of the default, because a row is read in three passes. */
static int64_t norm_chunk(const norm_job *f) { return ses_chunk_rows(4 * f->cols); }

static void norm_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const norm_job *f = ctx;
    ses_range r = ses_chunk(f->rows, norm_chunk(f), chunk);
    for (int64_t i = r.begin; i < r.end; i++) norm_row(f, i * f->cols, f->stat ? f->stat + 2 * i : NULL);
}

void VF_NAME(ses_k_norm)(ses_exec *x, float *y, float *s, float *stat, const float *a, const float *res,
                         const float *gain, const float *bias, int64_t rows, int64_t cols, double eps,
                         const ses_dropout_spec *drop)
{
    if (drop) { /* s first holds the dropped-out a, then a + res */
        VF_NAME(ses_k_dropout)(x, (ses_dst){ s, false }, a, rows * cols, drop->rate, drop->key);
        a = s;
    }
    norm_job f = { y, s, stat, a, res, gain, bias, rows, cols, eps };
    ses_parallel_for(x->pool, ses_chunks(rows, norm_chunk(&f)), norm_rows, &f);
}

typedef struct backward {
    ses_dst da, dres;
    float *dgain, *dbias;
    const float *dy, *s, *stat, *gain;
    int64_t rows, cols;
    const ses_dropout_spec *drop;
} backward;

typedef struct grad_row {
    const float *dy, *s, *gain;
    vf mean;
} grad_row;

VF_INLINE vf_pair add_grad(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const grad_row *r = ctx;
    vf g = vf_mul(vf_get(r->dy + i, left), vf_get(r->gain + i, left));
    sum.a = vf_add(sum.a, g);
    sum.b = vf_fma(g, vf_sub(vf_get(r->s + i, left), r->mean), sum.b);
    return sum;
}

/* Dropout factors of DRAWN elements from `first` on, a multiple of 8. */
enum { DRAWN = 8 * VF_LANES };

static void keep_factors(float keep[DRAWN], const ses_dropout_spec *d, int64_t first)
{
    uint32_t draw[DRAWN], threshold = ses_dropout_threshold(d->rate);
    float scale = ses_drop_scale(d->rate);
    vf_drop_draws(draw, d->key, (uint64_t)first / 8);
    for (int k = 0; k < DRAWN; k++) keep[k] = draw[k] >= threshold ? scale : 0;
}

static void bwd_row(const backward *b, int64_t row_no)
{
    float keep[DRAWN];
    int64_t drawn = INT64_MIN; /* first element of the factors in keep */
    int64_t at = row_no * b->cols;
    float rstd = b->stat[2 * row_no + 1];
    grad_row r = { b->dy + at, b->s + at, b->gain, vf_set1(b->stat[2 * row_no]) };
    sum_pair sum = sum_row(b->cols, add_grad, &r);
    vf vrstd = vf_set1(rstd), g_mean = vf_set1((float)(sum.a / b->cols));
    vf gx_mean = vf_set1((float)(sum.b * rstd / b->cols));
    for (int64_t i = 0; i < b->cols; i += VF_LANES) {
        int64_t left = b->cols - i;
        vf g = vf_mul(vf_get(r.dy + i, left), vf_get(r.gain + i, left));
        vf xhat = vf_mul(vf_sub(vf_get(r.s + i, left), r.mean), vrstd);
        vf ds = vf_mul(vrstd, vf_fnma(xhat, gx_mean, vf_sub(g, g_mean)));
        if (b->dres.data) vf_put_dst(b->dres, at + i, ds, left);
        if (b->drop && b->da.data) {
            if (at + i + VF_LANES > drawn + DRAWN) keep_factors(keep, b->drop, drawn = (at + i) / 8 * 8);
            ds = vf_mul(ds, vf_load(keep + (at + i - drawn)));
        }
        if (b->da.data) vf_put_dst(b->da, at + i, ds, left);
    }
}

static void bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range r = ses_chunk(b->rows, ses_chunk_rows(b->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) bwd_row(b, i);
}

/* Gradients of gain and bias: COL_BLOCK columns per chunk, rows in order, sums of ROW_BLOCK rows in float,
 * sums of the blocks in double. SIDE rows are processed together, so that memory is read in long runs. */
enum { COL_BLOCK = 192, ROW_BLOCK = 32, SIDE = 8 };

typedef struct col_sums {
    float dgain[COL_BLOCK], dbias[COL_BLOCK];
} col_sums;

VF_INLINE void bwd_rows_together(const backward *b, int64_t first, int n, ses_range cols, col_sums *sum)
{
    vf mean[SIDE], rstd[SIDE];
    for (int k = 0; k < n; k++) {
        mean[k] = vf_set1(b->stat[2 * (first + k)]);
        rstd[k] = vf_set1(b->stat[2 * (first + k) + 1]);
    }
    for (int64_t j = cols.begin; j < cols.end; j += VF_LANES) {
        int64_t left = cols.end - j, at = j - cols.begin;
        vf dgain = vf_load(sum->dgain + at), dbias = vf_load(sum->dbias + at);
        for (int k = 0; k < n; k++) {
            vf dy = vf_get(b->dy + (first + k) * b->cols + j, left);
            vf xhat = vf_mul(vf_sub(vf_get(b->s + (first + k) * b->cols + j, left), mean[k]), rstd[k]);
            dbias = vf_add(dbias, dy);
            dgain = vf_fma(dy, xhat, dgain);
        }
        vf_store(sum->dgain + at, dgain);
        vf_store(sum->dbias + at, dbias);
    }
}

static void bwd_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range cols = ses_chunk(b->cols, COL_BLOCK, chunk);
    int64_t width = cols.end - cols.begin;
    double dgain[COL_BLOCK] = { 0 }, dbias[COL_BLOCK] = { 0 };
    for (int64_t i = 0; i < b->rows;) {
        col_sums sum = { { 0 }, { 0 } };
        int64_t end = b->rows - i < ROW_BLOCK ? b->rows : i + ROW_BLOCK;
        for (; end - i >= SIDE; i += SIDE) bwd_rows_together(b, i, SIDE, cols, &sum);
        for (; i < end; i++) bwd_rows_together(b, i, 1, cols, &sum);
        for (int j = 0; j < COL_BLOCK; j++)
            dgain[j] += (double)sum.dgain[j], dbias[j] += (double)sum.dbias[j];
    }
    for (int64_t j = 0; j < width; j++) {
        if (b->dgain) b->dgain[cols.begin + j] = (float)(b->dgain[cols.begin + j] + dgain[j]);
        if (b->dbias) b->dbias[cols.begin + j] = (float)(b->dbias[cols.begin + j] + dbias[j]);
    }
}

void VF_NAME(ses_k_norm_bwd)(ses_exec *x, ses_dst da, ses_dst dres, float *dgain, float *dbias,
                             const float *dy, const float *s, const float *stat, const float *gain,
                             int64_t rows, int64_t cols, const ses_dropout_spec *drop)
{
    backward b = { da, dres, dgain, dbias, dy, s, stat, gain, rows, cols, drop };
    if (dgain || dbias) ses_parallel_for(x->pool, ses_chunks(cols, COL_BLOCK), bwd_cols, &b);
    if (da.data || dres.data) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), bwd_rows, &b);
}
