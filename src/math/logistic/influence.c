/* Influence of training examples: C g' H^-1 g_i, with g the gradient of the tested loss, g_i the gradient of
 * the loss of example i, and H the Hessian of C * losses + |W|^2 / 2. */
#include "influence.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

typedef struct solver {
    const ses_logreg *m;
    const ses_influence_data *d;
    size_t rows, params; /* rows of weights; rows * (width + 1), each row ends with its bias */
    double *p;           /* [n, classes] probabilities */
    double *diagonal, *direction, *product, *residual, *scaled, *solution;
} solver;

/* Error of the outputs: probability minus label, one number per row of weights. */
static void errors(const solver *s, const double *p, int32_t y, double *r)
{
    if (s->rows == 1) {
        r[0] = p[1] - (y == 1);
        return;
    }
    for (size_t k = 0; k < s->rows; k++) r[k] = p[k] - (y == (int32_t)k);
}

static double dot_row(const double *w, const float *x, size_t n)
{
    double sum = w[n]; /* the bias */
    for (size_t j = 0; j < n; j++) sum += w[j] * (double)x[j];
    return sum;
}

static void add_row(double *w, double a, const float *x, size_t n)
{
    for (size_t j = 0; j < n; j++) w[j] += a * (double)x[j];
    w[n] += a;
}

/* t: second derivative of the loss of an example by its outputs, times u. */
static void curvature(const solver *s, const double *p, const double *u, double *t)
{
    if (s->rows == 1) {
        t[0] = p[0] * p[1] * u[0];
        return;
    }
    double mean = 0;
    for (size_t k = 0; k < s->rows; k++) mean += p[k] * u[k];
    for (size_t k = 0; k < s->rows; k++) t[k] = p[k] * (u[k] - mean);
}

static void multiply(const solver *s, const double *v, double *out, double *u)
{
    const ses_influence_data *d = s->d;
    size_t W = d->width + 1;
    double *t = u + s->rows;
    for (size_t i = 0; i < s->params; i++) out[i] = i % W < d->width ? v[i] : 0; /* the penalty */
    for (size_t i = 0; i < d->n; i++) {
        const float *x = d->x + i * d->width;
        for (size_t k = 0; k < s->rows; k++) u[k] = dot_row(v + k * W, x, d->width);
        curvature(s, s->p + i * d->classes, u, t);
        for (size_t k = 0; k < s->rows; k++) add_row(out + k * W, d->c * t[k], x, d->width);
    }
}

/* Diagonal of H, for preconditioning. */
static void set_diagonal(const solver *s)
{
    const ses_influence_data *d = s->d;
    size_t W = d->width + 1;
    for (size_t i = 0; i < s->params; i++) s->diagonal[i] = i % W < d->width ? 1 : 1e-6;
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < s->rows; k++) {
            double p = s->p[i * d->classes + (s->rows == 1 ? 1 : k)], a = d->c * p * (1 - p);
            for (size_t j = 0; j < d->width; j++)
                s->diagonal[k * W + j] += a * pow((double)d->x[i * d->width + j], 2);
            s->diagonal[k * W + d->width] += a;
        }
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Solves H solution = residual by preconditioned conjugate gradients. */
static bool solve(const solver *s, double *u, ses_err *e)
{
    enum { MAX_ITERATIONS = 2000 };
    static const double tolerance = 1e-9;
    double size = sqrt(dot(s->residual, s->residual, s->params)), old = 0;
    if (size == 0) return true;
    for (int i = 0; i < MAX_ITERATIONS; i++) {
        for (size_t j = 0; j < s->params; j++) s->scaled[j] = s->residual[j] / s->diagonal[j];
        double now = dot(s->residual, s->scaled, s->params), b = i ? now / old : 0;
        for (size_t j = 0; j < s->params; j++) s->direction[j] = s->scaled[j] + b * s->direction[j];
        multiply(s, s->direction, s->product, u);
        double a = now / dot(s->direction, s->product, s->params);
        for (size_t j = 0; j < s->params; j++) {
            s->solution[j] += a * s->direction[j];
            s->residual[j] -= a * s->product[j];
        }
        old = now;
        if (sqrt(dot(s->residual, s->residual, s->params)) <= tolerance * size) return true;
    }
    return ses_fail(e, SES_EARG, "influence: no solution after %d iterations; use a smaller C",
                    MAX_ITERATIONS);
}

static bool begin(solver *s, ses_err *e)
{
    double **const part[] = {
        &s->diagonal, &s->direction, &s->product, &s->residual, &s->scaled, &s->solution
    };
    s->p = ses_alloc_array(s->d->n, s->d->classes * sizeof *s->p, e);
    bool ok = s->p != NULL;
    for (size_t i = 0; i < SES_LEN(part) && ok; i++)
        ok = (*part[i] = ses_alloc_array(s->params, sizeof(double), e)) != NULL;
    for (size_t i = 0; ok && i < s->d->n; i++)
        ses_logreg_predict(s->m, s->d->x + i * s->d->width, s->p + i * s->d->classes);
    if (ok) set_diagonal(s);
    return ok;
}

bool ses_influence(const ses_logreg *m, const ses_influence_data *d, const float *test, int32_t label,
                   double *out, ses_err *e)
{
    solver s = { .m = m, .d = d, .rows = m->rows, .params = m->rows * (d->width + 1) };
    size_t W = d->width + 1;
    double *u = ses_alloc_array(2 * s.rows + d->classes, sizeof *u, e);
    bool ok = u && begin(&s, e);
    if (ok) {
        ses_logreg_predict(m, test, u + 2 * s.rows);
        errors(&s, u + 2 * s.rows, label, u);
        for (size_t k = 0; k < s.rows; k++) add_row(s.residual + k * W, u[k], test, d->width);
        ok = solve(&s, u, e);
    }
    for (size_t i = 0; ok && i < d->n; i++) {
        double sum = 0;
        errors(&s, s.p + i * d->classes, d->y[i], u);
        for (size_t k = 0; k < s.rows; k++)
            sum += u[k] * dot_row(s.solution + k * W, d->x + i * d->width, d->width);
        out[i] = d->c * sum;
    }
    ses_free(s.p), ses_free(s.diagonal), ses_free(s.direction), ses_free(s.product);
    ses_free(s.residual), ses_free(s.scaled), ses_free(s.solution), ses_free(u);
    return ok;
}
