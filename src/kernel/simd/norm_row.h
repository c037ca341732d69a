/* Layer norm of one row; kernels.def has the formula. Include a vec_*.h first. */
#ifndef SES_KERNEL_NORM_ROW_H
#define SES_KERNEL_NORM_ROW_H

#include "kernel/simd/vec/vec_loop.h"

#include <math.h>

typedef struct norm_job {
    float *y, *s, *stat;
    const float *a, *res, *gain, *bias;
    int64_t rows, cols;
    double eps;
} norm_job;

typedef struct norm_input {
    const float *a, *res, *s;
    float *to; /* receives a + res for the next passes; NULL: a itself is read */
    vf mean;
} norm_input;

VF_INLINE vf_pair add_input(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const norm_input *r = ctx;
    vf v = vf_get(r->a + i, left);
    if (r->res) v = vf_add(v, vf_get(r->res + i, left));
    if (r->to) vf_put(r->to + i, v, left);
    sum.a = vf_add(sum.a, v);
    return sum;
}

VF_INLINE vf_pair add_deviation(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const norm_input *r = ctx;
    vf d = vf_pad(vf_sub(vf_get(r->s + i, left), r->mean), vf_zero(), left);
    sum.a = vf_add(sum.a, d);
    sum.b = vf_fma(d, d, sum.b);
    return sum;
}

/* norm_row for rows of at most NARROW columns, in double. */
static void norm_row_narrow(const norm_job *f, int64_t at, float *stat)
{
    double s[NARROW], mean = 0, var = 0;
    for (int64_t i = 0; i < f->cols; i++) {
        float v = f->res ? f->a[at + i] + f->res[at + i] : f->a[at + i];
        if (f->s) f->s[at + i] = v;
        mean += s[i] = (double)v;
    }
    mean /= (double)f->cols;
    for (int64_t i = 0; i < f->cols; i++) var += (s[i] - mean) * (s[i] - mean);
    double rstd = 1 / sqrt(var / (double)f->cols + f->eps);
    for (int64_t i = 0; i < f->cols; i++)
        f->y[at + i] = (float)((s[i] - mean) * rstd * (double)f->gain[i] + (double)f->bias[i]);
    if (stat) stat[0] = (float)mean, stat[1] = (float)rstd;
}

/* The mean is a float plus a small correction from the second pass: exact even if the mean is much larger
 * than the deviations. */
static void norm_row(const norm_job *f, int64_t at, float *stat)
{
    if (f->cols <= NARROW) {
        norm_row_narrow(f, at, stat);
        return;
    }
    float *y = f->y + at;
    norm_input r = { .a = f->a + at };
    if (f->res) r.res = f->res + at, r.to = y;
    if (f->s) r.to = f->s + at;
    r.s = r.to ? r.to : r.a;
    float mean = (float)(sum_row(f->cols, add_input, &r).a / f->cols);
    r.mean = vf_set1(mean);
    sum_pair d = sum_row(f->cols, add_deviation, &r);
    double rest = d.a / f->cols, var = d.b / f->cols - rest * rest;
    double rstd = 1 / sqrt((var > 0 || var != var ? var : 0) + f->eps);
    vf vrest = vf_set1((float)rest), vrstd = vf_set1((float)rstd);
    for (int64_t i = 0; i < f->cols; i += VF_LANES) {
        int64_t left = f->cols - i;
        vf xhat = vf_mul(vf_sub(vf_sub(vf_get(r.s + i, left), r.mean), vrest), vrstd);
        vf_put(y + i, vf_fma(xhat, vf_get(f->gain + i, left), vf_get(f->bias + i, left)), left);
    }
    if (stat) stat[0] = (float)(mean + rest), stat[1] = (float)rstd;
}

#endif
