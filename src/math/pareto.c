/* The Pareto front. */
#include "pareto.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

typedef struct point {
    double score, cost;
    size_t index;
} point;

/* Ascending cost; equal costs: descending score. */
static int by_cost(const void *a, const void *b)
{
    const point *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    return x->score > y->score ? -1 : x->score < y->score;
}

bool ses_pareto_mark(const double *score, const double *cost, size_t n, bool *on_front, ses_err *e)
{
    point *p = ses_alloc_array(n ? n : 1, sizeof *p, e);
    size_t known = 0;
    double best = -INFINITY, at = NAN; /* best score so far, and the least cost that has it */
    if (!p) return false;
    for (size_t i = 0; i < n; i++) {
        on_front[i] = false;
        if (!isnan(score[i]) && !isnan(cost[i])) p[known++] = (point){ score[i], cost[i], i };
    }
    qsort(p, known, sizeof *p, by_cost);
    for (size_t i = 0; i < known; i++) {
        if (p[i].score > best) best = p[i].score, at = p[i].cost;
        on_front[p[i].index] = p[i].score == best && p[i].cost == at;
    }
    ses_free(p);
    return true;
}
