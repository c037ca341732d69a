/* Reference distillation losses: KL divergence, cosine distance, MSE. */
#include "kernel/chunking.h"
#include "kernel/kernel.h"

#include <math.h>

typedef struct teacher_args {
    ses_dst da;
    ses_real *stat;
    const ses_real *a, *b, *stat_in;
    int64_t rows, cols;
    ses_teacher_loss_kind kind;
    double temperature, scale;
} teacher_args;

static const double tiny = 1e-30; /* added to squared norms: a row of zeros gives no NaN */

static double log_sum_exp(const ses_real *a, int64_t n, double temperature)
{
    double max = a[0], sum = 0;
    for (int64_t j = 1; j < n; j++) max = fmax(max, a[j]);
    for (int64_t j = 0; j < n; j++) sum += exp((a[j] - max) / temperature);
    return max / temperature + log(sum);
}

static void kl_row(const teacher_args *c, const ses_real *a, const ses_real *b, ses_real *stat)
{
    double za = log_sum_exp(a, c->cols, c->temperature), zb = log_sum_exp(b, c->cols, c->temperature),
           gap = 0;
    for (int64_t j = 0; j < c->cols; j++) gap += exp(b[j] / c->temperature - zb) * ((double)b[j] - a[j]);
    stat[0] = (ses_real)(c->temperature * gap + c->temperature * c->temperature * (za - zb));
    stat[1] = (ses_real)za;
    stat[2] = (ses_real)zb;
}

static void cosine_row(const teacher_args *c, const ses_real *a, const ses_real *b, ses_real *stat)
{
    double aa = tiny, bb = tiny, ab = 0;
    for (int64_t j = 0; j < c->cols; j++) {
        aa += (double)a[j] * a[j];
        bb += (double)b[j] * b[j];
        ab += (double)a[j] * b[j];
    }
    double inv_norms = 1 / sqrt(aa) / sqrt(bb);
    stat[0] = (ses_real)(1 - ab * inv_norms);
    stat[1] = (ses_real)inv_norms;
    stat[2] = (ses_real)(ab * inv_norms / aa);
}

static void mse_row(const teacher_args *c, const ses_real *a, const ses_real *b, ses_real *stat)
{
    double sum = 0;
    for (int64_t j = 0; j < c->cols; j++) sum += ((double)a[j] - b[j]) * ((double)a[j] - b[j]);
    stat[0] = (ses_real)(sum / (double)c->cols);
    stat[1] = stat[2] = 0;
}

static void chunk_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    static void (*const each[])(const teacher_args *, const ses_real *, const ses_real *,
                                ses_real *) = { kl_row, cosine_row, mse_row };
    const teacher_args *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        each[c->kind](c, c->a + i * c->cols, c->b + i * c->cols, c->stat + 3 * i);
}

void ses_k_teacher_loss_ref(ses_exec *x, ses_real *loss, ses_real *stat, const ses_real *a, const ses_real *b,
                            int64_t rows, int64_t cols, ses_teacher_loss_kind kind, double temperature)
{
    teacher_args c = {
        .stat = stat, .a = a, .b = b, .rows = rows, .cols = cols, .kind = kind, .temperature = temperature
    };
    double sum = 0;
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_rows, &c);
    for (int64_t i = 0; i < rows; i++) sum += stat[3 * i];
    loss[0] = (ses_real)(sum / (double)rows);
}

static void chunk_bwd(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const teacher_args *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        const ses_real *s = c->stat_in + 3 * i;
        for (int64_t j = i * c->cols; j < (i + 1) * c->cols; j++) {
            double a = c->a[j], b = c->b[j], d = 2 * (a - b) / (double)c->cols;
            if (c->kind == SES_TEACHER_KL)
                d = c->temperature * (exp(a / c->temperature - s[1]) - exp(b / c->temperature - s[2]));
            else if (c->kind == SES_TEACHER_COSINE)
                d = a * s[2] - b * s[1];
            ses_dst_put(c->da, j, c->scale * d);
        }
    }
}

void ses_k_teacher_loss_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *stat,
                                const ses_real *a, const ses_real *b, int64_t rows, int64_t cols,
                                ses_teacher_loss_kind kind, double temperature)
{
    teacher_args c = { .da = da, .stat_in = stat, .a = a, .b = b, .rows = rows, .cols = cols, .kind = kind };
    c.temperature = temperature;
    c.scale = dloss[0] / (double)rows;
    if (da.data) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_bwd, &c);
}

/* ---- relations ---- */

typedef struct relation_args {
    ses_real *stat, *da;
    const ses_real *a, *b, *stat_in;
    int64_t rows, cols;
    double a_scale, b_scale, scale;
} relation_args;

static double scaled_log_sum_exp(const ses_real *a, int64_t n, double scale)
{
    double max = scale * a[0], sum = 0;
    for (int64_t j = 1; j < n; j++) max = fmax(max, scale * a[j]);
    for (int64_t j = 0; j < n; j++) sum += exp(scale * a[j] - max);
    return max + log(sum);
}

static void chunk_relation(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const relation_args *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        const ses_real *a = c->a + i * c->cols, *b = c->b + i * c->cols;
        double za = scaled_log_sum_exp(a, c->cols, c->a_scale),
               zb = scaled_log_sum_exp(b, c->cols, c->b_scale), kl = 0;
        for (int64_t j = 0; j < c->cols; j++) {
            double q = c->b_scale * b[j] - zb, p = c->a_scale * a[j] - za; /* logarithms */
            kl += exp(q) * (q - p);
        }
        c->stat[3 * i] = (ses_real)kl, c->stat[3 * i + 1] = (ses_real)za, c->stat[3 * i + 2] = (ses_real)zb;
    }
}

void ses_k_relation_ref(ses_exec *x, ses_real *stat, const ses_real *a, const ses_real *b, int64_t rows,
                        int64_t cols, double a_scale, double b_scale)
{
    relation_args c = {
        .stat = stat, .a = a, .b = b, .rows = rows, .cols = cols, .a_scale = a_scale, .b_scale = b_scale
    };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_relation, &c);
}

void ses_k_relation_mean_ref(ses_exec *x, ses_real *loss, const ses_real *stat, int64_t rows)
{
    (void)x;
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) sum += stat[3 * i];
    loss[0] = (ses_real)(sum / (double)rows);
}

static void chunk_relation_bwd(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const relation_args *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = i * c->cols; j < (i + 1) * c->cols; j++)
            c->da[j] = (ses_real)(c->scale * (exp(c->a_scale * c->a[j] - c->stat_in[3 * i + 1]) -
                                              exp(c->b_scale * c->b[j] - c->stat_in[3 * i + 2])));
}

void ses_k_relation_bwd_ref(ses_exec *x, ses_real *da, const ses_real *dloss, const ses_real *stat,
                            const ses_real *a, const ses_real *b, int64_t rows, int64_t cols, double a_scale,
                            double b_scale, double scale)
{
    relation_args c = { .da = da,
                        .stat_in = stat,
                        .a = a,
                        .b = b,
                        .rows = rows,
                        .cols = cols,
                        .a_scale = a_scale,
                        .b_scale = b_scale };
    c.scale = dloss[0] * scale;
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_relation_bwd, &c);
}
