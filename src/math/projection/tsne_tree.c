/* Barnes-Hut repulsion: a quadtree over points sorted along the Z curve, stored in depth-first order. */
#include "base/alloc.h"
#include "kernel/chunking.h"
#include "tsne_repulsion.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH = 26, ROWS = 256 };
static const double angle = 0.5;

typedef struct cell {
    double x, y, size2; /* centre of mass, squared side */
    int64_t begin, end; /* its points, in Z order */
    int64_t next;       /* the cell after its last descendant */
    bool leaf;
} cell;

typedef struct key {
    uint64_t code;
    int64_t point;
} key;

struct ses_tsne_tree {
    int64_t n, cells, capacity;
    key *order;    /* [n] in Z order */
    int64_t *rank; /* [n]: position in Z order */
    cell *cell;
    double *z; /* [chunks] */
    const ses_points *a;
    double *fx, *fy;
};

/* At most 2n - 1 cells have no single child; chains of single children are skipped in `grow`. */
ses_tsne_tree *ses_tsne_tree_new(int64_t n, ses_err *e)
{
    ses_tsne_tree *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    t->n = n, t->capacity = 2 * n;
    t->order = ses_alloc_array((size_t)n, sizeof *t->order, e);
    t->rank = t->order ? ses_alloc_array((size_t)n, sizeof *t->rank, e) : NULL;
    t->cell = t->rank ? ses_alloc_array((size_t)t->capacity, sizeof *t->cell, e) : NULL;
    t->z = t->cell ? ses_alloc_array((size_t)ses_chunks(n, ROWS), sizeof *t->z, e) : NULL;
    if (t->z) return t;
    ses_tsne_tree_free(t);
    return NULL;
}

void ses_tsne_tree_free(ses_tsne_tree *t)
{
    if (!t) return;
    ses_free(t->order);
    ses_free(t->rank);
    ses_free(t->cell);
    ses_free(t->z);
    ses_free(t);
}

static uint64_t spread_bits(uint64_t v) /* bit i to bit 2 i, for 32 bits */
{
    v = (v | v << 16) & 0x0000FFFF0000FFFFu;
    v = (v | v << 8) & 0x00FF00FF00FF00FFu;
    v = (v | v << 4) & 0x0F0F0F0F0F0F0F0Fu;
    v = (v | v << 2) & 0x3333333333333333u;
    return (v | v << 1) & 0x5555555555555555u;
}

static int by_code(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

static double sort_points(ses_tsne_tree *t)
{
    const ses_points *a = t->a;
    double low_x = a->x[0], low_y = a->y[0], high_x = low_x, high_y = low_y;
    for (int64_t i = 1; i < t->n; i++) {
        low_x = fmin(low_x, a->x[i]), high_x = fmax(high_x, a->x[i]);
        low_y = fmin(low_y, a->y[i]), high_y = fmax(high_y, a->y[i]);
    }
    double side = fmax(high_x - low_x, high_y - low_y), scale = side > 0 ? ((1 << DEPTH) - 1) / side : 0;
    for (int64_t i = 0; i < t->n; i++) {
        uint64_t x = (uint64_t)((a->x[i] - low_x) * scale), y = (uint64_t)((a->y[i] - low_y) * scale);
        t->order[i] = (key){ spread_bits(x) | spread_bits(y) << 1, i };
    }
    qsort(t->order, (size_t)t->n, sizeof *t->order, by_code);
    for (int64_t i = 0; i < t->n; i++) t->rank[t->order[i].point] = i;
    return side;
}

/* Adds the cell of points begin .. end - 1, which agree in all bits above 2 * level, and its descendants. */
static void grow(ses_tsne_tree *t, int64_t begin, int64_t end, int level, double side)
{
    uint64_t first = t->order[begin].code, last = t->order[end - 1].code;
    while (level > 0 && (first ^ last) >> (2 * (level - 1)) == 0) level--;
    cell *c = &t->cell[t->cells++];
    *c =
        (cell){ .begin = begin, .end = end, .leaf = level == 0, .size2 = pow(side * exp2(level - DEPTH), 2) };
    for (int64_t i = begin; i < end; i++)
        c->x += t->a->x[t->order[i].point], c->y += t->a->y[t->order[i].point];
    c->x /= (double)(end - begin), c->y /= (double)(end - begin);
    for (int64_t at = begin; level > 0 && at < end;) {
        uint64_t part = t->order[at].code >> (2 * (level - 1));
        int64_t stop = at + 1;
        while (stop < end && t->order[stop].code >> (2 * (level - 1)) == part) stop++;
        grow(t, at, stop, level - 1, side);
        at = stop;
    }
    c->next = t->cells;
}

static double repel_point(const ses_tsne_tree *t, int64_t i, double *fx, double *fy)
{
    double x = t->a->x[i], y = t->a->y[i], sx = 0, sy = 0, z = 0;
    int64_t rank = t->rank[i];
    for (int64_t at = 0; at < t->cells;) {
        const cell *c = &t->cell[at];
        double dx = x - c->x, dy = y - c->y, d2 = dx * dx + dy * dy;
        if (!c->leaf && c->size2 >= angle * angle * d2) {
            at++;
            continue;
        }
        double q = 1 / (1 + d2), count = (double)(c->end - c->begin - (rank >= c->begin && rank < c->end));
        z += count * q;
        sx += count * q * q * dx, sy += count * q * q * dy;
        at = c->next;
    }
    *fx = sx, *fy = sy;
    return z;
}

static void repel_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    ses_tsne_tree *t = ctx;
    ses_range r = ses_chunk(t->n, ROWS, chunk);
    double z = 0;
    for (int64_t i = r.begin; i < r.end; i++) { /* in Z order, for the cache */
        int64_t point = t->order[i].point;
        z += repel_point(t, point, t->fx + point, t->fy + point);
    }
    t->z[chunk] = z;
}

void ses_tsne_tree_repel(ses_tsne_tree *t, const ses_math *m, const ses_points *a, double *fx, double *fy,
                         double *z)
{
    int64_t chunks = ses_chunks(t->n, ROWS);
    t->a = a, t->fx = fx, t->fy = fy, t->cells = 0;
    double side = sort_points(t);
    grow(t, 0, t->n, DEPTH, side);
    ses_parallel_for(m->exec.pool, chunks, repel_chunk, t);
    *z = 0;
    for (int64_t i = 0; i < chunks; i++) *z += t->z[i];
}
