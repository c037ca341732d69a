/* Reference softmax and log-softmax over rows and their backward passes. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct softmax {
    ses_dst to;
    const ses_real *a, *dy;
    int64_t rows, cols;
} softmax;

static void softmax_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const softmax *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const ses_real *a = c->a + row * c->cols;
        double max = a[0], sum = 0;
        for (int64_t j = 1; j < c->cols; j++) max = fmax(max, a[j]);
        for (int64_t j = 0; j < c->cols; j++) sum += exp(a[j] - max);
        for (int64_t j = 0; j < c->cols; j++) ses_dst_put(c->to, row * c->cols + j, exp(a[j] - max) / sum);
    }
}

void ses_k_softmax_ref(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols)
{
    softmax c = { { y, false }, a, NULL, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), softmax_rows, &c);
}

/* da = y (dy - sum(dy y)) */
static void bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const softmax *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        int64_t at = row * c->cols;
        double dot = 0;
        for (int64_t j = 0; j < c->cols; j++) dot += (double)c->dy[at + j] * c->a[at + j];
        for (int64_t j = 0; j < c->cols; j++)
            ses_dst_put(c->to, at + j, c->a[at + j] * (c->dy[at + j] - dot));
    }
}

void ses_k_softmax_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dy, const ses_real *y, int64_t rows,
                           int64_t cols)
{
    if (!da.data) return;
    softmax c = { da, y, dy, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), bwd_rows, &c);
}

static void log_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const softmax *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const ses_real *a = c->a + row * c->cols;
        double max = a[0], sum = 0;
        for (int64_t j = 1; j < c->cols; j++) max = fmax(max, a[j]);
        for (int64_t j = 0; j < c->cols; j++) sum += exp(a[j] - max);
        for (int64_t j = 0; j < c->cols; j++) ses_dst_put(c->to, row * c->cols + j, a[j] - max - log(sum));
    }
}

void ses_k_log_softmax_ref(ses_exec *x, ses_real *y, const ses_real *a, int64_t rows, int64_t cols)
{
    softmax c = { { y, false }, a, NULL, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), log_rows, &c);
}

/* da = dy - exp(y) sum(dy) */
static void log_bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const softmax *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        int64_t at = row * c->cols;
        double sum = 0;
        for (int64_t j = 0; j < c->cols; j++) sum += c->dy[at + j];
        for (int64_t j = 0; j < c->cols; j++)
            ses_dst_put(c->to, at + j, c->dy[at + j] - exp(c->a[at + j]) * sum);
    }
}

void ses_k_log_softmax_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dy, const ses_real *y, int64_t rows,
                               int64_t cols)
{
    if (!da.data) return;
    softmax c = { da, y, dy, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), log_bwd_rows, &c);
}
