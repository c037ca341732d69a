/* Distances between heads: see head_distance.h. */
#include "analysis/heads/head_distance.h"

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "math/eigen.h"

#include <math.h>
#include <string.h>

bool ses_head_distance_init(ses_head_distance *d, int64_t heads, ses_err *e)
{
    *d = (ses_head_distance){ .heads = heads };
    d->sum = ses_alloc_array((size_t)(heads * heads), sizeof *d->sum, e);
    return d->sum != NULL;
}

void ses_head_distance_free(ses_head_distance *d) { ses_free(d->sum); }

double ses_head_distance_at(const ses_head_distance *d, int64_t a, int64_t b)
{
    return d->rows ? d->sum[a * d->heads + b] / (double)d->rows : 0;
}

typedef struct text_rows {
    ses_head_distance *d;
    const ses_attention_text *t;
    const float **map; /* [heads]: [n, keys] */
    double *entropy;   /* [heads, n] */
    bool all;          /* special tokens count, too */
} text_rows;

static double smooth(float a, double n) { return 0.999 * (double)a + 0.001 / n; }

static int64_t keys_of(const text_rows *x, int64_t row) { return x->t->causal ? row + 1 : x->t->keys; }

static void add_entropies(void *ctx, int64_t a, void *scratch)
{
    const text_rows *x = ctx;
    int64_t n = x->t->n;
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        const float *p = x->map[a] + i * x->t->keys;
        double sum = 0, keys = (double)keys_of(x, i);
        for (int64_t j = 0; j < keys_of(x, i); j++) sum -= smooth(p[j], keys) * log(smooth(p[j], keys));
        x->entropy[a * n + i] = sum;
    }
}

/* Entropy of (p + q) / 2. */
static double mixed_entropy(const float *p, const float *q, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        double m = 0.5 * (smooth(p[j], (double)n) + smooth(q[j], (double)n));
        sum -= m * log(m);
    }
    return sum;
}

/* Divergences of head a and the heads after it: H((p + q) / 2) - (H(p) + H(q)) / 2 of each row. */
static void add_head(void *ctx, int64_t a, void *scratch)
{
    const text_rows *x = ctx;
    int64_t n = x->t->n, keys = x->t->keys;
    (void)scratch;
    for (int64_t b = a + 1; b < x->d->heads; b++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            if (x->all || !(x->t->kind[i] & SES_TOKEN_SPECIAL))
                sum += mixed_entropy(x->map[a] + i * keys, x->map[b] + i * keys, keys_of(x, i)) -
                       0.5 * (x->entropy[a * n + i] + x->entropy[b * n + i]);
        x->d->sum[a * x->d->heads + b] += sum;
        x->d->sum[b * x->d->heads + a] += sum;
    }
}

bool ses_head_distance_add(ses_head_distance *d, const ses_attention_text *t, const ses_math *m, ses_err *e)
{
    text_rows x = { .d = d, .t = t, .all = true };
    x.map = ses_alloc_array((size_t)d->heads, sizeof *x.map, e);
    x.entropy = x.map ? ses_alloc_array((size_t)(d->heads * t->n), sizeof *x.entropy, e) : NULL;
    if (!x.entropy) return ses_free(x.map), false;
    int64_t at = 0, rows = 0;
    for (int64_t i = 0; i < t->layers; i++)
        for (int64_t h = 0; h < t->heads[i] && at < d->heads; h++)
            x.map[at++] = t->weight[i] + h * t->n * t->keys;
    for (int64_t i = 0; i < t->n; i++) rows += !(t->kind[i] & SES_TOKEN_SPECIAL);
    x.all = rows == 0;
    d->rows += rows ? rows : t->n;
    ses_parallel_for(m->exec.pool, d->heads, add_entropies, &x);
    ses_parallel_for(m->exec.pool, d->heads, add_head, &x);
    ses_free(x.entropy);
    ses_free(x.map);
    return true;
}

/* ---- scaling ---- */

/* Minus half of the squared distances, with means of rows and columns removed. */
static void center(const double *distance, int64_t n, double *b, double *mean)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++) {
        mean[i] = 0;
        for (int64_t j = 0; j < n; j++) mean[i] += distance[i * n + j] * distance[i * n + j] / (double)n;
        all += mean[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            b[i * n + j] = -0.5 * (distance[i * n + j] * distance[i * n + j] - mean[i] - mean[j] + all);
}

static void put_axis(const double *vector, double value, int64_t n, double *x)
{
    double most = 0, scale = value > 0 ? sqrt(value) : 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(vector[i]) > fabs(most) + 1e-12) most = vector[i];
    for (int64_t i = 0; i < n; i++) x[i] = vector[i] * (most < 0 ? -scale : scale);
}

bool ses_classical_mds(const ses_math *m, const double *distance, int64_t n, double *x, double *y, ses_err *e)
{
    double value[2] = { 0 }, *b = ses_alloc_array((size_t)(n * n), sizeof *b, e),
           *vector = ses_alloc_array(2 * (size_t)n, sizeof *vector, e),
           *mean = ses_alloc_array((size_t)n, sizeof *mean, e);
    bool ok = b && vector && mean;
    if (ok) center(distance, n, b, mean);
    ok = ok && ses_eigen_symmetric(&m->k, b, n, n < 2 ? 1 : 2, value, vector, e);
    if (ok) {
        put_axis(vector, value[0], n, x);
        put_axis(vector + n, n < 2 ? 0 : value[1], n, y);
    }
    ses_free(mean);
    ses_free(vector);
    ses_free(b);
    return ok;
}
