/* Linear CKA from Gram matrices, computed in blocks of rows: ||X'Y||^2 = sum_ij K_ij L_ij with K = XX',
 * L = YY'. The diagonal needs special treatment only if it is debiased. See cka.h. */
#include "cka.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 };

typedef struct cka_run {
    const ses_cka_input *in;
    size_t count, n, blocks;
    double **x;       /* [count]: centered, [n, width] */
    double *gram;     /* [count, BLOCK, n]: rows of the current block */
    double *row_norm; /* [count, n]: diagonals */
    double *sum;      /* [count, count] */
    size_t block;
} cka_run;

static void center(cka_run *r, size_t k)
{
    size_t w = r->in[k].width;
    const float *from = r->in[k].x;
    double *to = r->x[k];
    for (size_t j = 0; j < w; j++) {
        double mean = 0;
        for (size_t i = 0; i < r->n; i++) mean += (double)from[i * w + j];
        mean /= (double)r->n;
        for (size_t i = 0; i < r->n; i++) to[i * w + j] = (double)from[i * w + j] - mean;
    }
    for (size_t i = 0; i < r->n; i++) {
        double sum = 0;
        for (size_t j = 0; j < w; j++) sum += to[i * w + j] * to[i * w + j];
        r->row_norm[k * r->n + i] = sum;
    }
}

static void center_chunk(void *ctx, int64_t k, void *scratch)
{
    (void)scratch;
    center(ctx, (size_t)k);
}

/* One row of a block of one Gram matrix, from its diagonal on: the matrices are symmetric. */
static void gram_chunk(void *ctx, int64_t chunk, void *scratch)
{
    cka_run *r = ctx;
    size_t k = (size_t)chunk / BLOCK, row = (size_t)chunk % BLOCK, i = r->block * BLOCK + row;
    size_t w = r->in[k].width;
    (void)scratch;
    if (i >= r->n) return;
    const double *a = r->x[k] + i * w;
    double *to = r->gram + (k * BLOCK + row) * r->n;
    for (size_t j = i; j < r->n; j++) {
        const double *b = r->x[k] + j * w;
        double s[4] = { 0 };
        size_t c = 0;
        for (; c + 4 <= w; c += 4)
            for (int t = 0; t < 4; t++) s[t] += a[c + (size_t)t] * b[c + (size_t)t];
        for (; c < w; c++) s[0] += a[c] * b[c];
        to[j] = (s[0] + s[1]) + (s[2] + s[3]);
    }
}

/* Adds the products of a block for one pair of representations; entries beside the diagonal count twice. */
static void pair_chunk(void *ctx, int64_t chunk, void *scratch)
{
    cka_run *r = ctx;
    size_t k = (size_t)chunk / r->count, l = (size_t)chunk % r->count;
    (void)scratch;
    if (l < k) return;
    double sum = 0;
    for (size_t row = 0; row < BLOCK && r->block * BLOCK + row < r->n; row++) {
        size_t i = r->block * BLOCK + row;
        const double *a = r->gram + (k * BLOCK + row) * r->n, *b = r->gram + (l * BLOCK + row) * r->n;
        double beside = 0;
        for (size_t j = i + 1; j < r->n; j++) beside += a[j] * b[j];
        sum += a[i] * b[i] + 2 * beside;
    }
    r->sum[k * r->count + l] += sum;
}

static double product_of(const cka_run *r, size_t k, size_t l, bool debiased)
{
    double n = (double)r->n, sum = k <= l ? r->sum[k * r->count + l] : r->sum[l * r->count + k];
    double rows = 0, all_k = 0, all_l = 0;
    if (!debiased) return sum;
    for (size_t i = 0; i < r->n; i++) {
        double a = r->row_norm[k * r->n + i], b = r->row_norm[l * r->n + i];
        rows += a * b, all_k += a, all_l += b;
    }
    return sum - n / (n - 2) * rows + all_k * all_l / ((n - 1) * (n - 2));
}

static bool allocate(cka_run *r, ses_err *e)
{
    r->x = ses_alloc_array(r->count, sizeof *r->x, e);
    r->gram = ses_alloc_array(r->count * BLOCK * r->n, sizeof *r->gram, e);
    r->row_norm = ses_alloc_array(r->count * r->n, sizeof *r->row_norm, e);
    r->sum = ses_alloc_array(r->count * r->count, sizeof *r->sum, e);
    for (size_t k = 0; r->x && k < r->count; k++)
        if (!(r->x[k] = ses_alloc_array(r->n * r->in[k].width, sizeof(double), e))) return false;
    return r->x && r->gram && r->row_norm && r->sum;
}

bool ses_cka_compute(const ses_cka_input *in, size_t count, size_t n, bool debiased, ses_thread_pool *pool,
                     double *out, ses_err *e)
{
    cka_run r = { .in = in, .count = count, .n = n, .blocks = (n + BLOCK - 1) / BLOCK };
    if (n < 4) return ses_fail(e, SES_EARG, "%zu word%s: CKA needs at least 4", n, n == 1 ? "" : "s");
    bool ok = allocate(&r, e);
    if (ok) {
        ses_parallel_for(pool, (int64_t)count, center_chunk, &r);
        for (r.block = 0; r.block < r.blocks; r.block++) {
            ses_parallel_for(pool, (int64_t)(count * BLOCK), gram_chunk, &r);
            ses_parallel_for(pool, (int64_t)(count * count), pair_chunk, &r);
        }
    }
    for (size_t k = 0; ok && k < count; k++)
        for (size_t l = 0; l < count; l++) {
            double norm = product_of(&r, k, k, debiased) * product_of(&r, l, l, debiased);
            out[k * count + l] = norm > 0 ? product_of(&r, k, l, debiased) / sqrt(norm) : NAN;
        }
    for (size_t k = 0; r.x && k < count; k++) ses_free(r.x[k]);
    ses_free(r.x), ses_free(r.gram), ses_free(r.row_norm), ses_free(r.sum);
    return ok;
}
