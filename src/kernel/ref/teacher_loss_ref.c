#include "kernel/chunking.h"
#include "kernel/kernel.h"

#include <math.h>

typedef struct match {
    ses_dst da;
    ses_real *stat;
    const ses_real *a, *b, *stat_in;
    int64_t rows, cols;
    ses_teacher_loss_kind kind;
    double heat, scale;
} match;

static const double tiny = 1e-30; /* a row of zeros has no direction, and no NaN either */

static double log_sum_exp(const ses_real *a, int64_t n, double heat)
{
    double max = a[0], sum = 0;
    for (int64_t j = 1; j < n; j++) max = fmax(max, a[j]);
    for (int64_t j = 0; j < n; j++) sum += exp((a[j] - max) / heat);
    return max / heat + log(sum);
}

static void soft_row(const match *c, const ses_real *a, const ses_real *b, ses_real *stat)
{
    double za = log_sum_exp(a, c->cols, c->heat), zb = log_sum_exp(b, c->cols, c->heat), gap = 0;
    for (int64_t j = 0; j < c->cols; j++) gap += exp(b[j] / c->heat - zb) * ((double)b[j] - a[j]);
    stat[0] = (ses_real)(c->heat * gap + c->heat * c->heat * (za - zb));
    stat[1] = (ses_real)za;
    stat[2] = (ses_real)zb;
}

static void cosine_row(const match *c, const ses_real *a, const ses_real *b, ses_real *stat)
{
    double aa = tiny, bb = tiny, ab = 0;
    for (int64_t j = 0; j < c->cols; j++) {
        aa += (double)a[j] * a[j];
        bb += (double)b[j] * b[j];
        ab += (double)a[j] * b[j];
    }
    double both = 1 / sqrt(aa) / sqrt(bb);
    stat[0] = (ses_real)(1 - ab * both);
    stat[1] = (ses_real)both;
    stat[2] = (ses_real)(ab * both / aa);
}

static void square_row(const match *c, const ses_real *a, const ses_real *b, ses_real *stat)
{
    double sum = 0;
    for (int64_t j = 0; j < c->cols; j++) sum += ((double)a[j] - b[j]) * ((double)a[j] - b[j]);
    stat[0] = (ses_real)(sum / (double)c->cols);
    stat[1] = stat[2] = 0;
}

static void chunk_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    static void (*const each[])(const match *, const ses_real *, const ses_real *,
                                ses_real *) = { soft_row, cosine_row, square_row };
    const match *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        each[c->kind](c, c->a + i * c->cols, c->b + i * c->cols, c->stat + 3 * i);
}

void ses_k_teacher_loss_ref(ses_exec *x, ses_real *loss, ses_real *stat, const ses_real *a, const ses_real *b,
                            int64_t rows, int64_t cols, ses_teacher_loss_kind kind, double heat)
{
    match c = { .stat = stat, .a = a, .b = b, .rows = rows, .cols = cols, .kind = kind, .heat = heat };
    double sum = 0;
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_rows, &c);
    for (int64_t i = 0; i < rows; i++) sum += stat[3 * i];
    loss[0] = (ses_real)(sum / (double)rows);
}

static void chunk_bwd(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const match *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        const ses_real *s = c->stat_in + 3 * i;
        for (int64_t j = i * c->cols; j < (i + 1) * c->cols; j++) {
            double a = c->a[j], b = c->b[j], d = 2 * (a - b) / (double)c->cols;
            if (c->kind == SES_TEACHER_KL)
                d = c->heat * (exp(a / c->heat - s[1]) - exp(b / c->heat - s[2]));
            else if (c->kind == SES_TEACHER_COSINE)
                d = a * s[2] - b * s[1];
            ses_put(c->da, j, c->scale * d);
        }
    }
}

void ses_k_teacher_loss_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *stat,
                                const ses_real *a, const ses_real *b, int64_t rows, int64_t cols,
                                ses_teacher_loss_kind kind, double heat)
{
    match c = { .da = da, .stat_in = stat, .a = a, .b = b, .rows = rows, .cols = cols, .kind = kind };
    c.heat = heat;
    c.scale = dloss[0] / (double)rows;
    if (da.data) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_bwd, &c);
}
