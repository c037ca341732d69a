#include "lbfgs.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 10, SEARCH = 60 };

typedef struct state {
    size_t n;
    double *x, *g, *step, *new_x, *new_g; /* [n] */
    double *s, *y, rho[PAIRS];            /* [PAIRS, n]: the last steps and changes of the gradient */
    size_t pairs, next;
    double value;
} state;

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(const double *a, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i]) <= most)) most = fabs(a[i]); /* a NaN stays */
    return most;
}

/* step = - H g, the two-loop recursion. */
static void direction(state *t)
{
    double alpha[PAIRS], *q = t->step;
    size_t n = t->n;
    for (size_t i = 0; i < n; i++) q[i] = -t->g[i];
    for (size_t k = 0; k < t->pairs; k++) {
        size_t at = (t->next + PAIRS - 1 - k) % PAIRS;
        alpha[at] = t->rho[at] * dot(t->s + at * n, q, n);
        for (size_t i = 0; i < n; i++) q[i] -= alpha[at] * t->y[at * n + i];
    }
    if (t->pairs) {
        size_t at = (t->next + PAIRS - 1) % PAIRS;
        double scale = 1 / (t->rho[at] * dot(t->y + at * n, t->y + at * n, n));
        for (size_t i = 0; i < n; i++) q[i] *= scale;
    }
    for (size_t k = t->pairs; k-- > 0;) {
        size_t at = (t->next + PAIRS - 1 - k) % PAIRS;
        double beta = t->rho[at] * dot(t->y + at * n, q, n);
        for (size_t i = 0; i < n; i++) q[i] += (alpha[at] - beta) * t->s[at * n + i];
    }
}

/* A length that lowers the value enough and flattens the slope: bisection between one too short and one too
 * long (Lewis and Overton 2013). False: none found, the rounding is reached. */
static bool search(state *t, ses_lbfgs_fn *f, void *ctx, double slope, double *value)
{
    const double enough = 1e-4, flatter = 0.9;
    double low = 0, high = INFINITY, length = t->pairs ? 1 : 1 / fmax(1, sqrt(dot(t->g, t->g, t->n)));
    for (int i = 0; i < SEARCH; i++) {
        for (size_t k = 0; k < t->n; k++) t->new_x[k] = t->x[k] + length * t->step[k];
        *value = f(ctx, t->new_x, t->new_g);
        if (!(*value <= t->value + enough * length * slope))
            high = length;
        else if (dot(t->new_g, t->step, t->n) < flatter * slope)
            low = length;
        else
            return true;
        length = isinf(high) ? 2 * length : (low + high) / 2;
    }
    return false;
}

static void remember(state *t)
{
    double *s = t->s + t->next * t->n, *y = t->y + t->next * t->n;
    for (size_t i = 0; i < t->n; i++) s[i] = t->new_x[i] - t->x[i], y[i] = t->new_g[i] - t->g[i];
    double sy = dot(s, y, t->n);
    memcpy(t->x, t->new_x, t->n * sizeof *t->x);
    memcpy(t->g, t->new_g, t->n * sizeof *t->g);
    if (!(sy > 0)) return;
    t->rho[t->next] = 1 / sy;
    t->next = (t->next + 1) % PAIRS;
    if (t->pairs < PAIRS) t->pairs++;
}

bool ses_lbfgs_minimize(double *x, size_t n, ses_lbfgs_fn *f, void *ctx, double tolerance, int64_t iterations,
                        ses_lbfgs_result *r, ses_err *e)
{
    size_t count;
    if (!ses_mul_size(n, 4 + 2 * PAIRS, &count)) return ses_fail(e, SES_ENOMEM, "%zu parameters", n);
    double *room = ses_alloc_array(count, sizeof *room, e), value;
    if (!room) return false;
    state t = { .n = n,
                .x = x,
                .g = room,
                .step = room + n,
                .new_x = room + 2 * n,
                .new_g = room + 3 * n,
                .s = room + 4 * n,
                .y = room + (4 + PAIRS) * n };
    *r = (ses_lbfgs_result){ 0 };
    t.value = f(ctx, x, t.g);
    bool finite = isfinite(t.value);
    while (finite && r->iterations < iterations && !(r->converged = largest(t.g, n) <= tolerance)) {
        direction(&t);
        double slope = dot(t.g, t.step, n);
        if (!(slope < 0) || !search(&t, f, ctx, slope, &value)) {
            r->converged = largest(t.g, n) <= 100 * tolerance;
            break;
        }
        t.value = value;
        remember(&t);
        r->iterations++;
    }
    ses_free(room);
    return finite || ses_fail(e, SES_EARG, "the loss is not a finite number");
}
