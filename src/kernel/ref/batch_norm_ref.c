/* Reference batch norm and its backward pass, column by column. */
#include "kernel/chunking.h"

#include <math.h>

enum { COLS = 64 }; /* columns per chunk */

typedef struct forward {
    ses_real *y, *stat, *mean, *var;
    const ses_real *a, *gain, *bias;
    int64_t rows, cols;
    ses_batch_norm_spec o;
} forward;

static void batch_norm_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const forward *f = ctx;
    ses_range r = ses_chunk(f->cols, COLS, chunk);
    for (int64_t j = r.begin; j < r.end; j++) {
        double mean = (double)f->mean[j], var = fmax(0, (double)f->var[j]), n = (double)f->rows;
        if (f->o.train) {
            mean = var = 0;
            for (int64_t i = 0; i < f->rows; i++) mean += (double)f->a[i * f->cols + j] / n;
            for (int64_t i = 0; i < f->rows; i++) var += pow((double)f->a[i * f->cols + j] - mean, 2);
            f->mean[j] += (ses_real)(f->o.momentum * (mean - (double)f->mean[j]));
            f->var[j] += (ses_real)(f->o.momentum * (var / (n - 1) - (double)f->var[j]));
            var /= n;
        }
        double rstd = 1 / sqrt(var + f->o.eps);
        f->stat[2 * j] = (ses_real)mean, f->stat[2 * j + 1] = (ses_real)rstd;
        for (int64_t i = 0; i < f->rows; i++) {
            double xhat = ((double)f->a[i * f->cols + j] - mean) * rstd;
            f->y[i * f->cols + j] = (ses_real)(xhat * (double)f->gain[j] + (double)f->bias[j]);
        }
    }
}

void ses_k_batch_norm_ref(ses_exec *x, ses_real *y, ses_real *stat, const ses_real *a, const ses_real *gain,
                          const ses_real *bias, ses_real *mean, ses_real *var, int64_t rows, int64_t cols,
                          const ses_batch_norm_spec *o)
{
    forward f = { y, stat, mean, var, a, gain, bias, rows, cols, *o };
    ses_parallel_for(x->pool, ses_chunks(cols, COLS), batch_norm_cols, &f);
}

typedef struct backward {
    ses_dst da;
    ses_real *dgain, *dbias;
    const ses_real *dy, *a, *stat, *gain;
    int64_t rows, cols;
    bool train;
} backward;

static void batch_norm_bwd_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range r = ses_chunk(b->cols, COLS, chunk);
    for (int64_t j = r.begin; j < r.end; j++) {
        double mean = (double)b->stat[2 * j], rstd = (double)b->stat[2 * j + 1], sum = 0, along = 0;
        for (int64_t i = 0; i < b->rows; i++) {
            double dy = (double)b->dy[i * b->cols + j];
            sum += dy, along += dy * ((double)b->a[i * b->cols + j] - mean) * rstd;
        }
        if (b->dgain) b->dgain[j] += (ses_real)along;
        if (b->dbias) b->dbias[j] += (ses_real)sum;
        double n = (double)b->rows, by = rstd * (double)b->gain[j];
        if (!b->train) sum = along = 0; /* the statistics are constants */
        for (int64_t i = 0; b->da.data && i < b->rows; i++) {
            int64_t k = i * b->cols + j;
            double xhat = ((double)b->a[k] - mean) * rstd,
                   d = by * ((double)b->dy[k] - sum / n - xhat * along / n);
            b->da.data[k] = (ses_real)(b->da.accumulate ? (double)b->da.data[k] + d : d);
        }
    }
}

void ses_k_batch_norm_bwd_ref(ses_exec *x, ses_dst da, ses_real *dgain, ses_real *dbias, const ses_real *dy,
                              const ses_real *a, const ses_real *stat, const ses_real *gain, int64_t rows,
                              int64_t cols, bool train)
{
    backward b = { da, dgain, dbias, dy, a, stat, gain, rows, cols, train };
    ses_parallel_for(x->pool, ses_chunks(cols, COLS), batch_norm_bwd_cols, &b);
}
