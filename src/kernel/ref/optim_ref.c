/* Reference optimizer steps: AdamW, SGD, LAMB, Adafactor. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct step {
    ses_real *w, *m, *v;
    const ses_real *g;
    int64_t n;
    ses_adamw o;
} step;

/* AdamW (Loshchilov and Hutter 2019): weight decay acts on w directly, not through g. */
static void adamw_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    const ses_adamw *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double g = o->scale * s->g[i], w = s->w[i];
        double m = o->beta1 * s->m[i] + (1 - o->beta1) * g;
        double v = o->beta2 * s->v[i] + (1 - o->beta2) * g * g;
        w -= o->lr * o->weight_decay * w;
        w -= o->lr * (m * o->correction1) / (sqrt(v * o->correction2) + o->eps);
        s->w[i] = (ses_real)w;
        s->m[i] = (ses_real)m;
        s->v[i] = (ses_real)v;
    }
}

void ses_k_adamw_ref(ses_exec *x, ses_real *w, const ses_real *g, ses_real *m, ses_real *v, int64_t n,
                     const ses_adamw *o)
{
    step s = { w, m, v, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), adamw_chunk, &s);
}

void ses_k_adamw_list_ref(ses_exec *x, const ses_adamw_tensor *part, int64_t n)
{
    for (const ses_adamw_tensor *p = part; p < part + n; p++)
        ses_k_adamw_ref(x, p->w, p->g, p->m, p->v, p->n, &p->o);
}

typedef struct descent {
    ses_real *w, *buf;
    const ses_real *g;
    int64_t n;
    ses_sgd o;
} descent;

static void sgd_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const descent *s = ctx;
    const ses_sgd *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double d = o->scale * s->g[i] + o->weight_decay * s->w[i];
        if (s->buf) {
            double buf = o->momentum * s->buf[i] + o->grad_weight * d;
            s->buf[i] = (ses_real)buf;
            d = o->nesterov ? d + o->momentum * buf : buf;
        }
        s->w[i] = (ses_real)(s->w[i] - o->lr * d);
    }
}

void ses_k_sgd_ref(ses_exec *x, ses_real *w, const ses_real *g, ses_real *buf, int64_t n, const ses_sgd *o)
{
    descent s = { w, buf, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), sgd_chunk, &s);
}

typedef struct adagrad {
    ses_real *w, *sum;
    const ses_real *g;
    int64_t n;
    ses_adagrad o;
} adagrad;

static void adagrad_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const adagrad *s = ctx;
    const ses_adagrad *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double d = o->scale * s->g[i] + o->weight_decay * s->w[i], sum = s->sum[i] + d * d;
        s->sum[i] = (ses_real)sum;
        s->w[i] = (ses_real)(s->w[i] - o->lr * d / (sqrt(sum + o->accumulator) + o->eps));
    }
}

void ses_k_adagrad_ref(ses_exec *x, ses_real *w, const ses_real *g, ses_real *sum, int64_t n,
                       const ses_adagrad *o)
{
    adagrad s = { w, sum, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), adagrad_chunk, &s);
}

typedef struct lamb {
    ses_real *u, *m, *v;
    const ses_real *w, *g;
    int64_t n;
    ses_adamw o;
} lamb;

static void lamb_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const lamb *s = ctx;
    const ses_adamw *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double g = o->scale * s->g[i];
        double m = o->beta1 * s->m[i] + (1 - o->beta1) * g;
        double v = o->beta2 * s->v[i] + (1 - o->beta2) * g * g;
        s->m[i] = (ses_real)m;
        s->v[i] = (ses_real)v;
        s->u[i] =
            (ses_real)(m * o->correction1 / (sqrt(v * o->correction2) + o->eps) + o->weight_decay * s->w[i]);
    }
}

void ses_k_lamb_ref(ses_exec *x, ses_real *u, const ses_real *w, const ses_real *g, ses_real *m, ses_real *v,
                    int64_t n, const ses_adamw *o)
{
    lamb s = { u, m, v, w, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), lamb_chunk, &s);
}

void ses_k_lamb_update_ref(ses_exec *x, ses_real *w, const ses_real *u, int64_t n, double lr)
{
    double squares_w = ses_k_sum_squares_ref(x, w, n), squares_u = ses_k_sum_squares_ref(x, u, n);
    ses_k_scale_ref(x, (ses_dst){ w, true }, u, (ses_real)(-lr * ses_lamb_trust(squares_w, squares_u)), n);
}

typedef struct factors {
    ses_real *u, *row, *col; /* row holds v if the second moment is not factored */
    const ses_real *g;
    int64_t rows, cols;
    double mean; /* mean of row */
    ses_adafactor o;
} factors;

static double square(const ses_adafactor *o, double g) { return o->scale * g * (o->scale * g) + o->eps; }

static void row_means(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const factors *f = ctx;
    ses_range r = ses_chunk(f->rows, ses_chunk_rows(f->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double sum = 0;
        for (int64_t j = 0; j < f->cols; j++) sum += square(&f->o, f->g[i * f->cols + j]);
        f->row[i] = (ses_real)(f->o.beta2 * f->row[i] + (1 - f->o.beta2) * sum / (double)f->cols);
    }
}

static void col_means(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const factors *f = ctx;
    ses_range r = ses_chunk(f->cols, SES_COL_BLOCK, chunk);
    double sum[SES_COL_BLOCK] = { 0 };
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t j = r.begin; j < r.end; j++) sum[j - r.begin] += square(&f->o, f->g[i * f->cols + j]);
    for (int64_t j = r.begin; j < r.end; j++)
        f->col[j] =
            (ses_real)(f->o.beta2 * f->col[j] + (1 - f->o.beta2) * sum[j - r.begin] / (double)f->rows);
}

static void divide_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const factors *f = ctx;
    ses_range r = ses_chunk(f->rows, ses_chunk_rows(f->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double by = sqrt(f->row[i] / f->mean);
        for (int64_t j = 0; j < f->cols; j++)
            f->u[i * f->cols + j] =
                (ses_real)(f->o.scale * f->g[i * f->cols + j] / (by * sqrt((double)f->col[j])));
    }
}

void ses_k_adafactor_matrix_ref(ses_exec *x, ses_real *u, ses_real *row, ses_real *col, const ses_real *g,
                                int64_t rows, int64_t cols, const ses_adafactor *o)
{
    factors f = { u, row, col, g, rows, cols, 0, *o };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), row_means, &f);
    ses_parallel_for(x->pool, ses_chunks(cols, SES_COL_BLOCK), col_means, &f);
    for (int64_t i = 0; i < rows; i++) f.mean += row[i] / (double)rows;
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), divide_rows, &f);
}

static void divide_each(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const factors *f = ctx;
    ses_range r = ses_chunk(f->cols, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double v = f->o.beta2 * f->row[i] + (1 - f->o.beta2) * square(&f->o, f->g[i]);
        f->row[i] = (ses_real)v;
        f->u[i] = (ses_real)(f->o.scale * f->g[i] / sqrt(v));
    }
}

void ses_k_adafactor_each_ref(ses_exec *x, ses_real *u, ses_real *v, const ses_real *g, int64_t n,
                              const ses_adafactor *o)
{
    factors f = { .u = u, .row = v, .g = g, .cols = n, .o = *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), divide_each, &f);
}
