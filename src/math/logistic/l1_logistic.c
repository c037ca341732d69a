/* Logistic regression with an L1 penalty: see l1_logistic.h.
 *
 * Newton steps on an active set of features, as in newGLMNET (Yuan, Ho, Lin 2012): coordinate descent solves
 * the quadratic model of the loss plus the penalty, a line search shortens the step. When the set is solved,
 * features that violate the optimality conditions join it. */
#include "l1_logistic.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 64, MAX_ROUNDS = 200, MAX_NEWTON = 100, MAX_SWEEPS = 200, MAX_HALVINGS = 40 };

static const double TOLERANCE = 1e-7; /* violation of the optimality conditions; the penalty's slope is 1 */

typedef struct solver {
    const ses_l1_problem *p;
    double *mean, *scale; /* [features]: z = (x - mean) * scale; scale 0: the feature is constant */
    double *w, b;
    double *margin, *residual, *curvature; /* [n]: z.w + b, C (p - y), C p (1 - p) */
    double *change;                        /* [n]: z.d of the step d */
    double *gradient;                      /* [features] */
    double *step;                          /* [features]: of the active ones */
    size_t *active, n_active;
    uint8_t *is_active;
} solver;

static double z_at(const solver *s, size_t k, size_t i)
{
    return ((double)s->p->x[k * s->p->stride + i] - s->mean[k]) * s->scale[k];
}

static void standardize(void *ctx, int64_t chunk, void *scratch)
{
    solver *s = ctx;
    size_t n = s->p->n, end = ((size_t)chunk + 1) * CHUNK;
    (void)scratch;
    for (size_t k = (size_t)chunk * CHUNK; k < end && k < s->p->features; k++) {
        const float *x = s->p->x + k * s->p->stride;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < n; i++) sum += (double)x[i];
        s->mean[k] = sum / (double)n;
        for (size_t i = 0; i < n; i++) {
            double d = (double)x[i] - s->mean[k];
            squares += d * d;
        }
        double deviation = sqrt(squares / (double)n);
        bool constant = deviation <= 1e-12 * (1 + fabs(s->mean[k]));
        s->scale[k] = constant ? 0 : 1 / deviation;
    }
}

/* The gradient of the loss by every feature. */
static void differentiate(void *ctx, int64_t chunk, void *scratch)
{
    solver *s = ctx;
    size_t end = ((size_t)chunk + 1) * CHUNK;
    (void)scratch;
    for (size_t k = (size_t)chunk * CHUNK; k < end && k < s->p->features; k++) {
        double sum = 0;
        for (size_t i = 0; s->scale[k] > 0 && i < s->p->n; i++) sum += s->residual[i] * z_at(s, k, i);
        s->gradient[k] = sum;
    }
}

/* log(1 + exp(x)) */
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

/* The loss at margin + t change. */
static double loss_at(const solver *s, double t)
{
    double sum = 0;
    for (size_t i = 0; i < s->p->n; i++) {
        double m = s->margin[i] + t * s->change[i];
        sum += softplus(s->p->positive[i] ? -m : m);
    }
    return s->p->c * sum;
}

static void linearize(solver *s)
{
    for (size_t i = 0; i < s->p->n; i++) {
        double q = 1 / (1 + exp(-s->margin[i]));
        s->residual[i] = s->p->c * (q - s->p->positive[i]);
        s->curvature[i] = s->p->c * q * (1 - q);
    }
}

/* How far w_k is from optimal: 0 if the gradient and the slope of the penalty cancel out. */
static double violation(double w, double g)
{
    double a = fabs(g) - 1;
    return w > 0 ? fabs(g + 1) : w < 0 ? fabs(g - 1) : a > 0 ? a : 0;
}

/* The change of w that minimizes g d + h d^2 / 2 + |w + d|. */
static double coordinate_step(double w, double g, double h)
{
    if (g + 1 <= h * w) return -(g + 1) / h;
    if (g - 1 >= h * w) return -(g - 1) / h;
    return -w;
}

