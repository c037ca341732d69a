/* PCA: products of centred blocks of rows in f32, summed in double. */
#include "pca.h"

#include "base/alloc.h"
#include "kernel/chunking.h"
#include "math/eigen.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 768, STRIP = 96 };

typedef struct centring {
    const ses_real *x;
    const ses_real *mean; /* rounded: the covariance changes by the square of the rounding error */
    ses_real *out;
    int64_t n, width;
} centring;

static void centre_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const centring *c = ctx;
    ses_range r = ses_chunk(c->n, 64, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        const ses_real *x = c->x + i * c->width;
        ses_real *out = c->out + i * c->width;
        for (int64_t j = 0; j < c->width; j++) out[j] = x[j] - c->mean[j];
    }
}

static void centre(const ses_math *m, const ses_pca *p, const ses_real *x, int64_t n, ses_real *out)
{
    centring c = { x, p->rounded_mean, out, n, p->width };
    ses_parallel_for(m->exec.pool, ses_chunks(n, 64), centre_rows, &c);
}

typedef struct summing {
    const ses_real *x;
    double *sum; /* [chunks, width] */
    int64_t n, width;
} summing;

static void sum_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const summing *s = ctx;
    ses_range r = ses_chunk(s->n, BLOCK, chunk);
    double *sum = s->sum + chunk * s->width;
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = 0; j < s->width; j++) sum[j] += (double)s->x[i * s->width + j];
}

static bool find_mean(ses_pca *p, const ses_math *m, const ses_real *x, int64_t n, ses_err *e)
{
    int64_t chunks = ses_chunks(n, BLOCK);
    double *sum = ses_alloc_array((size_t)chunks, (size_t)p->width * sizeof *sum, e);
    if (!sum) return false;
    summing s = { x, sum, n, p->width };
    ses_parallel_for(m->exec.pool, chunks, sum_rows, &s);
    for (int64_t c = 0; c < chunks; c++)
        for (int64_t j = 0; j < p->width; j++) p->mean[j] += sum[c * p->width + j];
    ses_free(sum);
    for (int64_t j = 0; j < p->width; j++) {
        p->mean[j] /= (double)n;
        p->rounded_mean[j] = (ses_real)p->mean[j];
        if (isfinite(p->mean[j])) continue;
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(x[i * p->width + j]))
                return ses_fail(e, SES_EARG, "row %lld, column %lld: not a finite number", (long long)i + 1,
                                (long long)j + 1);
        return ses_fail(e, SES_EARG, "column %lld: the sum is not a finite number", (long long)j + 1);
    }
    return true;
}

/* part = x' x for x [rows, width]: the upper triangle by strips of rows, the rest undefined */
static void multiply(const ses_math *m, const ses_real *x, int64_t rows, int64_t width, ses_real *part)
{
    for (int64_t at = 0; at < width; at += STRIP) {
        int64_t strip = width - at < STRIP ? width - at : STRIP;
        ses_gemm g = ses_gemm_tn(part + at * width + at, x + at, x + at, strip, width - at, rows);
        g.ldc = width, g.a_row = 1, g.a_col = width, g.b_row = width, g.b_col = 1;
        ses_exec exec = m->exec;
        m->k.gemm(&exec, &g);
    }
}

/* cov [width, width] += x' x over all rows */
static bool add_products(const ses_pca *p, const ses_math *m, const ses_real *x, int64_t n, double *cov,
                         ses_err *e)
{
    size_t square = (size_t)p->width * (size_t)p->width, rows = (size_t)(n < BLOCK ? n : BLOCK);
    ses_real *block = ses_alloc_array(square + rows * (size_t)p->width, sizeof *block, e);
    if (!block) return false;
    ses_real *part = block + rows * (size_t)p->width;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t step = n - at < BLOCK ? n - at : BLOCK;
        centre(m, p, x + at * p->width, step, block);
        multiply(m, block, step, p->width, part);
        for (int64_t i = 0; i < p->width; i++)
            for (int64_t j = i; j < p->width; j++) cov[i * p->width + j] += (double)part[i * p->width + j];
    }
    for (int64_t i = 0; i < p->width; i++)
        for (int64_t j = 0; j < i; j++) cov[i * p->width + j] = cov[j * p->width + i];
    ses_free(block);
    return true;
}

static void fix_signs(ses_pca *p)
{
    for (int64_t c = 0; c < p->count; c++) {
        double *v = p->component + c * p->width, largest = 0;
        for (int64_t j = 0; j < p->width; j++)
            if (fabs(v[j]) > fabs(largest)) largest = v[j];
        for (int64_t j = 0; largest < 0 && j < p->width; j++) v[j] = -v[j];
    }
}

bool ses_pca_fit(ses_pca *p, const ses_math *m, const ses_real *x, int64_t n, int64_t width, int64_t count,
                 ses_err *e)
{
    *p = (ses_pca){ .width = width, .count = count };
    if (n < 1 || width < 1 || count < 1 || count > width)
        return ses_fail(e, SES_EARG, "%lld components of %lld vectors of %lld numbers", (long long)count,
                        (long long)n, (long long)width);
    size_t w = (size_t)width, c = (size_t)count;
    double *cov = ses_alloc_array(w, w * sizeof *cov, e);
    p->mean = cov ? ses_alloc_array(w * (c + 2) + c, sizeof *p->mean, e) : NULL;
    bool ok = p->mean != NULL;
    if (ok) p->component = p->mean + w, p->variance = p->component + w * c;
    if (ok) p->rounded_mean = (ses_real *)(void *)(p->variance + c);
    ok = ok && find_mean(p, m, x, n, e) && add_products(p, m, x, n, cov, e);
    double divisor = n > 1 ? (double)(n - 1) : 1;
    for (size_t i = 0; ok && i < w * w; i++) cov[i] /= divisor;
    for (size_t i = 0; ok && i < w; i++) p->all_variance += cov[i * w + i];
    ok = ok && ses_eigen_symmetric(&m->k, cov, width, count, p->variance, p->component, e);
    for (int64_t i = 0; ok && i < count; i++)
        if (p->variance[i] < 0) p->variance[i] = 0; /* rounding */
    ses_free(cov);
    if (ok) fix_signs(p);
    if (!ok) ses_pca_free(p);
    return ok;
}

bool ses_pca_project(const ses_pca *p, const ses_math *m, const ses_real *x, int64_t n, ses_real *y,
                     ses_err *e)
{
    size_t loadings = (size_t)(p->count * p->width);
    ses_real *block = ses_alloc_array(loadings + (size_t)(BLOCK * p->width), sizeof *block, e);
    if (!block) return false;
    ses_real *component = block + BLOCK * p->width;
    for (size_t i = 0; i < loadings; i++) component[i] = (ses_real)p->component[i];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t step = n - at < BLOCK ? n - at : BLOCK;
        centre(m, p, x + at * p->width, step, block);
        ses_gemm g = ses_gemm_nt(y + at * p->count, block, component, step, p->count, p->width);
        ses_exec exec = m->exec;
        m->k.gemm(&exec, &g);
    }
    ses_free(block);
    return true;
}

void ses_pca_free(ses_pca *p)
{
    ses_free(p->mean);
    *p = (ses_pca){ 0 };
}
