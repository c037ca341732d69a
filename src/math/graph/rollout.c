/* Rollout of attention: see rollout.h. */
#include "rollout.h"

#include "base/thread_pool.h"

#include <string.h>

void ses_head_mean(const float *weights, int64_t heads, int64_t rows, int64_t cols, double *mean)
{
    int64_t n = rows * cols;
    memset(mean, 0, (size_t)n * sizeof *mean);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++) mean[i] += (double)weights[h * n + i];
    for (int64_t i = 0; i < n; i++) mean[i] /= (double)heads;
}

void ses_normalize_rows(double *a, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, a += cols) {
        double sum = 0;
        for (int64_t j = 0; j < cols; j++) sum += a[j];
        for (int64_t j = 0; sum > 0 && j < cols; j++) a[j] /= sum;
    }
}

void ses_add_residual(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) a[i * n + i] += 1;
    ses_normalize_rows(a, n, n);
}

typedef struct product {
    const double *a, *b;
    double *out;
    int64_t n, k, cols;
} product;

enum { CHUNK_ROWS = 8 };

static void product_rows(void *ctx, int64_t chunk, void *scratch)
{
    const product *p = ctx;
    (void)scratch;
    int64_t end = (chunk + 1) * CHUNK_ROWS < p->n ? (chunk + 1) * CHUNK_ROWS : p->n;
    for (int64_t i = chunk * CHUNK_ROWS; i < end; i++) {
        double *restrict out = p->out + i * p->cols;
        memset(out, 0, (size_t)p->cols * sizeof *out);
        for (int64_t j = 0; j < p->k; j++) {
            const double x = p->a[i * p->k + j], *restrict b = p->b + j * p->cols;
            for (int64_t c = 0; x != 0 && c < p->cols; c++) out[c] += x * b[c];
        }
    }
}

void ses_rollout_product(const double *a, const double *b, int64_t n, int64_t k, int64_t cols, double *out,
                         struct ses_thread_pool *pool)
{
    product p = { a, b, out, n, k, cols };
    int64_t chunks = (n + CHUNK_ROWS - 1) / CHUNK_ROWS;
    if (pool) {
        ses_parallel_for(pool, chunks, product_rows, &p);
        return;
    }
    for (int64_t i = 0; i < chunks; i++) product_rows(&p, i, NULL);
}
