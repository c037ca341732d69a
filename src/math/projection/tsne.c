/* t-SNE: forces, gradient descent with momentum and gains. */
#include "tsne.h"

#include "base/alloc.h"
#include "kernel/chunking.h"
#include "tsne_repulsion.h"

#include <math.h>
#include <string.h>

enum { ROWS = 256, VERY_FEW = 200, FEW = 500, EXACT_TO = 2000, TREE_BELOW = 10000, REPORT = 10, ARRAYS = 8 };
static const double momentum = 0.8, longest_step = 5, start_deviation = 1e-4;

/* Ways to descend. Each leads few points to another optimum, and none is the best on all data. 200 is the
 * least learning rate of openTSNE and scikit-learn (50 there, with 4 times this gradient), 0.5 the first
 * momentum of scikit-learn. rate 0: points / exaggeration. */
static const struct way {
    double rate, early_momentum;
} ways[] = { { 0, 0.8 }, { 200, 0.8 }, { 200, 0.5 }, { 15, 0.8 }, { 15, 0.5 }, { 20, 0.8 }, { 25, 0.8 } };

typedef struct run {
    const ses_math *m;
    const ses_affinities *p;
    ses_tsne_method method;
    ses_tsne_tree *tree;
    ses_tsne_grid *grid;
    ses_points a;
    double *pull_x, *pull_y; /* attraction */
    double *push_x, *push_y; /* repulsion, not divided by z */
    double *part;            /* [chunks][2] partial sums */
    double *step_x, *step_y, *gain_x, *gain_y;
    double *x, *y;
    double z, exaggeration, rate, momentum;
} run;

static ses_tsne_method choose(ses_tsne_method method, int64_t n)
{
    if (method != SES_TSNE_AUTO) return method;
    return n <= EXACT_TO ? SES_TSNE_EXACT : n < TREE_BELOW ? SES_TSNE_TREE : SES_TSNE_GRID;
}

const char *ses_tsne_method_name(ses_tsne_method method, int64_t n)
{
    static const char *const name[] = { "auto", "exact", "tree", "grid" };
    return name[choose(method, n)];
}

/* ---- forces ---- */

static void repel_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    run *r = ctx;
    ses_range range = ses_chunk(r->a.n, ROWS, chunk);
    r->part[chunk] = r->m->k.pair_repulsion(&r->a, range.begin, range.end, r->push_x, r->push_y);
}

static void attract_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    run *r = ctx;
    ses_range range = ses_chunk(r->a.n, ROWS, chunk);
    ses_sparse p = { r->p->row, r->p->col, r->p->value };
    r->m->k.pair_attraction(&r->a, &p, range.begin, range.end, r->pull_x, r->pull_y);
}

static bool find_forces(run *r, ses_err *e)
{
    int64_t chunks = ses_chunks(r->a.n, ROWS);
    ses_parallel_for(r->m->exec.pool, chunks, attract_rows, r);
    if (r->grid) {
        if (!ses_tsne_grid_repel(r->grid, r->m, &r->a, r->push_x, r->push_y, &r->z, e)) return false;
    } else if (r->tree) {
        ses_tsne_tree_repel(r->tree, r->m, &r->a, r->push_x, r->push_y, &r->z);
    } else {
        ses_parallel_for(r->m->exec.pool, chunks, repel_rows, r);
        r->z = 0;
        for (int64_t i = 0; i < chunks; i++) r->z += r->part[i];
    }
    if (!(r->z > 0)) r->z = 1e-300; /* points so far apart that nothing repels */
    return true;
}

/* ---- steps ---- */

static double new_step(const run *r, double step, double gradient, double *gain)
{
    int s = (step > 0) - (step < 0), g = (gradient > 0) - (gradient < 0);
    *gain = s != g ? *gain + 0.2 : *gain * 0.8 + 0.01;
    return r->momentum * step - r->rate * *gain * gradient;
}

