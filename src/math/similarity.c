/* Similarities of vectors: see similarity.h. */
#include "similarity.h"

#include <math.h>
#include <string.h>

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

double ses_cosine_of(const float *a, const float *b, size_t width)
{
    double product = dot(a, a, width) * dot(b, b, width);
    return product > 0 ? dot(a, b, width) / sqrt(product) : 0;
}

static const float *row_at(const float *x, const size_t *row, size_t i, size_t width)
{
    return x + (row ? row[i] : i) * width;
}

/* The sum of cosines of all ordered pairs is |sum of unit vectors|^2 minus the pairs of a row with itself. */
double ses_mean_pair_cosine(const float *x, const size_t *row, size_t n, size_t width, double *sum)
{
    double itself = 0, all = 0;
    memset(sum, 0, width * sizeof *sum);
    for (size_t i = 0; i < n; i++) {
        const float *v = row_at(x, row, i, width);
        double length = sqrt(dot(v, v, width));
        if (!(length > 0)) continue;
        for (size_t k = 0; k < width; k++) sum[k] += (double)v[k] / length;
        itself += 1;
    }
    for (size_t k = 0; k < width; k++) all += sum[k] * sum[k];
    return n > 1 ? (all - itself) / ((double)n * (double)(n - 1)) : NAN;
}

double ses_mean_cosine_to_mean(const float *x, size_t n, size_t width, double *sum)
{
    double length = 0, total = 0;
    memset(sum, 0, width * sizeof *sum);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++) sum[k] += (double)x[i * width + k];
    for (size_t k = 0; k < width; k++) length += sum[k] * sum[k];
    length = sqrt(length);
    for (size_t i = 0; i < n && length > 0; i++) {
        const float *v = x + i * width;
        double own = sqrt(dot(v, v, width)), product = 0;
        for (size_t k = 0; k < width; k++) product += (double)v[k] * sum[k];
        if (own > 0) total += product / (own * length);
    }
    return n ? total / (double)n : NAN;
}

/* y = X' X v; returns |X v|^2. */
static double apply(const float *x, const size_t *row, size_t n, size_t width, const double *v, double *y)
{
    double energy = 0;
    memset(y, 0, width * sizeof *y);
    for (size_t i = 0; i < n; i++) {
        const float *r = row_at(x, row, i, width);
        double p = 0;
        for (size_t k = 0; k < width; k++) p += (double)r[k] * v[k];
        for (size_t k = 0; k < width; k++) y[k] += p * (double)r[k];
        energy += p * p;
    }
    return energy;
}

/* Power iteration from the sum of the rows, until the residual bounds the error of the eigenvalue. */
double ses_first_direction_share(const float *x, const size_t *row, size_t n, size_t width, double *scratch)
{
    enum { MAX_STEPS = 2000 };
    double *v = scratch, *y = scratch + width, total = 0, value = 0, length = 0;
    memset(v, 0, width * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const float *r = row_at(x, row, i, width);
        for (size_t k = 0; k < width; k++) v[k] += (double)r[k];
        total += dot(r, r, width);
    }
    if (!(total > 0)) return 0;
    for (size_t k = 0; k < width; k++) {
        v[k] += 1e-3 * sqrt(total / (double)(n * width)) * (k % 2 ? 1 : -1); /* rows may cancel out */
        length += v[k] * v[k];
    }
    for (size_t k = 0; k < width; k++) v[k] /= sqrt(length);
    for (int step = 0; step < MAX_STEPS; step++) {
        double residual = 0;
        value = apply(x, row, n, width, v, y);
        length = 0;
        for (size_t k = 0; k < width; k++) {
            double r = y[k] - value * v[k];
            residual += r * r;
            length += y[k] * y[k];
        }
        if (residual <= 1e-12 * value * value) break;
        for (size_t k = 0; k < width; k++) v[k] = y[k] / sqrt(length);
    }
    return value / total;
}
