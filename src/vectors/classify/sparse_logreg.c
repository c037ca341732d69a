/* Logistic regression on sparse features: loss and gradient for L-BFGS. */
#include "sparse_logreg.h"

#include "base/alloc.h"
#include "math/lbfgs.h"

#include <math.h>
#include <string.h>

enum { TEXTS = 128, FEATURES = 4096, MAX_ITERATIONS = 1000 };
static const double TOLERANCE = 1e-7; /* largest component of the mean loss's gradient */

/* ---- the features by column ---- */

bool ses_sparse_texts_open(ses_sparse_texts *s, const ses_bags *b, size_t width, ses_err *e)
{
    size_t values = b->begin[b->n];
    *s = (ses_sparse_texts){ .bags = b, .width = width };
    s->column = ses_alloc_array(width + 2, sizeof *s->column, e);
    s->text = ses_alloc_array(values + 1, sizeof *s->text, e);
    s->value = ses_alloc_array(values + 1, sizeof *s->value, e);
    if (!s->column || !s->text || !s->value) return ses_sparse_texts_free(s), false;
    for (size_t i = 0; i < values; i++) s->column[b->feature[i] + 2]++;
    for (size_t f = 1; f < width + 2; f++) s->column[f] += s->column[f - 1];
    for (size_t i = 0; i < b->n; i++)
        for (size_t k = b->begin[i]; k < b->begin[i + 1]; k++) {
            size_t at = s->column[b->feature[k] + 1]++; /* becomes the begin of the next column */
            s->text[at] = (uint32_t)i;
            s->value[at] = b->count[k];
        }
    return true;
}

void ses_sparse_texts_free(ses_sparse_texts *s)
{
    ses_free(s->column);
    ses_free(s->text);
    ses_free(s->value);
    *s = (ses_sparse_texts){ 0 };
}

/* ---- loss and gradient ---- */

typedef struct problem {
    ses_sparse_fit *f;
    size_t n, width, rows;
    const double *w; /* [rows, width], then biases */
    double *g;
    double *scaled;  /* [rows, width]: w times scale */
    double *d;       /* [rows, n]: scores, then derivatives of the loss by them */
    double *partial; /* one sum per chunk */
    int64_t evaluations;
    bool stopped;
} problem;

static size_t chunks_of(size_t n, size_t size) { return (n + size - 1) / size; }
static size_t end_of(int64_t chunk, size_t size, size_t n)
{
    size_t end = ((size_t)chunk + 1) * size;
    return end < n ? end : n;
}

static void scale_chunk(void *ctx, int64_t chunk, void *scratch)
{
    problem *p = ctx;
    const double *scale = p->f->scale;
    double square = 0;
    (void)scratch;
    for (size_t r = 0; r < p->rows; r++)
        for (size_t f = (size_t)chunk * FEATURES; f < end_of(chunk, FEATURES, p->width); f++) {
            double w = p->w[r * p->width + f];
            square += w * w;
            p->scaled[r * p->width + f] = scale ? w * scale[f] : w;
        }
    p->partial[chunk] = square;
}

/* Returns the loss of text i; its scores become derivatives. */
static double loss_of(problem *p, size_t i)
{
    double *d = p->d + i;
    size_t y = (size_t)p->f->y[i], n = p->n;
    if (p->rows == 1) { /* log(1 + exp(-s)), s = +-score by the label */
        double s = y ? *d : -*d, small = exp(-fabs(s)), q = s > 0 ? small / (1 + small) : 1 / (1 + small);
        *d = y ? -q : q;
        return log1p(small) + (s > 0 ? 0 : -s);
    }
    double max = d[0], sum = 0, right = d[y * n];
    for (size_t r = 1; r < p->rows; r++) max = fmax(max, d[r * n]);
    for (size_t r = 0; r < p->rows; r++) sum += exp(d[r * n] - max);
    double log_sum = max + log(sum);
    for (size_t r = 0; r < p->rows; r++) d[r * n] = exp(d[r * n] - log_sum) - (r == y ? 1 : 0);
    return log_sum - right;
}

