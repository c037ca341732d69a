/* Latent semantic analysis: see lsa.h. Matrices [n, width] are row-major: row i of X belongs to word i, row i
 * of Y = A X to text i. */
#include "lsa.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "math/eigen.h"

#include <float.h>
#include <string.h>

enum { ROWS = 64, MAX_PARTS = 64, MAX_DEGREE = 8, MAX_FILLS = 4 };
static const double max_spread = 1e6; /* limit of the ratio of gains: weak directions keep ten digits */

typedef struct subspace {
    const ses_term_counts *a, *t; /* the matrix and its transpose */
    ses_thread_pool *pool;
    int64_t width;
    uint64_t seed;
    double *x, *next, *last; /* [words, width] */
    double *y;               /* [texts, width] */
    double *gram, *rotation; /* [width, width] */
    double *part;            /* [parts, width, width] */
    double *value;           /* [width]: squares of singular values */
} subspace;

static int64_t blocks_of(int64_t n) { return (n + ROWS - 1) / ROWS; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- products ---- */

typedef struct product_job {
    const ses_term_counts *a;
    const double *x, *minus; /* minus may be NULL */
    double *y;
    double scale, by_x0, by_minus; /* y = scale a x + by_x0 x0 - by_minus minus */
    const double *x0;
    int64_t width;
} product_job;

static void product_block(void *ctx, int64_t block, void *scratch)
{
    const product_job *j = ctx;
    (void)scratch;
    int64_t w = j->width, end = least((block + 1) * ROWS, j->a->rows);
    for (int64_t r = block * ROWS; r < end; r++) {
        double *restrict y = j->y + r * w;
        memset(y, 0, (size_t)w * sizeof *y);
        for (int64_t i = j->a->start[r]; i < j->a->start[r + 1]; i++) {
            const double *restrict x = j->x + j->a->col[i] * w;
            double by = j->a->value[i];
            for (int64_t c = 0; c < w; c++) y[c] += by * x[c];
        }
        if (!j->x0) continue;
        for (int64_t c = 0; c < w; c++) y[c] = j->scale * y[c] + j->by_x0 * j->x0[r * w + c];
        for (int64_t c = 0; j->minus && c < w; c++) y[c] -= j->by_minus * j->minus[r * w + c];
    }
}

static void multiply(const subspace *s, product_job j)
{
    j.width = s->width;
    ses_parallel_for(s->pool, blocks_of(j.a->rows), product_block, &j);
}

typedef struct gram_job {
    const double *x;
    int64_t rows, width, parts;
    double *part;
} gram_job;

static void gram_part(void *ctx, int64_t part, void *scratch)
{
    const gram_job *j = ctx;
    (void)scratch;
    int64_t w = j->width, begin = j->rows * part / j->parts, end = j->rows * (part + 1) / j->parts;
    double *g = j->part + part * w * w;
    memset(g, 0, (size_t)(w * w) * sizeof *g);
    for (int64_t r = begin; r < end; r++) {
        const double *restrict x = j->x + r * w;
        for (int64_t a = 0; a < w; a++) {
            double by = x[a], *restrict row = g + a * w;
            for (int64_t b = a; b < w; b++) row[b] += by * x[b];
        }
    }
}

/* gram = x' x */
static void multiply_gram(const subspace *s, const double *x, int64_t rows)
{
    int64_t w = s->width, size = w * w;
    gram_job j = { x, rows, w, rows < 4 * MAX_PARTS ? 1 : least(MAX_PARTS, 1 + (1 << 24) / size), s->part };
    ses_parallel_for(s->pool, j.parts, gram_part, &j);
    memcpy(s->gram, s->part, (size_t)size * sizeof *s->gram);
    for (int64_t p = 1; p < j.parts; p++)
        for (int64_t i = 0; i < size; i++) s->gram[i] += s->part[p * size + i];
    for (int64_t a = 0; a < w; a++)
        for (int64_t b = 0; b < a; b++) s->gram[a * w + b] = s->gram[b * w + a];
}

typedef struct rotate_job {
    double *x;
    const double *rotation; /* [width, width] */
    int64_t rows, width;
    bool triangular; /* x := x R^-1 with the upper triangular R, instead of x rotation */
} rotate_job;

static void rotate_block(void *ctx, int64_t block, void *scratch)
{
    const rotate_job *j = ctx;
    int64_t w = j->width, end = least((block + 1) * ROWS, j->rows);
    double *restrict out = scratch; /* width is at most SES_SCRATCH_BYTES / 8 */
    for (int64_t r = block * ROWS; r < end; r++) {
        double *x = j->x + r * w;
        if (!j->triangular) memset(out, 0, (size_t)w * sizeof *out);
        for (int64_t a = 0; a < w; a++) {
            const double *restrict row = j->rotation + a * w;
            if (j->triangular) {
                double by = x[a] = row[a] > 0 ? x[a] / row[a] : 0;
                for (int64_t c = a + 1; c < w; c++) x[c] -= by * row[c];
            } else {
                double by = x[a];
                for (int64_t c = 0; c < w; c++) out[c] += by * row[c];
            }
        }
        if (!j->triangular) memcpy(x, out, (size_t)w * sizeof *x);
    }
}

static void rotate(const subspace *s, double *x, int64_t rows, bool triangular)
{
    rotate_job j = { x, triangular ? s->gram : s->rotation, rows, s->width, triangular };
    ses_parallel_for(s->pool, blocks_of(rows), rotate_block, &j);
}

/* ---- one round ---- */

/* The upper triangular R with R' R = gram, stored over it; a column that depends on the others gets a zero
 * row. Returns whether there is one. */
static bool cholesky(double *g, int64_t w)
{
    bool dependent = false;
    for (int64_t a = 0; a < w; a++) {
        double pivot = g[a * w + a];
        bool zero = !(pivot > 1e-13);
        double root = zero ? 0 : sqrt(pivot);
        dependent |= zero;
        for (int64_t c = a; c < w; c++) g[a * w + c] = zero ? 0 : g[a * w + c] / root;
        for (int64_t r = a + 1; r < w && !zero; r++) {
            double by = g[a * w + r];
            for (int64_t c = r; c < w; c++) g[r * w + c] -= by * g[a * w + c];
        }
    }
    return dependent;
}

/* Random numbers for the columns of x whose row of R is zero; all: for every column. */
static void fill(const subspace *s, double *x, uint32_t step, bool all)
{
    ses_rng_key key = { s->seed, step, 0x6c7361 };
    double by = 1 / sqrt((double)s->a->cols);
    for (int64_t r = 0; r < s->a->cols; r++)
        for (int64_t c = 0; c < s->width; c++)
            if (all || s->gram[c * s->width + c] <= 0)
                x[r * s->width + c] = by * ses_rand_normal(key, (uint64_t)(r * s->width + c));
}

/* Makes the columns of x orthonormal: Cholesky QR of scaled columns, three times, because the first loses
 * half of the digits. Dependent columns are replaced by random ones. */
static void orthonormalize(const subspace *s, double *x)
{
    int64_t n = s->a->cols, w = s->width;
    uint32_t step = 0;
    multiply_gram(s, x, n);
    for (int64_t c = 0; c < w; c++) {
        double norm = sqrt(s->gram[c * w + c]);
        s->value[c] = norm > 0 ? 1 / norm : 0;
    }
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < w; c++) x[r * w + c] *= s->value[c];
    for (int pass = 0; pass < 3; pass++) {
        multiply_gram(s, x, n);
        bool dependent = cholesky(s->gram, w);
        rotate(s, x, n, true);
        if (!dependent || step == MAX_FILLS) continue;
        fill(s, x, ++step, false);
        pass = -1;
    }
}

