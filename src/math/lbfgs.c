/* L-BFGS with the two-loop recursion and a bisection line search. */
#include "lbfgs.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 10, MAX_SEARCH = 60 };

typedef struct state {
    const ses_lbfgs_problem *p;
    size_t n;
    double *x, *g, *step, *new_x, *new_g; /* [n] */
    double *s, *y, rho[PAIRS];            /* [PAIRS, n]: the last steps and gradient differences */
    size_t pairs, next;
    double value, scale; /* scale: of the initial Hessian, s . y / y . P y of the last pair */
} state;

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(const double *a, size_t n)
{
    double max = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i]) <= max)) max = fabs(a[i]); /* NaN propagates */
    return max;
}

/* step = - H g, the two-loop recursion. */
static void set_direction(state *t)
{
    double alpha[PAIRS], *q = t->step;
    size_t n = t->n;
    for (size_t i = 0; i < n; i++) q[i] = -t->g[i];
    for (size_t k = 0; k < t->pairs; k++) {
        size_t at = (t->next + PAIRS - 1 - k) % PAIRS;
        alpha[at] = t->rho[at] * dot(t->s + at * n, q, n);
        for (size_t i = 0; i < n; i++) q[i] -= alpha[at] * t->y[at * n + i];
    }
    if (t->p->precondition) t->p->precondition(t->p->ctx, q);
    for (size_t i = 0; t->pairs && i < n; i++) q[i] *= t->scale;
    for (size_t k = t->pairs; k-- > 0;) {
        size_t at = (t->next + PAIRS - 1 - k) % PAIRS;
        double beta = t->rho[at] * dot(t->y + at * n, q, n);
        for (size_t i = 0; i < n; i++) q[i] += (alpha[at] - beta) * t->s[at * n + i];
    }
}

/* Finds a step length that meets the Armijo and the curvature condition, by bisection (Lewis and Overton
 * 2013). False: none found within rounding error. */
static bool search_step(state *t, double slope, double *value)
{
    const double armijo = 1e-4, curvature = 0.9;
    double low = 0, high = INFINITY, length = 1;
    if (!t->pairs && !t->p->precondition) length = 1 / fmax(1, sqrt(dot(t->g, t->g, t->n)));
    for (int i = 0; i < MAX_SEARCH; i++) {
        for (size_t k = 0; k < t->n; k++) t->new_x[k] = t->x[k] + length * t->step[k];
        *value = t->p->value(t->p->ctx, t->new_x, t->new_g);
        double new_slope = dot(t->new_g, t->step, t->n);
        bool within_noise = t->p->noise > 0 && *value <= t->value + t->p->noise * fabs(t->value) &&
                            new_slope <= -curvature * slope;
        if (!(*value <= t->value + armijo * length * slope) && !within_noise)
            high = length;
        else if (new_slope < curvature * slope)
            low = length;
        else
            return true;
        length = isinf(high) ? 2 * length : (low + high) / 2;
    }
    return false;
}

/* Stores the pair (s, y) and moves to the new point. */
static void add_pair(state *t)
{
    double *s = t->s + t->next * t->n, *y = t->y + t->next * t->n;
    for (size_t i = 0; i < t->n; i++) s[i] = t->new_x[i] - t->x[i], y[i] = t->new_g[i] - t->g[i];
    double sy = dot(s, y, t->n);
    memcpy(t->x, t->new_x, t->n * sizeof *t->x);
    memcpy(t->g, t->new_g, t->n * sizeof *t->g);
    if (!(sy > 0)) return;
    t->rho[t->next] = 1 / sy;
    memcpy(t->step, y, t->n * sizeof *y);
    if (t->p->precondition) t->p->precondition(t->p->ctx, t->step);
    t->scale = sy / dot(y, t->step, t->n);
    t->next = (t->next + 1) % PAIRS;
    if (t->pairs < PAIRS) t->pairs++;
}

bool ses_lbfgs_minimize(double *x, size_t n, const ses_lbfgs_problem *p, double tolerance, int64_t iterations,
                        ses_lbfgs_result *r, ses_err *e)
{
    size_t count;
    if (!ses_mul_size(n, 4 + 2 * PAIRS, &count)) return ses_fail(e, SES_ENOMEM, "%zu parameters", n);
    double *buffer = ses_alloc_array(count, sizeof *buffer, e), value;
    if (!buffer) return false;
    state t = { .p = p,
                .n = n,
                .x = x,
                .g = buffer,
                .step = buffer + n,
                .new_x = buffer + 2 * n,
                .new_g = buffer + 3 * n,
                .s = buffer + 4 * n,
                .y = buffer + (4 + PAIRS) * n };
    *r = (ses_lbfgs_result){ 0 };
    t.value = p->value(p->ctx, x, t.g);
    bool finite = isfinite(t.value);
    while (finite && r->iterations < iterations && !(r->converged = largest(t.g, n) <= tolerance)) {
        set_direction(&t);
        double slope = dot(t.g, t.step, n);
        if (!(slope < 0) || !search_step(&t, slope, &value)) {
            r->converged = largest(t.g, n) <= 100 * tolerance;
            break;
        }
        t.value = value;
        add_pair(&t);
        r->iterations++;
    }
    ses_free(buffer);
    return finite || ses_fail(e, SES_EARG, "the loss is not a finite number");
}