static void move_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    run *r = ctx;
    ses_range range = ses_chunk(r->a.n, ROWS, chunk);
    double sum_x = 0, sum_y = 0;
    for (int64_t i = range.begin; i < range.end; i++) {
        double gx = r->exaggeration * r->pull_x[i] - r->push_x[i] / r->z;
        double gy = r->exaggeration * r->pull_y[i] - r->push_y[i] / r->z;
        double dx = new_step(r, r->step_x[i], gx, &r->gain_x[i]);
        double dy = new_step(r, r->step_y[i], gy, &r->gain_y[i]);
        double length = sqrt(dx * dx + dy * dy);
        if (length > longest_step) dx *= longest_step / length, dy *= longest_step / length;
        r->step_x[i] = dx, r->step_y[i] = dy;
        sum_x += r->x[i] += dx, sum_y += r->y[i] += dy;
    }
    r->part[2 * chunk] = sum_x, r->part[2 * chunk + 1] = sum_y;
}

static void centre_points(run *r)
{
    double sum_x = 0, sum_y = 0, n = (double)r->a.n;
    for (int64_t i = 0; i < ses_chunks(r->a.n, ROWS); i++)
        sum_x += r->part[2 * i], sum_y += r->part[2 * i + 1];
    for (int64_t i = 0; i < r->a.n; i++) r->x[i] -= sum_x / n, r->y[i] -= sum_y / n;
}

static void close_run(run *r)
{
    ses_tsne_tree_free(r->tree);
    ses_tsne_grid_free(r->grid);
    ses_free(r->part);
    ses_free(r->pull_x);
}

static bool open_run(run *r, const ses_math *m, const ses_affinities *p, ses_tsne_method method, ses_err *e)
{
    size_t n = (size_t)p->n;
    r->m = m, r->p = p, r->method = choose(method, p->n), r->a.n = p->n;
    r->part = ses_alloc_array((size_t)ses_chunks(p->n, ROWS), 2 * sizeof *r->part, e);
    r->pull_x = r->part ? ses_alloc_array(n, ARRAYS * sizeof *r->pull_x, e) : NULL;
    if (!r->pull_x) return false;
    r->pull_y = r->pull_x + n, r->push_x = r->pull_y + n, r->push_y = r->push_x + n;
    r->step_x = r->push_y + n, r->step_y = r->step_x + n, r->gain_x = r->step_y + n,
    r->gain_y = r->gain_x + n;
    if (r->method == SES_TSNE_TREE) return (r->tree = ses_tsne_tree_new(p->n, e)) != NULL;
    if (r->method == SES_TSNE_GRID) return (r->grid = ses_tsne_grid_new(p->n, e)) != NULL;
    return true;
}

static bool descend(run *r, int64_t steps, int64_t done, int64_t total, ses_err *e)
{
    for (int64_t i = 0; i < steps; i++) {
        if (!find_forces(r, e)) return false;
        ses_parallel_for(r->m->exec.pool, ses_chunks(r->a.n, ROWS), move_rows, r);
        centre_points(r);
        if ((done + i) % REPORT == 0) ses_math_step(r->m, "t-SNE", done + i, total);
    }
    return true;
}

int64_t ses_tsne_neighbours(int64_t n, double perplexity)
{
    return n <= FEW ? n - 1 : (int64_t)(3 * perplexity);
}

/* All steps from the start x, y. done: steps of earlier calls. */
static bool descend_from(run *r, const ses_tsne_options *o, const struct way *w, int64_t done, int64_t total,
                         double *kl, ses_err *e)
{
    size_t n = (size_t)r->a.n;
    double rate = o->rate > 0 ? o->rate : w->rate;
    for (size_t i = 0; i < 2 * n; i++) r->step_x[i] = 0, r->gain_x[i] = 1;
    r->exaggeration = o->exaggeration;
    r->momentum = w->early_momentum;
    r->rate = rate > 0 ? rate : (double)n / r->exaggeration;
    if (!descend(r, o->early, done, total, e)) return false;
    r->exaggeration = 1;
    r->momentum = momentum;
    r->rate = rate > (double)n || o->rate > 0 ? rate : (double)n;
    if (!descend(r, o->late, done + o->early, total, e) || !find_forces(r, e)) return false;
    *kl = ses_tsne_divergence(r->m, r->p, r->x, r->y, r->z);
    return true;
}