/* Rotates the orthonormal columns of x to the singular vectors of A within their span. */
static bool solve(const subspace *s, const ses_kernels *k, ses_err *e)
{
    int64_t w = s->width;
    multiply(s, (product_job){ .a = s->a, .x = s->x, .y = s->y });
    multiply_gram(s, s->y, s->a->rows);
    if (!ses_eigen_symmetric(k, s->gram, w, w, s->value, s->part, e)) return false;
    for (int64_t a = 0; a < w; a++)
        for (int64_t c = 0; c < w; c++) s->rotation[c * w + a] = s->part[a * w + c];
    rotate(s, s->x, s->a->cols, false);
    return true;
}

/* T_d((2 v - edge) / edge), the gain of the filter for a square v of a singular value. */
static double gain(double v, double edge, int degree)
{
    double t = 2 * v / edge - 1;
    return t <= 1 ? 1 : cosh(degree * acosh(t));
}

/* x becomes p(A' A) x with the Chebyshev polynomial that is within [-1, 1] up to the smallest value found and
 * grows fastest above it. The first rounds do not know the values well: their degrees are low. If a value is
 * 0, nothing has to be suppressed. */
static void filter(subspace *s, int64_t topics, int64_t round)
{
    double edge = s->value[s->width - 1], top = s->value[0], wanted = s->value[topics - 1];
    bool powers = round < 2 || !(edge > 1e-12 * top);
    int degree = 1;
    while (!powers && degree < MAX_DEGREE && degree < round &&
           gain(top, edge, degree + 1) <= max_spread * gain(wanted, edge, degree + 1))
        degree++;
    for (int d = 0; d < degree; d++) { /* x: T_d x, last: T_(d-1) x */
        multiply(s, (product_job){ .a = s->a, .x = s->x, .y = s->y });
        product_job j = { .a = s->t, .x = s->y, .y = s->next };
        if (!powers)
            j = (product_job){ .a = s->t,
                               .x = s->y,
                               .y = s->next,
                               .x0 = s->x,
                               .scale = (d ? 4 : 2) / edge,
                               .by_x0 = d ? -2 : -1,
                               .minus = d ? s->last : NULL,
                               .by_minus = 1 };
        multiply(s, j);
        double *oldest = s->last;
        s->last = s->x, s->x = s->next, s->next = oldest;
    }
}

