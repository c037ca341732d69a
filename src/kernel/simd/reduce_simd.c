/* Vectorized reductions; kernels.def has the formulas. */
#include "kernel/simd/vec/vec_loop.h"

typedef struct col_sum {
    float *y;
    const float *a;
    int64_t rows, cols, ld;
} col_sum;

/* STRIP vectors of columns per chunk, rows in order, sums of ROW_BLOCK rows in float, sums of the blocks in
 * double. */
enum { STRIP = 8, STRIP_COLS = STRIP * VF_LANES, ROW_BLOCK = 32 };

VF_INLINE void sum_block(const col_sum *c, ses_range rows, int64_t col, int64_t left, vf sum[STRIP])
{
    for (int k = 0; k < STRIP; k++) sum[k] = vf_zero();
    for (int64_t i = rows.begin; i < rows.end; i++) {
        const float *a = c->a + i * c->ld + col;
        for (int k = 0; k < STRIP; k++) {
            int64_t from = k * VF_LANES;
            if (from >= left) break;
            sum[k] = vf_add(sum[k], vf_get(a + from, left - from));
        }
    }
}

static void sum_strip(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const col_sum *c = ctx;
    ses_range cols = ses_chunk(c->cols, STRIP_COLS, chunk);
    int64_t left = cols.end - cols.begin;
    double total[STRIP_COLS] = { 0 };
    for (int64_t i = 0; i < c->rows; i += ROW_BLOCK) {
        ses_range rows = { i, c->rows - i < ROW_BLOCK ? c->rows : i + ROW_BLOCK };
        vf sum[STRIP];
        float part[STRIP_COLS];
        if (left == STRIP_COLS) /* common case: constant bounds */
            sum_block(c, rows, cols.begin, STRIP_COLS, sum);
        else
            sum_block(c, rows, cols.begin, left, sum);
        for (int k = 0; k < STRIP; k++) vf_store(part + k * VF_LANES, sum[k]);
        for (int j = 0; j < STRIP_COLS; j++) total[j] += (double)part[j];
    }
    for (int64_t j = 0; j < left; j++) c->y[cols.begin + j] = (float)(c->y[cols.begin + j] + total[j]);
}

void VF_NAME(ses_k_col_sum)(ses_exec *x, ses_dst y, const float *a, int64_t rows, int64_t cols, int64_t ld)
{
    col_sum c = { y.data, a, rows, cols, ld };
    ses_parallel_for(x->pool, ses_chunks(cols, STRIP_COLS), sum_strip, &c);
}

typedef struct squares {
    const float *a;
    int64_t n, size;
    double *part;
} squares;

/* Squares are summed in double, so that none overflows, in SQUARES independent sums that the compiler
 * vectorizes. */
static void square_part(void *ctx, int64_t chunk, void *scratch)
{
    enum { SQUARES = 32 };
    (void)scratch;
    squares *s = ctx;
    ses_range r = ses_chunk(s->n, s->size, chunk);
    double sum[SQUARES] = { 0 }, total = 0;
    int64_t i = r.begin;
    for (; r.end - i >= SQUARES; i += SQUARES)
        for (int k = 0; k < SQUARES; k++) sum[k] += (double)s->a[i + k] * (double)s->a[i + k];
    for (int k = 0; i < r.end; i++, k++) sum[k] += (double)s->a[i] * (double)s->a[i];
    for (int k = 0; k < SQUARES; k++) total += sum[k];
    s->part[chunk] = total;
}

void VF_NAME(ses_k_sum_squares_parts)(ses_exec *x, double *part, const float *a, int64_t n, int64_t size)
{
    squares s = { a, n, size, part };
    ses_parallel_for(x->pool, ses_chunks(n, size), square_part, &s);
}

double VF_NAME(ses_k_sum_squares)(ses_exec *x, const float *a, int64_t n)
{
    double part[SES_MAX_PARTIALS], sum = 0;
    int64_t size = ses_partial_size(n), parts = ses_chunks(n, size);
    VF_NAME(ses_k_sum_squares_parts)(x, part, a, n, size);
    for (int64_t i = 0; i < parts; i++) sum += part[i];
    return sum;
}
