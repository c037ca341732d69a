/* UMAP: fuzzy neighbourhoods, then stochastic gradient descent with negative samples. */
#include "umap.h"

#include "base/alloc.h"
#include "kernel/chunking.h"

#include <math.h>
#include <string.h>

enum { NEGATIVES = 5, CURVE_POINTS = 300, FEW_POINTS = 10000 };

/* ---- the curve ---- */

void ses_umap_curve(double min_dist, double *a, double *b)
{
    *a = 1, *b = 1;
    for (int step = 0; step < 100; step++) { /* Gauss-Newton */
        double aa = 1e-9, ab = 0, bb = 1e-9, ga = 0, gb = 0;
        for (int i = 1; i < CURVE_POINTS; i++) {
            double d = 3.0 * i / (CURVE_POINTS - 1), want = d < min_dist ? 1 : exp(min_dist - d);
            double power = pow(d, 2 * *b), q = 1 / (1 + *a * power), miss = want - q;
            double da = -q * q * power, db = -q * q * *a * power * 2 * log(d);
            aa += da * da, ab += da * db, bb += db * db, ga += da * miss, gb += db * miss;
        }
        double det = aa * bb - ab * ab, to_a = (ga * bb - gb * ab) / det, to_b = (gb * aa - ga * ab) / det;
        *a = fmax(*a + to_a, 1e-3), *b = fmax(*b + to_b, 1e-3);
        if (fabs(to_a) + fabs(to_b) < 1e-12) return;
    }
}

/* ---- fuzzy neighbourhoods ---- */

typedef struct graph {
    const ses_neighbours *nb;
    float *strength; /* [rows, k] of directed edges */
    double mean;     /* mean of all distances */
} graph;

/* The width of the neighbourhood: the strengths sum to log2(k + 1), the point itself counted as neighbour. */
static double find_width(const double *d, int64_t k, double nearest)
{
    double low = 0, high = INFINITY, width = 1, want = log2((double)k + 1);
    for (int step = 0; step < 64; step++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++) sum += d[j] > nearest ? exp(-(d[j] - nearest) / width) : 1;
        if (fabs(sum - want) < 1e-5) break;
        *(sum > want ? &high : &low) = width;
        width = isinf(high) ? 2 * width : 0.5 * (low + high);
    }
    return width;
}

static void weigh_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const graph *g = ctx;
    int64_t k = g->nb->k;
    ses_range r = ses_chunk(g->nb->rows, 64, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        const double *d = g->nb->distance + i * k;
        double nearest = 0, mean = 0;
        for (int64_t j = 0; j < k; j++) {
            if (nearest == 0 && d[j] > 0) nearest = d[j];
            mean += d[j] / (double)k;
        }
        double least = 1e-3 * (nearest > 0 ? mean : g->mean), width = fmax(find_width(d, k, nearest), least);
        for (int64_t j = 0; j < k; j++)
            g->strength[i * k + j] = d[j] > nearest && width > 0 ? (float)exp(-(d[j] - nearest) / width) : 1;
    }
}

/* ---- edges ---- */

typedef struct edge {
    int32_t from, to;
    float period; /* epochs from one sample to the next */
    float next, next_negative;
} edge;

typedef struct layout {
    edge *edge;
    int64_t n_edges, n;
    float a, b;
    double *x, *y;
    uint64_t random;
} layout;

static float strength_of(const graph *g, int32_t from, int32_t to)
{
    for (int64_t j = from * g->nb->k; j < (from + 1) * g->nb->k; j++)
        if (g->nb->index[j] == to) return g->strength[j];
    return 0;
}

static void add_edge(layout *t, int32_t from, int32_t to, float strength)
{
    t->edge[t->n_edges++] = (edge){ .from = from, .to = to, .period = strength };
}