static void score_chunk(void *ctx, int64_t chunk, void *scratch)
{
    problem *p = ctx;
    const ses_bags *b = p->f->x->bags;
    double loss = 0;
    (void)scratch;
    for (size_t i = (size_t)chunk * TEXTS; i < end_of(chunk, TEXTS, p->n); i++) {
        for (size_t r = 0; r < p->rows; r++) {
            const double *w = p->scaled + r * p->width;
            double sum = p->w[p->rows * p->width + r];
            for (size_t k = b->begin[i]; k < b->begin[i + 1]; k++)
                sum += w[b->feature[k]] * (double)b->count[k];
            p->d[r * p->n + i] = sum;
        }
        loss += loss_of(p, i);
    }
    p->partial[chunk] = loss;
}

static void gradient_chunk(void *ctx, int64_t chunk, void *scratch)
{
    problem *p = ctx;
    const ses_sparse_texts *x = p->f->x;
    double mean = 1 / (double)p->n, penalty = mean / p->f->c;
    (void)scratch;
    for (size_t r = 0; r < p->rows; r++) {
        const double *d = p->d + r * p->n;
        for (size_t f = (size_t)chunk * FEATURES; f < end_of(chunk, FEATURES, p->width); f++) {
            double sum = 0;
            for (size_t k = x->column[f]; k < x->column[f + 1]; k++)
                sum += d[x->text[k]] * (double)x->value[k];
            size_t at = r * p->width + f;
            p->g[at] = sum * mean * (p->f->scale ? p->f->scale[f] : 1) + penalty * p->w[at];
        }
    }
}

static double sum_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* Mean loss plus penalty at w, gradient in g. */
static double value(void *ctx, const double *w, double *g)
{
    problem *p = ctx;
    ses_sparse_fit *f = p->f;
    size_t by_text = chunks_of(p->n, TEXTS), by_feature = chunks_of(p->width, FEATURES);
    p->w = w;
    p->g = g;
    if (p->stopped) { /* a stationary point: L-BFGS ends */
        memset(g, 0, p->rows * (p->width + 1) * sizeof *g);
        return 0;
    }
    ses_parallel_for(f->pool, (int64_t)by_feature, scale_chunk, p);
    double square = sum_of(p->partial, by_feature);
    ses_parallel_for(f->pool, (int64_t)by_text, score_chunk, p);
    f->loss = sum_of(p->partial, by_text) / (double)p->n;
    ses_parallel_for(f->pool, (int64_t)by_feature, gradient_chunk, p);
    for (size_t r = 0; r < p->rows; r++)
        g[p->rows * p->width + r] = sum_of(p->d + r * p->n, p->n) / (double)p->n;
    p->evaluations++;
    if (f->progress && !f->progress(f->ctx, p->evaluations, MAX_ITERATIONS, f->loss)) p->stopped = true;
    return f->loss + 0.5 * square / f->c / (double)p->n;
}

bool ses_sparse_fit_run(ses_sparse_fit *f, ses_err *e)
{
    problem p = {
        .f = f, .n = f->x->bags->n, .width = f->x->width, .rows = f->classes == 2 ? 1 : f->classes
    };
    size_t weights, all, partial = chunks_of(p.n, TEXTS) + chunks_of(p.width, FEATURES);
    ses_lbfgs_result r = { 0 };
    if (!ses_mul_size(p.rows, p.width, &weights) || !ses_add_size(weights, p.rows, &all))
        return ses_fail(e, SES_ENOMEM, "%zu classes of %zu features", f->classes, p.width);
    double *x = ses_alloc_array(all, sizeof *x, e);
    p.scaled = ses_alloc_array(weights + 1, sizeof *p.scaled, e);
    p.d = ses_alloc_array(p.rows * p.n + 1, sizeof *p.d, e);
    p.partial = ses_alloc_array(partial, sizeof *p.partial, e);
    ses_lbfgs_problem q = { .value = value, .ctx = &p };
    bool ok = x && p.scaled && p.d && p.partial &&
              ses_lbfgs_minimize(x, all, &q, TOLERANCE, MAX_ITERATIONS, &r, e) && !p.stopped;
    if (ok) {
        memcpy(f->weight, x, weights * sizeof *x);
        memcpy(f->bias, x + weights, p.rows * sizeof *x);
    }
    f->iterations = r.iterations;
    f->converged = r.converged;
    ses_free(x);
    ses_free(p.scaled);
    ses_free(p.d);
    ses_free(p.partial);
    return ok;
}