static double largest_change(const double *value, double *before, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        double now = sqrt(fmax(value[i], 0)), base = sqrt(fmax(value[0], 0));
        if (now > 1e-7 * base) most = fmax(most, fabs(now - before[i]) / now);
        before[i] = now;
    }
    return most;
}

static bool iterate(subspace *s, ses_lsa *r, const ses_lsa_settings *o, ses_lsa_progress *progress, void *ctx,
                    ses_err *e)
{
    ses_kernels k = ses_kernels_cpu(SES_ISA_BEST);
    fill(s, s->x, 0, true);
    for (r->rounds = 0; r->rounds < o->rounds;) {
        if (r->rounds) filter(s, o->topics, r->rounds);
        orthonormalize(s, s->x);
        if (!solve(s, &k, e)) return false;
        r->change = largest_change(s->value, r->value, o->topics);
        r->rounds++;
        if (progress && !progress(ctx, r->rounds, r->change))
            return ses_fail(e, SES_EARG, "stopped after %lld rounds", (long long)r->rounds);
        if (r->rounds > 2 && r->change <= o->tolerance) break;
    }
    return true;
}

/* The rows of the result, with their signs. */
static void take_vectors(ses_lsa *r, const subspace *s)
{
    for (int64_t t = 0; t < r->topics; t++) {
        double *v = r->vector + t * r->words, most = 0;
        bool zero = r->value[t] <= 1e-7 * r->value[0];
        for (int64_t i = 0; i < r->words; i++) {
            v[i] = zero ? 0 : s->x[i * s->width + t];
            if (fabs(v[i]) > fabs(most)) most = v[i];
        }
        if (zero) r->value[t] = 0;
        for (int64_t i = 0; most < 0 && i < r->words; i++) v[i] = -v[i];
    }
}

