/* Reference kernels of block: sums over and factors of the blocks of a matrix. */
#include "kernel/chunking.h"

/* Neighboring blocks per chunk of a sum; their sums lie on the stack. */
enum { STRIP = 64 };

typedef struct block_job {
    ses_real *out;
    const ses_real *a, *b;
    ses_block_grid g;
} block_job;

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

/* The blocks of a strip of one row of blocks. */
static void dot_strip(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const block_job *d = ctx;
    const ses_block_grid *g = &d->g;
    int64_t across = ses_block_grid_cols(g), strips = ses_chunks(across, STRIP);
    int64_t grid_row = chunk / strips, first = chunk % strips * STRIP, n = min(STRIP, across - first);
    int64_t end = min(g->rows, (grid_row + 1) * g->block_rows);
    double sum[STRIP] = { 0 };
    for (int64_t r = grid_row * g->block_rows; r < end; r++) {
        const ses_real *a = d->a + r * g->ld, *b = d->b + r * g->ld;
        for (int64_t k = 0; k < n; k++) {
            int64_t to = min(g->cols, (first + k + 1) * g->block_cols);
            for (int64_t j = (first + k) * g->block_cols; j < to; j++) sum[k] += (double)a[j] * (double)b[j];
        }
    }
    ses_real *out = d->out + grid_row * across + first;
    for (int64_t k = 0; k < n; k++) out[k] = (ses_real)((double)out[k] + sum[k]);
}

void ses_k_block_dot_ref(ses_exec *x, ses_real *sum, const ses_real *a, const ses_real *b, ses_block_grid g)
{
    block_job d = { sum, a, b, g };
    int64_t strips = ses_chunks(ses_block_grid_cols(&g), STRIP);
    ses_parallel_for(x->pool, ses_block_grid_rows(&g) * strips, dot_strip, &d);
}

static void scale_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const block_job *d = ctx;
    const ses_block_grid *g = &d->g;
    int64_t across = ses_block_grid_cols(g);
    ses_range rows = ses_chunk(g->rows, ses_chunk_rows(g->cols), chunk);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const ses_real *factor = d->b + r / g->block_rows * across, *a = d->a + r * g->ld;
        ses_real *y = d->out + r * g->ld;
        for (int64_t k = 0; k < across; k++) {
            int64_t to = min(g->cols, (k + 1) * g->block_cols);
            for (int64_t j = k * g->block_cols; j < to; j++) y[j] = a[j] * factor[k];
        }
    }
}

void ses_k_block_scale_ref(ses_exec *x, ses_real *y, const ses_real *a, const ses_real *factor,
                           ses_block_grid g)
{
    block_job d = { y, a, factor, g };
    ses_parallel_for(x->pool, ses_chunks(g.rows, ses_chunk_rows(g.cols)), scale_rows, &d);
}
