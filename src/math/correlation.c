/* Pearson and Spearman correlation. */
#include "correlation.h"

#include <math.h>
#include <stdlib.h>

/* Two passes: subtract the means first. */
double ses_pearson(const double *a, const double *b, size_t n)
{
    double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < n; i++) ma += a[i], mb += b[i];
    ma /= (double)n, mb /= (double)n;
    bool flat_a = true, flat_b = true;
    for (size_t i = 0; i < n; i++) {
        double x = a[i] - ma, y = b[i] - mb;
        aa += x * x, bb += y * y, ab += x * y;
        flat_a = flat_a && a[i] == a[0], flat_b = flat_b && b[i] == b[0];
    }
    if (flat_a || flat_b || !(aa > 0) || !(bb > 0)) return NAN;
    double c = ab / (sqrt(aa) * sqrt(bb));
    return c > 1 ? 1 : c < -1 ? -1 : c;
}

typedef struct ranked {
    double x, index;
} ranked;

static int ascending(const void *a, const void *b)
{
    double x = ((const ranked *)a)->x, y = ((const ranked *)b)->x;
    return (x > y) - (x < y);
}

/* Replaces x by its ranks, from 1. */
static void rank(double *x, size_t n, ranked *order)
{
    for (size_t i = 0; i < n; i++) order[i] = (ranked){ x[i], (double)i };
    qsort(order, n, sizeof *order, ascending);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && order[j].x == order[i].x; j++) {}
        for (size_t k = i; k < j; k++) x[(size_t)order[k].index] = (double)(i + j + 1) / 2;
    }
}

double ses_spearman(double *a, double *b, size_t n, double *work)
{
    ranked *order = (ranked *)(void *)work;
    rank(a, n, order);
    rank(b, n, order);
    return ses_pearson(a, b, n);
}