/* Edges in both directions, in the order of the neighbour lists; an edge that is in both lists once. */
static bool make_edges(layout *t, const graph *g, int64_t epochs, ses_err *e)
{
    int64_t k = g->nb->k, kept = 0;
    float largest = 0;
    t->edge = ses_alloc_array((size_t)(2 * g->nb->rows * k), sizeof *t->edge, e);
    if (!t->edge) return false;
    for (int64_t i = 0; i < g->nb->rows * k; i++) {
        int32_t from = (int32_t)(i / k), to = g->nb->index[i];
        float a = g->strength[i], b = strength_of(g, to, from), both = a + b - a * b;
        if (b > 0 && to < from) continue; /* added from the other end */
        add_edge(t, from, to, both);
        add_edge(t, to, from, both);
        largest = both > largest ? both : largest;
    }
    for (int64_t i = 0; i < t->n_edges; i++) {
        edge *d = &t->edge[i];
        if (d->period * (float)epochs < largest) continue; /* would never be sampled */
        d->next = d->period = largest / d->period;
        d->next_negative = d->period / NEGATIVES;
        t->edge[kept++] = *d;
    }
    t->n_edges = kept;
    return true;
}

/* ---- descent ---- */

static uint64_t draw(layout *t) /* SplitMix64 */
{
    uint64_t z = t->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double clip(double v) { return v > 4 ? 4 : v < -4 ? -4 : v; }

static void attract(layout *t, const edge *d, double rate)
{
    double dx = t->x[d->from] - t->x[d->to], dy = t->y[d->from] - t->y[d->to], square = dx * dx + dy * dy;
    if (square <= 0) return;
    float s = (float)square, power = powf(s, t->b);
    double f = (double)(-2 * t->a * t->b * (power / s) / (1 + t->a * power));
    double mx = rate * clip(f * dx), my = rate * clip(f * dy);
    t->x[d->from] += mx, t->y[d->from] += my;
    t->x[d->to] -= mx, t->y[d->to] -= my;
}

static void repel(layout *t, int32_t from, int32_t other, double rate)
{
    double dx = t->x[from] - t->x[other], dy = t->y[from] - t->y[other], square = dx * dx + dy * dy;
    if (from == other || square <= 0) return;
    float s = (float)square;
    double f = (double)(2 * t->b / ((0.001f + s) * (1 + t->a * powf(s, t->b))));
    t->x[from] += rate * clip(f * dx), t->y[from] += rate * clip(f * dy);
}

static void run_epoch(layout *t, int64_t epoch, double rate)
{
    float now = (float)epoch;
    for (int64_t i = 0; i < t->n_edges; i++) {
        edge *d = &t->edge[i];
        if (d->next > now) continue;
        attract(t, d, rate);
        d->next += d->period;
        float pause = d->period / NEGATIVES;
        int count = (int)((now - d->next_negative) / pause);
        for (int j = 0; j < count; j++) {
            uint64_t r = draw(t) >> 32;
            repel(t, d->from, (int32_t)(r * (uint64_t)t->n >> 32), rate);
        }
        d->next_negative += (float)count * pause;
    }
}

bool ses_umap_run(const ses_math *m, const ses_neighbours *nb, const ses_umap_options *o, double *x,
                  double *y, ses_err *e)
{
    static const ses_umap_options none;
    if (!o) o = &none;
    int64_t n = nb->rows, epochs = o->epochs ? o->epochs : n <= FEW_POINTS ? 500 : 200;
    graph g = { .nb = nb, .strength = ses_alloc_array((size_t)(n * nb->k), sizeof *g.strength, e) };
    layout t = { .n = n, .x = x, .y = y, .random = o->seed };
    double a, b;
    if (!g.strength) return false;
    for (int64_t i = 0; i < n * nb->k; i++) g.mean += nb->distance[i] / (double)(n * nb->k);
    ses_parallel_for(m->exec.pool, ses_chunks(n, 64), weigh_rows, &g);
    ses_umap_curve(o->min_dist > 0 ? o->min_dist : 0.1, &a, &b);
    t.a = (float)a, t.b = (float)b;
    bool ok = make_edges(&t, &g, epochs, e);
    ses_free(g.strength);
    for (int64_t epoch = 0; ok && epoch < epochs; epoch++) {
        run_epoch(&t, epoch, 1 - (double)epoch / (double)epochs);
        if (epoch % 10 == 0) ses_math_step(m, "UMAP", epoch, epochs);
    }
    ses_free(t.edge);
    return ok;
}