/* Descends from x, y in the first n_ways ways, and keeps the best map. best: [4n], the start and that map. */
static bool descend_ways(run *r, const ses_tsne_options *o, size_t n_ways, double *best, double *kl,
                         ses_err *e)
{
    size_t n = (size_t)r->a.n;
    int64_t steps = o->early + o->late;
    double *start = best + 2 * n, other = NAN;
    memcpy(start, r->x, n * sizeof *start), memcpy(start + n, r->y, n * sizeof *start);
    for (size_t i = 0; i < n_ways; i++) {
        memcpy(r->x, start, n * sizeof *start), memcpy(r->y, start + n, n * sizeof *start);
        if (!descend_from(r, o, &ways[i], (int64_t)i * steps, (int64_t)n_ways * steps, &other, e))
            return false;
        if (i && !(other < *kl)) continue;
        *kl = other;
        memcpy(best, r->x, n * sizeof *best), memcpy(best + n, r->y, n * sizeof *best);
    }
    memcpy(r->x, best, n * sizeof *best), memcpy(r->y, best + n, n * sizeof *best);
    return true;
}

bool ses_tsne_run(const ses_math *m, const ses_affinities *p, const ses_tsne_options *given, double *x,
                  double *y, double *kl, ses_err *e)
{
    ses_tsne_options o = given ? *given : (ses_tsne_options){ 0 };
    bool few = p->n <= FEW;
    size_t n_ways = !few || o.rate > 0 ? 1 : p->n <= VERY_FEW ? SES_LEN(ways) : 3;
    if (!o.early) o.early = 250;
    if (!o.late) o.late = few ? 750 : 500;
    if (!(o.exaggeration > 0)) o.exaggeration = 12;
    run r = { .x = x, .y = y };
    double *best = ses_alloc_array((size_t)p->n, 4 * sizeof *best, e);
    bool ok = best && open_run(&r, m, p, o.method, e);
    r.a.x = x, r.a.y = y;
    ok = ok && descend_ways(&r, &o, n_ways, best, kl, e);
    close_run(&r);
    ses_free(best);
    return ok;
}

bool ses_tsne_gradient(const ses_math *m, const ses_affinities *p, ses_tsne_method method, double f,
                       const double *x, const double *y, double *gx, double *gy, double *z, ses_err *e)
{
    run r = { .a.x = x, .a.y = y };
    bool ok = open_run(&r, m, p, method, e) && find_forces(&r, e);
    for (int64_t i = 0; ok && i < p->n; i++) {
        gx[i] = f * r.pull_x[i] - r.push_x[i] / r.z;
        gy[i] = f * r.pull_y[i] - r.push_y[i] / r.z;
    }
    *z = r.z;
    close_run(&r);
    return ok;
}

/* ---- divergence, start ---- */

typedef struct divergence {
    const ses_affinities *p;
    const double *x, *y;
    double z, *part;
} divergence;

static void diverge_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const divergence *d = ctx;
    ses_range r = ses_chunk(d->p->n, ROWS, chunk);
    double sum = 0;
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = d->p->row[i]; j < d->p->row[i + 1]; j++) {
            int32_t to = d->p->col[j];
            double p = (double)d->p->value[j], dx = d->x[i] - d->x[to], dy = d->y[i] - d->y[to];
            if (p > 0) sum += p * log(p * d->z * (1 + dx * dx + dy * dy));
        }
    d->part[chunk] = sum;
}

double ses_tsne_divergence(const ses_math *m, const ses_affinities *p, const double *x, const double *y,
                           double z)
{
    int64_t chunks = ses_chunks(p->n, ROWS);
    double sum = 0;
    ses_err e = { 0 };
    divergence d = { p, x, y, z, ses_alloc_array((size_t)chunks, sizeof *d.part, &e) };
    if (!d.part) return NAN;
    ses_parallel_for(m->exec.pool, chunks, diverge_rows, &d);
    for (int64_t i = 0; i < chunks; i++) sum += d.part[i];
    ses_free(d.part);
    return sum;
}

void ses_tsne_start(const ses_real *rows, int64_t n, int64_t width, double *x, double *y)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = (double)rows[i * width];
        y[i] = width > 1 ? (double)rows[i * width + 1] : 0;
        sum += x[i];
    }
    for (int64_t i = 0; i < n; i++) squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    double scale = squares > 0 ? start_deviation / sqrt(squares / (double)n) : 1;
    for (int64_t i = 0; i < n; i++) x[i] *= scale, y[i] *= scale;
}