static bool check(const ses_term_counts *b, const ses_lsa_settings *o, ses_err *e)
{
    int64_t most = least(b->rows, b->cols);
    if (o->topics < 1 || o->topics > most)
        return ses_fail(e, SES_EARG, "%lld topics of %lld texts and %lld words; expected 1 to %lld",
                        (long long)o->topics, (long long)b->rows, (long long)b->cols, (long long)most);
    if (o->topics > 20000 || o->oversampling < 0 || o->oversampling > 20000 || o->rounds < 1)
        return ses_fail(e, SES_EARG,
                        "%lld topics, %lld more vectors, %lld rounds; expected at most 20000 of "
                        "both and at least 1 round",
                        (long long)o->topics, (long long)o->oversampling, (long long)o->rounds);
    return o->tolerance >= 0 || ses_fail(e, SES_EARG, "tolerance %g; expected at least 0", o->tolerance);
}

bool ses_lsa_fit(ses_lsa *r, const ses_term_counts *b, const ses_lsa_settings *o, ses_thread_pool *pool,
                 ses_lsa_progress *progress, void *ctx, ses_err *e)
{
    if (!check(b, o, e)) return false;
    ses_term_counts t = { 0 };
    int64_t w = least(o->topics + o->oversampling, least(b->rows, b->cols));
    subspace s = { .a = b, .t = &t, .pool = pool, .width = w, .seed = o->seed };
    size_t row = (size_t)w * sizeof(double), square = (size_t)(w * w) * sizeof(double);
    size_t parts = (size_t)least(MAX_PARTS, 1 + (1 << 24) / (w * w));
    *r = (ses_lsa){ .topics = o->topics, .words = b->cols };
    r->value = ses_alloc_array((size_t)o->topics, sizeof *r->value, e);
    r->vector = r->value ? ses_alloc_array((size_t)o->topics, (size_t)b->cols * sizeof *r->vector, e) : NULL;
    bool ok = r->vector && ses_term_counts_transpose(&t, b, e);
    double *block = ok ? ses_alloc_array((size_t)(3 * b->cols + b->rows + 1), row, e) : NULL;
    double *small = block ? ses_alloc_array(parts + 2, square, e) : NULL;
    if (small) {
        s.x = block, s.next = s.x + b->cols * w, s.last = s.next + b->cols * w;
        s.y = s.last + b->cols * w, s.value = s.y + b->rows * w;
        s.gram = small, s.rotation = small + w * w, s.part = small + 2 * w * w;
        ok = iterate(&s, r, o, progress, ctx, e);
        if (ok) take_vectors(r, &s);
    } else
        ok = false;
    ses_free(block), ses_free(small);
    ses_term_counts_free(&t);
    return ok;
}

void ses_lsa_free(ses_lsa *r)
{
    ses_free(r->value), ses_free(r->vector);
    *r = (ses_lsa){ 0 };
}

/* ---- projection ---- */

typedef struct project_job {
    const ses_lsa *r;
    const ses_term_counts *b;
    double *y;
} project_job;

static void project_block(void *ctx, int64_t block, void *scratch)
{
    const project_job *j = ctx;
    (void)scratch;
    int64_t k_n = j->r->topics, end = least((block + 1) * ROWS, j->b->rows);
    for (int64_t r = block * ROWS; r < end; r++)
        for (int64_t k = 0; k < k_n; k++) {
            double sum = 0;
            for (int64_t i = j->b->start[r]; i < j->b->start[r + 1]; i++)
                sum += j->b->value[i] * j->r->vector[k * j->r->words + j->b->col[i]];
            j->y[r * k_n + k] = sum;
        }
}

void ses_lsa_project(const ses_lsa *r, const ses_term_counts *b, double *y, ses_thread_pool *pool)
{
    ses_parallel_for(pool, blocks_of(b->rows), project_block, &(project_job){ r, b, y });
}
