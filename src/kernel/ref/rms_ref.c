/* Reference RMS norm and its backward pass. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct forward {
    ses_real *y, *stat;
    const ses_real *a, *gain;
    int64_t rows, cols;
    double eps, plus;
} forward;

static void rms_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const forward *f = ctx;
    ses_range r = ses_chunk(f->rows, ses_chunk_rows(f->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const ses_real *a = f->a + row * f->cols;
        double squares = 0;
        for (int64_t j = 0; j < f->cols; j++) squares += (double)a[j] * a[j];
        double rstd = 1 / sqrt(squares / f->cols + f->eps);
        for (int64_t j = 0; j < f->cols; j++)
            f->y[row * f->cols + j] = (ses_real)(a[j] * rstd * (f->gain[j] + f->plus));
        if (f->stat) f->stat[row] = (ses_real)rstd;
    }
}

void ses_k_rms_ref(ses_exec *x, ses_real *y, ses_real *stat, const ses_real *a, const ses_real *gain,
                   int64_t rows, int64_t cols, double eps, double plus)
{
    forward f = { y, stat, a, gain, rows, cols, eps, plus };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), rms_rows, &f);
}

typedef struct backward {
    ses_dst da;
    ses_real *dgain;
    const ses_real *dy, *a, *stat, *gain;
    int64_t rows, cols;
    double plus;
} backward;

/* da = rstd (g - xhat mean(g xhat)), g = dy gain, xhat = a rstd. */
static void bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range r = ses_chunk(b->rows, ses_chunk_rows(b->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const ses_real *dy = b->dy + row * b->cols, *a = b->a + row * b->cols;
        double rstd = b->stat[row], sum = 0;
        for (int64_t j = 0; j < b->cols; j++) sum += (double)dy[j] * (b->gain[j] + b->plus) * a[j] * rstd;
        for (int64_t j = 0; j < b->cols; j++)
            ses_dst_put(b->da, row * b->cols + j,
                        rstd * ((double)dy[j] * (b->gain[j] + b->plus) - a[j] * rstd * (sum / b->cols)));
    }
}

static void bwd_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range cols = ses_chunk(b->cols, SES_COL_BLOCK, chunk);
    double sum[SES_COL_BLOCK] = { 0 };
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t j = cols.begin; j < cols.end; j++)
            sum[j - cols.begin] += (double)b->dy[row * b->cols + j] * b->a[row * b->cols + j] * b->stat[row];
    for (int64_t j = cols.begin; j < cols.end; j++)
        b->dgain[j] = (ses_real)(b->dgain[j] + sum[j - cols.begin]);
}

void ses_k_rms_bwd_ref(ses_exec *x, ses_dst da, ses_real *dgain, const ses_real *dy, const ses_real *a,
                       const ses_real *stat, const ses_real *gain, int64_t rows, int64_t cols, double plus)
{
    backward b = { da, dgain, dy, a, stat, gain, rows, cols, plus };
    if (dgain) ses_parallel_for(x->pool, ses_chunks(cols, SES_COL_BLOCK), bwd_cols, &b);
    if (da.data) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), bwd_rows, &b);
}