/* One sweep of coordinate descent on the quadratic model; the greatest change of a gradient it made. */
static double sweep(solver *s, double *step_b, const double *diagonal, double diagonal_b)
{
    size_t n = s->p->n;
    double g = 0, most = 0;
    for (size_t i = 0; i < n; i++) g += s->residual[i] + s->curvature[i] * s->change[i];
    double d = -g / diagonal_b;
    for (size_t i = 0; i < n; i++) s->change[i] += d;
    *step_b += d;
    most = fabs(d) * diagonal_b;
    for (size_t a = 0; a < s->n_active; a++) {
        size_t k = s->active[a];
        g = 0;
        for (size_t i = 0; i < n; i++) g += (s->residual[i] + s->curvature[i] * s->change[i]) * z_at(s, k, i);
        d = coordinate_step(s->w[k] + s->step[k], g, diagonal[a]);
        if (d == 0) continue;
        s->step[k] += d;
        for (size_t i = 0; i < n; i++) s->change[i] += d * z_at(s, k, i);
        if (fabs(d) * diagonal[a] > most) most = fabs(d) * diagonal[a];
    }
    return most;
}

/* Takes the step, halved until the objective falls enough. False: it does not fall any more. */
static bool line_search(solver *s, double step_b)
{
    double slope = 0, before = 0, from = loss_at(s, 0), t = 1;
    for (size_t i = 0; i < s->p->n; i++) slope += s->residual[i] * s->change[i];
    for (size_t a = 0; a < s->n_active; a++) {
        size_t k = s->active[a];
        slope += fabs(s->w[k] + s->step[k]) - fabs(s->w[k]);
        before += fabs(s->w[k]);
    }
    for (int halvings = 0; halvings < MAX_HALVINGS; halvings++, t /= 2) {
        double after = 0;
        for (size_t a = 0; a < s->n_active; a++)
            after += fabs(s->w[s->active[a]] + t * s->step[s->active[a]]);
        if (loss_at(s, t) + after > from + before + 0.01 * t * slope + 1e-13 * (from + before)) continue;
        for (size_t i = 0; i < s->p->n; i++) s->margin[i] += t * s->change[i];
        for (size_t a = 0; a < s->n_active; a++) s->w[s->active[a]] += t * s->step[s->active[a]];
        s->b += t * step_b;
        return true;
    }
    return false;
}

/* The greatest violation of the active features and of the intercept. */
static double active_violation(const solver *s)
{
    double g = 0, most;
    for (size_t i = 0; i < s->p->n; i++) g += s->residual[i];
    most = fabs(g);
    for (size_t a = 0; a < s->n_active; a++) {
        size_t k = s->active[a];
        g = 0;
        for (size_t i = 0; i < s->p->n; i++) g += s->residual[i] * z_at(s, k, i);
        double v = violation(s->w[k], g);
        if (v > most) most = v;
    }
    return most;
}

/* Minimizes over the active features. */
static bool solve_active(solver *s, double *diagonal)
{
    size_t n = s->p->n;
    for (int newton = 0; newton < MAX_NEWTON; newton++) {
        linearize(s);
        double most = active_violation(s), step_b = 0, diagonal_b = 1e-12;
        if (most < TOLERANCE) return true;
        for (size_t i = 0; i < n; i++) diagonal_b += s->curvature[i], s->change[i] = 0;
        for (size_t a = 0; a < s->n_active; a++) {
            size_t k = s->active[a];
            s->step[k] = 0, diagonal[a] = 1e-12;
            for (size_t i = 0; i < n; i++) diagonal[a] += s->curvature[i] * z_at(s, k, i) * z_at(s, k, i);
        }
        for (int i = 0; i < MAX_SWEEPS; i++)
            if (sweep(s, &step_b, diagonal, diagonal_b) < 0.1 * (most < 1 ? most * most : 1) + 1e-10) break;
        if (!line_search(s, step_b)) return false;
    }
    return false;
}

