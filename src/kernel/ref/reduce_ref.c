/* Reference sums over rows and over all elements. */
#include "kernel/chunking.h"

typedef struct col_sum {
    ses_real *y;
    const ses_real *a;
    int64_t rows, cols, ld;
} col_sum;

static void sum_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const col_sum *c = ctx;
    ses_range r = ses_chunk(c->cols, SES_COL_BLOCK, chunk);
    double sum[SES_COL_BLOCK] = { 0 };
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = r.begin; j < r.end; j++) sum[j - r.begin] += c->a[i * c->ld + j];
    for (int64_t j = r.begin; j < r.end; j++) c->y[j] = (ses_real)(c->y[j] + sum[j - r.begin]);
}

void ses_k_col_sum_ref(ses_exec *x, ses_dst y, const ses_real *a, int64_t rows, int64_t cols, int64_t ld)
{
    col_sum c = { y.data, a, rows, cols, ld };
    ses_parallel_for(x->pool, ses_chunks(cols, SES_COL_BLOCK), sum_cols, &c);
}

typedef struct squares {
    const ses_real *a;
    int64_t n, size;
    double *part;
} squares;

static void square_part(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    squares *s = ctx;
    ses_range r = ses_chunk(s->n, s->size, chunk);
    double sum = 0;
    for (int64_t i = r.begin; i < r.end; i++) sum += (double)s->a[i] * s->a[i];
    s->part[chunk] = sum;
}

void ses_k_sum_squares_parts_ref(ses_exec *x, double *part, const ses_real *a, int64_t n, int64_t size)
{
    squares s = { a, n, size, part };
    ses_parallel_for(x->pool, ses_chunks(n, size), square_part, &s);
}

double ses_k_sum_squares_ref(ses_exec *x, const ses_real *a, int64_t n)
{
    double part[SES_MAX_PARTIALS], sum = 0;
    int64_t size = ses_partial_size(n), parts = ses_chunks(n, size);
    ses_k_sum_squares_parts_ref(x, part, a, n, size);
    for (int64_t i = 0; i < parts; i++) sum += part[i];
    return sum;
}
