/* Prim's algorithm on a complete graph. */
#include "mst.h"

#include <math.h>

/* Whether edge (a, b) of weight x comes before edge (c, d) of weight y. */
static bool before(double x, size_t a, size_t b, double y, size_t c, size_t d)
{
    if (x != y) return x < y;
    size_t i = a < b ? a : b, j = a < b ? b : a, k = c < d ? c : d, l = c < d ? d : c;
    return i != k ? i < k : j < l;
}

void ses_mst(ses_mst_weight_fn *weight, const void *ctx, size_t n, int32_t *parent, double *key)
{
    if (!n) return;
    for (size_t i = 1; i < n; i++) parent[i] = 0, key[i] = weight(ctx, 0, i);
    parent[0] = -1;
    key[0] = -INFINITY; /* marks a node of the tree */
    for (size_t step = 1; step < n; step++) {
        size_t next = 0;
        for (size_t i = 1; i < n; i++) {
            if (key[i] == -INFINITY) continue;
            if (!next || before(key[i], i, (size_t)parent[i], key[next], next, (size_t)parent[next]))
                next = i;
        }
        key[next] = -INFINITY;
        for (size_t i = 1; i < n; i++) {
            if (key[i] == -INFINITY) continue;
            double w = next < i ? weight(ctx, next, i) : weight(ctx, i, next);
            if (before(w, next, i, key[i], (size_t)parent[i], i)) key[i] = w, parent[i] = (int32_t)next;
        }
    }
}

void ses_mst_reroot(int32_t *parent, int32_t root)
{
    for (int32_t i = root, from = -1; i >= 0;) {
        int32_t up = parent[i];
        parent[i] = from;
        from = i;
        i = up;
    }
}