/* Lets features that violate the conditions join; features whose weight is 0 leave. False: none does. */
static bool choose_active(solver *s, ses_thread_pool *pool)
{
    size_t kept = 0, joined = 0;
    linearize(s);
    ses_parallel_for(pool, (int64_t)((s->p->features + CHUNK - 1) / CHUNK), differentiate, s);
    for (size_t a = 0; a < s->n_active; a++) {
        size_t k = s->active[a];
        s->is_active[k] = s->w[k] != 0;
        if (s->is_active[k]) s->active[kept++] = k;
    }
    /* only features whose violation is at least half of the greatest one join: the set stays small */
    double most = 0;
    for (size_t k = 0; k < s->p->features; k++)
        if (!s->is_active[k] && violation(0, s->gradient[k]) > most) most = violation(0, s->gradient[k]);
    for (size_t k = 0; most > 2 * TOLERANCE && k < s->p->features; k++)
        if (!s->is_active[k] && violation(0, s->gradient[k]) >= most / 2)
            s->is_active[k] = 1, s->active[kept++] = k, joined++;
    s->n_active = kept;
    return joined > 0;
}

static bool open_solver(solver *s, const ses_l1_problem *p, ses_l1_fit *fit, ses_err *e)
{
    *s = (solver){ .p = p, .w = fit->weight };
    double **per_feature[] = { &s->mean, &s->scale, &s->gradient, &s->step };
    double **per_sample[] = { &s->margin, &s->residual, &s->curvature, &s->change };
    for (size_t i = 0; i < SES_LEN(per_feature); i++)
        if (!(*per_feature[i] = ses_alloc_array(p->features, sizeof(double), e))) return false;
    for (size_t i = 0; i < SES_LEN(per_sample); i++)
        if (!(*per_sample[i] = ses_alloc_array(p->n, sizeof(double), e))) return false;
    s->active = ses_alloc_array(p->features, sizeof *s->active, e);
    s->is_active = s->active ? ses_alloc_array(p->features, 1, e) : NULL;
    memset(fit->weight, 0, p->features * sizeof *fit->weight);
    return s->is_active != NULL;
}

static void close_solver(solver *s)
{
    void *part[] = { s->mean,     s->scale,  s->gradient, s->step,      s->margin,
                     s->residual, s->change, s->active,   s->curvature, s->is_active };
    for (size_t i = 0; i < SES_LEN(part); i++) ses_free(part[i]);
}

static bool check_values(const solver *s, ses_err *e)
{
    size_t positives = 0;
    for (size_t i = 0; i < s->p->n; i++) positives += s->p->positive[i];
    if (!positives || positives == s->p->n)
        return ses_fail(e, SES_EARG, "%zu of %zu samples are positive: expected some, but not all", positives,
                        s->p->n);
    for (size_t k = 0; k < s->p->features; k++)
        if (!isfinite(s->mean[k]) || !isfinite(s->scale[k]))
            return ses_fail(e, SES_EARG, "feature %zu: a value is not finite", k);
    return true;
}

bool ses_l1_logistic(const ses_l1_problem *p, ses_thread_pool *pool, ses_l1_fit *fit, ses_err *e)
{
    solver s;
    double *diagonal = ses_alloc_array(p->features, sizeof *diagonal, e);
    bool ok = open_solver(&s, p, fit, e) && diagonal;
    if (ok) ses_parallel_for(pool, (int64_t)((p->features + CHUNK - 1) / CHUNK), standardize, &s);
    ok = ok && check_values(&s, e);
    fit->converged = false;
    for (int round = 0; ok && round < MAX_ROUNDS; round++) {
        bool solved = solve_active(&s, diagonal);
        if (choose_active(&s, pool)) continue;
        fit->converged = solved;
        break;
    }
    fit->intercept = s.b, fit->nonzero = fit->right = 0;
    for (size_t k = 0; ok && k < p->features; k++) fit->nonzero += fit->weight[k] != 0;
    for (size_t i = 0; ok && i < p->n; i++) fit->right += (s.margin[i] > 0) == (p->positive[i] != 0);
    close_solver(&s);
    ses_free(diagonal);
    return ok;
}
