/* Reference layer norm with residual and dropout, and its backward pass. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct forward {
    ses_real *y, *s, *stat;
    const ses_real *a, *res, *gain, *bias;
    int64_t rows, cols;
    double eps;
    const ses_dropout_spec *drop;
} forward;

static ses_real drop_factor(const ses_dropout_spec *d, int64_t i)
{
    if (!d) return 1;
    return ses_dropout_draw(d->key, (uint64_t)i) >= ses_dropout_threshold(d->rate) ? ses_drop_scale(d->rate)
                                                                                   : 0;
}

/* s rounded as it is stored, so that the result is the same whether s is stored or not. */
static ses_real sum_at(const forward *f, int64_t i)
{
    /* a dropped NaN or infinity becomes 0 */
    ses_real factor = drop_factor(f->drop, i), a = factor > 0 ? factor * f->a[i] : 0;
    return f->res ? a + f->res[i] : a;
}

static void norm_row(const forward *f, int64_t row)
{
    int64_t at = row * f->cols;
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < f->cols; j++) sum += sum_at(f, at + j);
    double mean = sum / f->cols;
    for (int64_t j = 0; j < f->cols; j++) {
        double d = sum_at(f, at + j) - mean;
        squares += d * d;
    }
    double rstd = 1 / sqrt(squares / f->cols + f->eps);
    for (int64_t j = 0; j < f->cols; j++) {
        ses_real s = sum_at(f, at + j);
        if (f->s) f->s[at + j] = s;
        f->y[at + j] = (ses_real)((s - mean) * rstd * f->gain[j] + f->bias[j]);
    }
    if (f->stat) {
        f->stat[2 * row] = (ses_real)mean;
        f->stat[2 * row + 1] = (ses_real)rstd;
    }
}

static void norm_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const forward *f = ctx;
    ses_range r = ses_chunk(f->rows, ses_chunk_rows(f->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) norm_row(f, row);
}

void ses_k_norm_ref(ses_exec *x, ses_real *y, ses_real *s, ses_real *stat, const ses_real *a,
                    const ses_real *res, const ses_real *gain, const ses_real *bias, int64_t rows,
                    int64_t cols, double eps, const ses_dropout_spec *drop)
{
    forward f = { y, s, stat, a, res, gain, bias, rows, cols, eps, drop };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), norm_rows, &f);
}

typedef struct backward {
    ses_dst da, dres;
    ses_real *dgain, *dbias;
    const ses_real *dy, *s, *stat, *gain;
    int64_t rows, cols;
    const ses_dropout_spec *drop;
} backward;

/* ds = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gain, xhat = (s - mean) rstd. */
static void bwd_row(const backward *b, int64_t row)
{
    int64_t at = row * b->cols;
    double mean = b->stat[2 * row], rstd = b->stat[2 * row + 1], g_sum = 0, gx_sum = 0;
    for (int64_t j = 0; j < b->cols; j++) {
        double g = (double)b->dy[at + j] * b->gain[j];
        g_sum += g;
        gx_sum += g * (b->s[at + j] - mean) * rstd;
    }
    double g_mean = g_sum / b->cols, gx_mean = gx_sum / b->cols;
    for (int64_t j = 0; j < b->cols; j++) {
        double g = (double)b->dy[at + j] * b->gain[j], xhat = (b->s[at + j] - mean) * rstd;
        double ds = rstd * (g - g_mean - xhat * gx_mean);
        if (b->dres.data) ses_dst_put(b->dres, at + j, ds);
        if (b->da.data) ses_dst_put(b->da, at + j, drop_factor(b->drop, at + j) * ds);
    }
}

static void bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range r = ses_chunk(b->rows, ses_chunk_rows(b->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) bwd_row(b, row);
}

static void bwd_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range cols = ses_chunk(b->cols, SES_COL_BLOCK, chunk);
    double dgain[SES_COL_BLOCK] = { 0 }, dbias[SES_COL_BLOCK] = { 0 };
    for (int64_t row = 0; row < b->rows; row++) {
        double mean = b->stat[2 * row], rstd = b->stat[2 * row + 1];
        for (int64_t j = cols.begin; j < cols.end; j++) {
            double dy = b->dy[row * b->cols + j];
            dbias[j - cols.begin] += dy;
            dgain[j - cols.begin] += dy * (b->s[row * b->cols + j] - mean) * rstd;
        }
    }
    for (int64_t j = cols.begin; j < cols.end; j++) {
        if (b->dgain) b->dgain[j] = (ses_real)(b->dgain[j] + dgain[j - cols.begin]);
        if (b->dbias) b->dbias[j] = (ses_real)(b->dbias[j] + dbias[j - cols.begin]);
    }
}

void ses_k_norm_bwd_ref(ses_exec *x, ses_dst da, ses_dst dres, ses_real *dgain, ses_real *dbias,
                        const ses_real *dy, const ses_real *s, const ses_real *stat, const ses_real *gain,
                        int64_t rows, int64_t cols, const ses_dropout_spec *drop)
{
    backward b = { da, dres, dgain, dbias, dy, s, stat, gain, rows, cols, drop };
    if (dgain || dbias) ses_parallel_for(x->pool, ses_chunks(cols, SES_COL_BLOCK), bwd_cols, &b);
    if (da.data || dres.data) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), bwd_rows, &b);
}
