/* Every kernel except gemm and attention: each variant against ref, over sizes, scales, destinations and
 * threads. */
#include "base/alloc.h"
#include "check.h"
#include "kernel/kernel.h"
#include "sesame/unstable/tensor.h"

#include <math.h>

/* an odd guard: no array is aligned */
enum { MAX_IN = 4, MAX_OUT = 7, GUARD = 67, THREADS = 3, VOCAB = 50 };
enum { STORE, ACCUMULATE, NO_DST, DST_MODES };

/* Number of elements of an array. */
typedef enum { NONE, EACH, ROWS, ROWS_2, COLS, COLS_1, SEQS_COLS, SEQS_COLS_INT, TABLE, ONE, TWO } extent;

/* One call: the arguments it may use, all filled with random numbers. */
typedef struct call {
    ses_kernels k;
    ses_exec x;
    int64_t rows, cols, seqs;
    int mode, dst;
    const float *in[MAX_IN]; /* [rows][cols] */
    const float *gain, *bias, *table[3];
    const float *stat, *loss, *lse, *span_lse;
    const int32_t *id[3], *label, *span_label, *cu, *arg;
    float *out[MAX_OUT];
    int in_place; /* 1 + index of the input that out[0] aliases, or 0 */
} call;

static ses_dst dst(const call *c, int i)
{
    return (ses_dst){ c->dst == NO_DST ? NULL : c->out[i], c->dst == ACCUMULATE };
}

static int64_t count(const call *c, extent e)
{
    switch (e) {
    case EACH: return c->rows * c->cols;
    case ROWS: return c->rows;
    case ROWS_2: return 2 * c->rows;
    case COLS: return c->cols;
    case COLS_1: return c->cols + 1;
    case SEQS_COLS:
    case SEQS_COLS_INT: return c->seqs * c->cols;
    case TABLE: return VOCAB * c->cols;
    case ONE: return 1;
    case TWO: return 2;
    default: return 0;
    }
}

static void run_add(call *c) { c->k.add(&c->x, c->out[0], c->in[0], c->in[1], c->rows * c->cols); }
static void run_scale(call *c) { c->k.scale(&c->x, dst(c, 0), c->in[0], 0.3f, c->rows * c->cols); }
static void run_act(call *c) { c->k.act(&c->x, c->out[0], c->in[0], c->rows * c->cols, (ses_act)c->mode); }
static void run_act_bwd(call *c)
{
    c->k.act_bwd(&c->x, dst(c, 0), c->in[0], c->in[1], c->rows * c->cols, (ses_act)c->mode);
}

static void run_act_bwd_sum(call *c)
{
    c->k.act_bwd_sum(&c->x, (ses_dst){ c->out[0], false }, (ses_dst){ c->out[1], true }, c->out[2], c->in[0],
                     c->in[1], c->rows, c->cols, SES_ACT_GELU);
}

/* Rows that consist of two halves. */
static void run_glu(call *c)
{
    if (c->cols > 1) c->k.glu(&c->x, c->out[0], c->in[0], c->rows, c->cols / 2, (ses_act)c->mode);
}

static void run_glu_bwd(call *c)
{
    if (c->cols > 1)
        c->k.glu_bwd(&c->x, dst(c, 0), c->in[0], c->in[1], c->rows, c->cols / 2, (ses_act)c->mode);
}

static void run_dropout(call *c)
{
    static const double p[] = { 0, 0.1, 0.5, 0.999, 1 };
    ses_rng_key key = { 0x123456789abcdef0u, 7, 9 };
    c->k.dropout(&c->x, dst(c, 0), c->in[0], c->rows * c->cols, p[c->mode], key);
}

/* Copies the left columns to the left columns: the rows of both matrices have gaps. */
static void run_copy_cols(call *c)
{
    c->k.copy_cols(&c->x, dst(c, 0), c->cols, c->in[0], c->cols, c->rows,
                   c->mode ? (c->cols + 1) / 2 : c->cols);
}

static const ses_dropout_spec dropped = { 0.3, { 5, 6, 7 } };

static void run_norm(call *c)
{
    bool res = c->mode & 1, keep = c->mode & 2, drop = c->mode & 4;
    c->k.norm(&c->x, c->out[0], (res && keep) || drop ? c->out[1] : NULL, keep ? c->out[2] : NULL, c->in[0],
              res ? c->in[1] : NULL, c->gain, c->bias, c->rows, c->cols, 1e-12, drop ? &dropped : NULL);
}

static void run_norm_bwd(call *c)
{
    ses_dst dres = dst(c, 1), none = { NULL, false };
    c->k.norm_bwd(&c->x, dst(c, 0), c->mode & 1 ? dres : none, c->mode & 2 ? c->out[2] : NULL,
                  c->mode & 4 ? c->out[3] : NULL, c->in[1], c->in[0], c->stat, c->gain, c->rows, c->cols,
                  c->mode & 8 ? &dropped : NULL);
}

static void run_softmax(call *c) { c->k.softmax(&c->x, c->out[0], c->in[0], c->rows, c->cols); }
static void run_softmax_bwd(call *c)
{
    c->k.softmax_bwd(&c->x, dst(c, 0), c->in[0], c->in[1], c->rows, c->cols);
}

static void run_gather(call *c)
{
    c->k.gather(&c->x, c->out[0], c->table, c->id, 1 + c->mode, c->rows, c->cols);
}

static void run_scatter_add(call *c)
{
    c->k.scatter_add(&c->x, (ses_dst){ c->out[0], true }, c->in[0], c->id[0], c->rows, c->cols,
                     c->mode ? 3 : -1);
}

static void run_pool(call *c)
{
    int32_t *arg = c->mode == 3 ? NULL : (int32_t *)(void *)c->out[1];
    ses_pool_kind kind = c->mode == 3 ? SES_POOL_MAX : (ses_pool_kind)c->mode;
    c->k.pool(&c->x, c->out[0], arg, c->in[0], c->cu, c->seqs, c->cols, kind);
}

static void run_pool_bwd(call *c)
{
    c->k.pool_bwd(&c->x, dst(c, 0), c->in[0], c->arg, c->cu, c->seqs, c->cols, (ses_pool_kind)c->mode);
}

static void run_xent_rows(call *c)
{
    c->k.xent_rows(&c->x, c->out[0], c->out[1], c->in[0], c->label, c->rows, c->cols, c->cols);
}
static void run_xent_mean(call *c) { c->k.xent_mean(&c->x, c->out[0], c->in[0], c->label, c->rows); }
static void run_xent_bwd(call *c)
{
    static const float dloss[] = { 0.7f };
    c->k.xent_bwd(&c->x, dst(c, 0), dloss, c->loss, c->lse, c->in[0], c->label, c->rows, c->cols, c->cols);
}
static void run_xent_seg(call *c)
{
    c->k.xent_span(&c->x, c->out[0], c->out[1], c->in[0], c->cu, c->span_label, c->seqs, c->cols);
}
static void run_xent_seg_bwd(call *c)
{
    static const float dloss[] = { 0.7f };
    c->k.xent_span_bwd(&c->x, dst(c, 0), dloss, c->bias, c->span_lse, c->in[0], c->cu, c->span_label, c->seqs,
                       c->cols);
}

static void run_target_loss(call *c)
{
    (c->mode ? c->k.mse : c->k.bce)(&c->x, c->out[0], c->in[0], c->in[1], c->rows * c->cols);
}
static void run_target_bwd(call *c)
{
    static const float dloss[] = { 0.7f };
    (c->mode ? c->k.mse_bwd : c->k.bce_bwd)(&c->x, dst(c, 0), dloss, c->in[0], c->in[1], c->rows * c->cols);
}

static void run_col_sum(call *c)
{
    c->k.col_sum(&c->x, (ses_dst){ c->out[0], true }, c->in[0], c->rows, c->cols, c->cols);
}
static void run_sum_squares(call *c)
{
    c->out[0][0] = (float)c->k.sum_squares(&c->x, c->in[0], c->rows * c->cols);
}

/* A part, and a smaller one unless n is 1. */
static void run_sum_squares_parts(call *c)
{
    int64_t n = c->rows * c->cols;
    double part[2] = { 0 };
    c->k.sum_squares_parts(&c->x, part, c->in[0], n, n / 2 + 1);
    for (int i = 0; i < 2; i++) c->out[0][i] = (float)part[i];
}

/* out[0] is w, out[1] m, out[2] v, which must not be negative. */
static void run_adamw(call *c)
{
    static const ses_adamw o[] = { { 1e-3, 0.9, 0.999, 1e-8, 0.01, 10, 1000, 1 },
                                   { 0.1, 0.5, 0.9, 1e-6, 0, 1, 1, 0.25 } };
    int64_t n = c->rows * c->cols;
    for (int64_t i = 0; i < n; i++) c->out[2][i] *= c->out[2][i];
    c->k.adamw(&c->x, c->out[0], c->in[0], c->out[1], c->out[2], n, &o[c->mode]);
}

static void run_sgd(call *c)
{
    static const ses_sgd o[] = { { 0.1, 0, 1, 0.01, 0.5, false },
                                 { 0.1, 0.9, 0.7, 0.01, 1, false },
                                 { 1e-3, 0.5, 1, 0, 2, true } };
    c->k.sgd(&c->x, c->out[0], c->in[0], c->mode ? c->out[1] : NULL, c->rows * c->cols, &o[c->mode]);
}

/* out[1] is the sum of squares, which must not be negative. */
static void run_adagrad(call *c)
{
    static const ses_adagrad o[] = { { 0.1, 1e-10, 1, 0.01, 0.5 }, { 1e-3, 1e-6, 0, 0, 2 } };
    int64_t n = c->rows * c->cols;
    for (int64_t i = 0; i < n; i++) c->out[1][i] *= c->out[1][i];
    c->k.adagrad(&c->x, c->out[0], c->in[0], c->out[1], n, &o[c->mode]);
}

static void run_lamb(call *c)
{
    static const ses_adamw o[] = { { 0, 0.9, 0.999, 1e-6, 0.01, 10, 1000, 1 },
                                   { 0, 0.5, 0.9, 1e-6, 0, 1, 1, 0.25 } };
    int64_t n = c->rows * c->cols;
    for (int64_t i = 0; i < n; i++) c->out[2][i] *= c->out[2][i];
    c->k.lamb(&c->x, c->out[0], c->in[1], c->in[0], c->out[1], c->out[2], n, &o[c->mode]);
}

static void run_lamb_move(call *c)
{
    int64_t n = c->rows * c->cols;
    memcpy(c->out[0], c->in[0], (size_t)n * sizeof *c->in[0]);
    c->k.lamb_update(&c->x, c->out[0], c->in[1], n, c->mode ? 0.5 : 1e-3);
}

/* Tolerance: rel times the value, plus abs times the largest value of the array, or of in[0] (times in[1]) if
 * that is larger and `by_input` is 1 (2). Both 0: equal bits. */
static const struct {
    const char *name;
    void (*run)(call *c);
    int modes;
    bool sinks;
    extent out[MAX_OUT];
    double rel, abs;
    int by_input;
} cases[] = {
    { "add", run_add, 1, false, { EACH }, 0, 0, 0 },
    { "scale", run_scale, 1, true, { EACH }, 2e-7, 1e-7, 0 },
    { "act", run_act, SES_ACT_COUNT, false, { EACH }, 4e-7, 1e-7, 0 },
    { "act_bwd", run_act_bwd, SES_ACT_COUNT, true, { EACH }, 4e-7, 3e-7, 1 },
    { "act_bwd_sum", run_act_bwd_sum, 1, false, { EACH, COLS, EACH }, 4e-7, 1e-6, 1 },
    { "glu", run_glu, SES_ACT_COUNT, false, { EACH }, 4e-7, 3e-7, 1 },
    { "glu_bwd", run_glu_bwd, SES_ACT_COUNT, true, { EACH }, 4e-7, 1e-6, 2 },
    { "dropout", run_dropout, 5, true, { EACH }, 0, 0, 0 },
    { "copy_cols", run_copy_cols, 2, true, { EACH }, 0, 0, 0 },
    { "norm", run_norm, 8, false, { EACH, EACH, ROWS_2 }, 5e-7, 4e-7, 0 },
    { "norm_bwd", run_norm_bwd, 16, true, { EACH, EACH, COLS, COLS }, 5e-7, 1e-6, 0 },
    { "softmax", run_softmax, 1, false, { EACH }, 1e-6, 0, 0 },
    { "softmax_bwd", run_softmax_bwd, 1, true, { EACH }, 5e-7, 1e-6, 0 },
    { "gather", run_gather, 3, false, { EACH }, 2e-7, 2e-7, 0 },
    { "scatter_add", run_scatter_add, 2, false, { TABLE }, 0, 0, 0 },
    { "pool", run_pool, 4, false, { SEQS_COLS, SEQS_COLS_INT }, 2e-7, 2e-7, 0 },
    { "pool_bwd", run_pool_bwd, 3, true, { EACH }, 2e-7, 1e-7, 0 },
    { "xent_rows", run_xent_rows, 1, false, { ROWS, ROWS }, 5e-7, 2e-7, 0 },
    { "xent_mean", run_xent_mean, 1, false, { TWO }, 0, 0, 0 },
    { "xent_bwd", run_xent_bwd, 1, true, { EACH }, 5e-7, 2e-7, 0 },
    { "xent_span", run_xent_seg, 1, false, { COLS_1, SEQS_COLS }, 0, 0, 0 },
    { "xent_span_bwd", run_xent_seg_bwd, 1, true, { EACH }, 0, 0, 0 },
    { "target_loss", run_target_loss, 2, false, { ONE }, 1e-6, 0, 0 },
    { "target_bwd", run_target_bwd, 2, true, { EACH }, 5e-7, 1e-7, 0 },
    { "col_sum", run_col_sum, 1, false, { COLS }, 2e-7, 5e-7, 0 },
    { "sum_squares", run_sum_squares, 1, false, { ONE }, 1e-7, 0, 0 },
    { "sum_squares_parts", run_sum_squares_parts, 1, false, { TWO }, 1e-7, 0, 0 },
    { "adamw", run_adamw, 2, false, { EACH, EACH, EACH }, 5e-7, 2e-7, 0 },
    { "sgd", run_sgd, 3, false, { EACH, EACH }, 5e-7, 3e-7, 0 },
    { "adagrad", run_adagrad, 2, false, { EACH, EACH }, 5e-7, 3e-7, 0 },
    { "lamb", run_lamb, 2, false, { EACH, EACH, EACH }, 8e-7, 2e-7, 0 },
    { "lamb_update", run_lamb_move, 2, false, { EACH }, 2e-7, 3e-7, 0 },
};

static const ses_rng_key test_key = { 2024, 0, 0 };
static uint64_t drawn;

static float *random_floats(int64_t n, double scale)
{
    float *p = ses_alloc((size_t)(n + 1) * sizeof *p, NULL);
    for (int64_t i = 1; i <= n; i++) p[i] = (float)(scale * ses_rand_normal(test_key, drawn++));
    return p; /* the array starts at p + 1 and ends at the end of the block */
}

static int32_t *random_ids(int64_t n, int32_t below)
{
    int32_t *p = ses_alloc((size_t)n * sizeof *p, NULL);
    for (int64_t i = 0; i < n; i++) p[i] = (int32_t)(ses_rand32(test_key, drawn++) % (uint32_t)below);
    return p;
}

/* Owner of the arrays of a call. */
typedef struct data {
    float *f[11];
    int32_t *id[7];
    float *start[MAX_OUT]; /* initial values of the outputs */
} data;

static void data_free(data *d)
{
    for (size_t i = 0; i < SES_LEN(d->f); i++) ses_free(d->f[i]);
    for (size_t i = 0; i < SES_LEN(d->id); i++) ses_free(d->id[i]);
    for (size_t i = 0; i < MAX_OUT; i++) ses_free(d->start[i]);
}

/* Sequences split the rows at random; one may be empty. */
static void make_ids(data *d, call *c)
{
    for (int i = 0; i < 3; i++) c->id[i] = d->id[i] = random_ids(c->rows, VOCAB);
    d->id[3] = random_ids(c->rows, (int32_t)c->cols);
    for (int64_t i = 0; i < c->rows; i++)
        if (i % 4 == 2) d->id[3][i] = SES_IGNORE_INDEX;
    d->id[4] = random_ids(c->seqs + 1, 1);
    for (int64_t i = 1; i < c->seqs; i++)
        d->id[4][i] = i % 3 == 2 ? d->id[4][i - 1] : (int32_t)(c->rows * i / c->seqs);
    d->id[4][c->seqs] = (int32_t)c->rows;
    d->id[5] = random_ids(c->seqs * c->cols, 8); /* some are outside their sequence */
    if (c->rows > 2) d->id[5][0] = SES_IGNORE_INDEX;
    d->id[6] = random_ids(c->seqs * c->cols, 1);
    for (int64_t i = 0; i < c->seqs * c->cols; i++) {
        int32_t first = d->id[4][i / c->cols], len = d->id[4][i / c->cols + 1] - first;
        d->id[6][i] = len ? first + (int32_t)(i % len) : -1;
    }
    c->label = d->id[3], c->cu = d->id[4], c->span_label = d->id[5], c->arg = d->id[6];
}

static void make(data *d, call *c, double scale)
{
    int64_t n = c->rows * c->cols;
    memset(d, 0, sizeof *d);
    for (int i = 0; i < 2; i++) c->in[i] = (d->f[i] = random_floats(n, scale)) + 1;
    for (int i = 0; i < 3; i++) c->table[i] = (d->f[2 + i] = random_floats(VOCAB * c->cols, scale)) + 1;
    c->gain = (d->f[5] = random_floats(c->cols, 1)) + 1;
    c->bias = (d->f[6] = random_floats(c->cols + 1, 1)) + 1;
    make_ids(d, c);
    for (int i = 0; i < MAX_OUT; i++) d->start[i] = random_floats(n + VOCAB * c->cols + 2, scale);
    /* forward results that backward passes read */
    for (int i = 7; i < 11; i++) d->f[i] = random_floats(n + 2 * c->rows + 2, 1);
    ses_k_norm_ref(&c->x, d->f[10], NULL, d->f[7], c->in[0], NULL, c->gain, c->bias, c->rows, c->cols, 1e-12,
                   NULL);
    ses_k_xent_rows_ref(&c->x, d->f[10], d->f[8], c->in[0], c->label, c->rows, c->cols, c->cols);
    ses_k_xent_mean_ref(&c->x, d->f[9], d->f[10], c->label, c->rows);
    float *span_lse = random_floats(c->seqs * c->cols, 1);
    ses_k_xent_span_ref(&c->x, d->f[6] + 1, span_lse, c->in[0], c->cu, c->span_label, c->seqs, c->cols);
    ses_free(d->f[10]);
    d->f[10] = span_lse;
    c->stat = d->f[7], c->lse = d->f[8], c->loss = d->f[9], c->span_lse = span_lse;
}

/* One run of a case: outputs between guards, starting from d->start. */
typedef struct result {
    float *out[MAX_OUT];
} result;

static const uint32_t guard_bits = 0x7fc0deadu;

static result run(size_t k, call *c, const data *d)
{
    result r = { { 0 } };
    for (int i = 0; i < MAX_OUT && cases[k].out[i] != NONE; i++) {
        int64_t n = count(c, cases[k].out[i]);
        r.out[i] = ses_alloc((size_t)(n + 2 * GUARD) * sizeof(float), NULL);
        for (int64_t j = 0; j < n + 2 * GUARD; j++) memcpy(r.out[i] + j, &guard_bits, sizeof guard_bits);
        memcpy(r.out[i] + GUARD, d->start[i], (size_t)n * sizeof(float));
        c->out[i] = r.out[i] + GUARD;
    }
    const float *separate[MAX_IN];
    memcpy(separate, c->in, sizeof separate);
    if (c->in_place) {
        memcpy(c->out[0], c->in[c->in_place - 1], (size_t)(c->rows * c->cols) * sizeof(float));
        c->in[c->in_place - 1] = c->out[0];
    }
    cases[k].run(c);
    memcpy(c->in, separate, sizeof separate);
    bool whole = true;
    for (int i = 0; i < MAX_OUT && r.out[i]; i++)
        for (int64_t j = 0; j < GUARD; j++) {
            int64_t end = GUARD + count(c, cases[k].out[i]);
            whole &= !memcmp(r.out[i] + j, &guard_bits, 4) && !memcmp(r.out[i] + end + j, &guard_bits, 4);
        }
    CHECK_MSG(whole, "%s writes outside of its output, %lld x %lld", cases[k].name, (long long)c->rows,
              (long long)c->cols);
    return r;
}

static void result_free(result *r)
{
    for (int i = 0; i < MAX_OUT; i++) ses_free(r->out[i]);
}

static bool same_bits(size_t k, const call *c, const result *a, const result *b)
{
    bool same = true;
    for (int i = 0; i < MAX_OUT && a->out[i]; i++)
        same &=
            !memcmp(a->out[i] + GUARD, b->out[i] + GUARD, (size_t)count(c, cases[k].out[i]) * sizeof(float));
    return same;
}

static double largest(const float *a, int64_t n, int64_t step)
{
    double most = 0;
    for (int64_t i = 0; i < n; i += step) most = fmax(most, fabs((double)a[i]));
    return most;
}

/* The largest difference divided by the tolerance. Means and rstd alternate in one array and are treated as
 * two. */
static double worst(size_t k, const call *c, const result *ref, const result *got)
{
    double most = 0;
    for (int i = 0; i < MAX_OUT && ref->out[i]; i++) {
        const float *a = ref->out[i] + GUARD, *b = got->out[i] + GUARD;
        int64_t n = count(c, cases[k].out[i]), step = cases[k].out[i] == ROWS_2 ? 2 : 1;
        if (cases[k].out[i] == SEQS_COLS_INT) {
            if (memcmp(a, b, (size_t)n * sizeof *a)) return INFINITY;
            continue;
        }
        double top[2] = { largest(a, n, step), step == 2 ? largest(a + 1, n - 1, step) : 0 };
        /* the error of a mean is relative to the deviations of its row */
        if (step == 2) top[0] = fmax(top[0], 1 / top[1]);
        double inputs = cases[k].by_input ? 1 : 0;
        for (int j = 0; j < cases[k].by_input; j++) inputs *= largest(c->in[j], c->rows * c->cols, 1);
        top[0] = fmax(top[0], inputs);
        for (int64_t j = 0; j < n; j++) {
            if (a[j] == b[j] || (isnan(a[j]) && isnan(b[j]))) continue;
            double allowed = cases[k].rel * fabs((double)a[j]) + cases[k].abs * top[j % step] + 1e-44;
            double share = fabs((double)a[j] - b[j]) / allowed;
            if (!(share <= most)) most = isnan(share) ? INFINITY : share;
        }
    }
    return most;
}

static ses_thread_pool *pools[THREADS];

/* All levels against ref, and 1, 2 and 3 threads against each other. */
static double compare(size_t k, call *c, const data *d, double scale)
{
    double most = 0;
    result ref = { { 0 } };
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        result one = { { 0 } };
        c->k = ses_kernels_cpu((ses_isa)isa);
        for (int threads = 0; threads < THREADS; threads++) {
            c->x.pool = pools[threads];
            result r = run(k, c, d);
            if (threads == 0) {
                one = r;
                continue;
            }
            CHECK_MSG(same_bits(k, c, &one, &r), "%s %s: %d threads, %lld x %lld", cases[k].name,
                      ses_isa_name((ses_isa)isa), threads + 1, (long long)c->rows, (long long)c->cols);
            result_free(&r);
        }
        if (isa == SES_ISA_REF) {
            ref = one;
            continue;
        }
        double w = worst(k, c, &ref, &one);
        CHECK_MSG(w <= 1, "%s %s: %g times the tolerance; %lld x %lld, mode %d, dst %d, scale %g",
                  cases[k].name, ses_isa_name((ses_isa)isa), w, (long long)c->rows, (long long)c->cols,
                  c->mode, c->dst, scale);
        most = fmax(most, w);
        result_free(&one);
    }
    result_free(&ref);
    return most;
}

static const struct {
    int64_t rows, cols, seqs;
} shapes[] = {
    { 1, 1, 1 },    { 7, 1, 2 },   { 1, 7, 1 },    { 3, 8, 1 },    { 2, 15, 2 },    { 5, 16, 4 },
    { 4, 17, 2 },   { 3, 31, 1 },  { 9, 33, 5 },   { 6, 63, 2 },   { 2, 64, 1 },    { 33, 65, 4 },
    { 65, 100, 7 }, { 3, 130, 2 }, { 70, 257, 9 }, { 1, 1000, 1 }, { 23, 1037, 4 }, { 2, 30522, 1 },
};

static void test_variants(bool print)
{
    static const double scales[] = { 1, 1e-4, 1e4 };
    double most[SES_LEN(cases)] = { 0 };
    for (size_t s = 0; s < SES_LEN(shapes); s++)
        for (size_t v = 0; v < SES_LEN(scales); v++) {
            if (shapes[s].cols > 2000 && v) continue;
            call c = { .x = { pools[0], NULL },
                       .rows = shapes[s].rows,
                       .cols = shapes[s].cols,
                       .seqs = shapes[s].seqs };
            data d;
            make(&d, &c, scales[v]);
            for (size_t k = 0; k < SES_LEN(cases); k++)
                for (c.mode = 0; c.mode < cases[k].modes; c.mode++)
                    for (c.dst = 0; c.dst < (cases[k].sinks ? DST_MODES : 1); c.dst++)
                        most[k] = fmax(most[k], compare(k, &c, &d, scales[v]));
            data_free(&d);
        }
    for (size_t k = 0; print && k < SES_LEN(cases); k++)
        printf("%-14s %.2f of the tolerance\n", cases[k].name, most[k]);
}

static size_t find(const char *name)
{
    size_t k = 0;
    while (k + 1 < SES_LEN(cases) && strcmp(cases[k].name, name)) k++;
    return k;
}

/* Rows with a large mean compared to their deviations are normalized with the same accuracy. */
static void test_large_mean(void)
{
    call c = { .x = { pools[0], NULL }, .rows = 9, .cols = 771, .seqs = 1 };
    data d;
    make(&d, &c, 1);
    for (int64_t i = 0; i < c.rows * c.cols; i++) d.f[0][1 + i] += (float)(i / c.cols) * 3000.1f;
    compare(find("norm"), &c, &d, 1);
    data_free(&d);
}

/* Infinities and NaN do not crash; where ref gives NaN, every level does. */
static void test_special(void)
{
    static const float special[] = { INFINITY, -INFINITY, 3e38f, -3e38f, 1e-42f, 0, -0.0f, NAN };
    for (size_t v = 0; v < SES_LEN(special); v++) {
        call c = { .x = { pools[0], NULL }, .rows = 6, .cols = 37, .seqs = 2 };
        data d;
        make(&d, &c, 1);
        d.f[0][1 + 5] = d.f[0][1 + 2 * 37 + 36] = d.f[1][1 + 3 * 37 + 31] = special[v];
        for (size_t k = 0; k < SES_LEN(cases); k++)
            for (c.mode = 0; c.mode < cases[k].modes; c.mode++) {
                c.k = ses_kernels_cpu(SES_ISA_REF);
                result ref = run(k, &c, &d);
                for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++) {
                    c.k = ses_kernels_cpu((ses_isa)isa);
                    result r = run(k, &c, &d);
                    bool same = true;
                    for (int i = 0; i < MAX_OUT && r.out[i] && isnan(special[v]); i++)
                        for (int64_t j = 0; j < count(&c, cases[k].out[i]); j++)
                            same &= !isnan(r.out[i][GUARD + j]) == !isnan(ref.out[i][GUARD + j]);
                    CHECK_MSG(same, "%s %s mode %d: NaN", cases[k].name, ses_isa_name((ses_isa)isa), c.mode);
                    result_free(&r);
                }
                result_free(&ref);
            }
        data_free(&d);
    }
}

/* The result of a row does not depend on its position or the other rows, that of an element not on its lane
 * or the tail. */
static void test_independence(void)
{
    enum { R = 37, C = 83, N = R * C };
    call c = { .x = { pools[0], NULL }, .rows = R, .cols = C, .seqs = 1 };
    data d;
    make(&d, &c, 1);
    float *all[4], one[4][C];
    for (int i = 0; i < 4; i++) all[i] = ses_alloc(2 * N * sizeof(float), NULL);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_kernels k = ses_kernels_cpu((ses_isa)isa);
        k.norm(&c.x, all[0], NULL, all[3], c.in[0], c.in[1], c.gain, c.bias, R, C, 1e-12, NULL);
        k.softmax(&c.x, all[1], c.in[0], R, C);
        k.xent_rows(&c.x, all[2], all[2] + R, c.in[0], c.label, R, C, C);
        for (int64_t r = 0; r < R; r++) {
            const float *a = c.in[0] + r * C;
            k.norm(&c.x, one[0], NULL, one[3], a, c.in[1] + r * C, c.gain, c.bias, 1, C, 1e-12, NULL);
            k.softmax(&c.x, one[1], a, 1, C);
            k.xent_rows(&c.x, one[2], one[2] + 1, a, c.label + r, 1, C, C);
            CHECK(!memcmp(one[0], all[0] + r * C, sizeof one[0]) && !memcmp(one[3], all[3] + 2 * r, 8));
            CHECK(!memcmp(one[1], all[1] + r * C, sizeof one[1]));
            CHECK(one[2][0] == all[2][r] && one[2][1] == all[2][R + r]);
        }
        for (int act = 0; act < SES_ACT_COUNT; act++) {
            k.act(&c.x, all[0], c.in[0], N, (ses_act)act);
            for (int64_t from = 1; from < 40; from += 3) {
                k.act(&c.x, one[0], c.in[0] + from, 40 - from, (ses_act)act);
                CHECK(!memcmp(one[0], all[0] + from, (size_t)(40 - from) * sizeof(float)));
            }
        }
    }
    for (int i = 0; i < 4; i++) ses_free(all[i]);
    data_free(&d);
}

/* A token is rotated by its own position only, whatever the previous row's is. Columns that are not rotated
 * are accumulated once, however many passes the others take. */
static void test_rotary_positions(void)
{
    enum { C = 310, DIM = 300, FAR = 1000000 };
    ses_exec x = { .pool = pools[0] };
    float a[2 * C], both[2 * C], one[C];
    double rate[DIM / 2];
    for (int i = 0; i < DIM / 2; i++) rate[i] = pow(1e4, -2.0 * i / DIM);
    const ses_rotary_spec o = { DIM, DIM, DIM / 2, false, rate, 1, 1 };
    for (int i = 0; i < 2 * C; i++) a[i] = (float)sin(i);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_kernels k = ses_kernels_cpu((ses_isa)isa);
        for (int32_t i = 0; i < 40; i++) {
            const int32_t pos[2] = { i, FAR - 7 * i * i };
            k.rotary(&x, (ses_dst){ both, false }, a, pos, 2, C, &o);
            k.rotary(&x, (ses_dst){ one, false }, a + C, pos + 1, 1, C, &o);
            CHECK_MSG(!memcmp(one, both + C, sizeof one), "%s: position %d", ses_isa_name((ses_isa)isa),
                      pos[1]);
        }
        for (int i = 0; i < C; i++) one[i] = 1;
        k.rotary(&x, (ses_dst){ one, true }, a, (int32_t[]){ 5 }, 1, C, &o);
        for (int i = DIM; i < C; i++) CHECK(one[i] == 1 + a[i]);
    }
}

/* Writing to an input in place gives the same bits. */
static void test_in_place(void)
{
    static const struct {
        const char *name;
        int in;
    } aliases[] = { { "add", 0 },           { "add", 1 },         { "scale", 0 },       { "act", 0 },
                    { "act_bwd", 0 },       { "act_bwd", 1 },     { "dropout", 0 },     { "copy_cols", 0 },
                    { "norm", 0 },          { "norm", 1 },        { "norm_bwd", 1 },    { "norm_bwd", 0 },
                    { "softmax", 0 },       { "softmax_bwd", 0 }, { "softmax_bwd", 1 }, { "xent_bwd", 0 },
                    { "xent_span_bwd", 0 }, { "target_bwd", 0 } };
    call c = { .x = { pools[1], NULL }, .rows = 19, .cols = 1037, .seqs = 3 };
    data d;
    make(&d, &c, 1);
    for (size_t i = 0; i < SES_LEN(aliases); i++)
        for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
            size_t k = find(aliases[i].name);
            c.k = ses_kernels_cpu((ses_isa)isa);
            for (c.mode = 0; c.mode < cases[k].modes; c.mode++) {
                /* does not write the other columns */
                if (!strcmp(aliases[i].name, "copy_cols") && c.mode) continue;
                if (!strcmp(aliases[i].name, "norm") && aliases[i].in == 1 && !(c.mode & 1)) continue;
                c.in_place = 0;
                result separate = run(k, &c, &d);
                c.in_place = 1 + aliases[i].in;
                result aliased = run(k, &c, &d);
                CHECK_MSG(same_bits(k, &c, &separate, &aliased), "%s %s mode %d output aliases input %d",
                          aliases[i].name, ses_isa_name((ses_isa)isa), c.mode, aliases[i].in);
                result_free(&separate);
                result_free(&aliased);
            }
        }
    data_free(&d);
}

/* Quantized rows at an odd address, up to the end of their block: the bits of ref. */
static void test_dequantize_rows(void)
{
    static const ses_dtype as[] = { SES_F16, SES_BF16, SES_I8 };
    static const int64_t widths[] = { 1, 7, 16, 33, 100 };
    static const int32_t id[] = { 3, 0, SES_IGNORE_INDEX, 4, 3 };
    enum { TABLE_ROWS = 5, OUT = SES_LEN(id) };
    ses_exec x = { .pool = ses_thread_pool_new(2, NULL) };
    for (size_t d = 0; d < SES_LEN(as); d++)
        for (size_t w = 0; w < SES_LEN(widths); w++) {
            int64_t cols = widths[w];
            size_t n = (size_t)(TABLE_ROWS * cols), size = ses_dtype_size(as[d]);
            float *wide = random_floats((int64_t)n, 30), *scale = random_floats(TABLE_ROWS, 1);
            char *block = ses_alloc(1 + n * size, NULL);
            if (as[d] == SES_I8)
                for (size_t i = 0; i < n; i++) wide[1 + i] = fminf(fmaxf(truncf(wide[1 + i]), -127), 127);
            CHECK(ses_convert(block + 1, as[d], wide + 1, SES_F32, n, NULL));
            ses_quant_rows table = { block + 1, as[d], as[d] == SES_I8 ? scale + 1 : NULL };
            float *ref = ses_alloc((size_t)(OUT * cols) * sizeof *ref, NULL),
                  *got = ses_alloc((size_t)(OUT * cols) * sizeof *got, NULL);
            ses_k_dequantize_rows_ref(&x, ref, &table, id, OUT, cols);
            for (int64_t j = 0; j < cols && as[d] == SES_I8; j++)
                CHECK(ref[j] == wide[1 + 3 * cols + j] * scale[1 + 3]);
            for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++) {
                ses_kernels_cpu((ses_isa)isa).dequantize_rows(&x, got, &table, id, OUT, cols);
                CHECK_MSG(!memcmp(ref, got, (size_t)(OUT * cols) * sizeof *got), "%s %s, %lld wide",
                          ses_isa_name((ses_isa)isa), ses_dtype_name(as[d]), (long long)cols);
            }
            ses_free(wide), ses_free(scale), ses_free(block), ses_free(ref), ses_free(got);
        }
    ses_thread_pool_free(x.pool);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < THREADS; i++) pools[i] = ses_thread_pool_new(i + 1, NULL);
    test_variants(argc > 1 && !strcmp(argv[1], "-v"));
    test_large_mean();
    test_special();
    test_independence();
    test_rotary_positions();
    test_in_place();
    test_dequantize_rows();
    for (int i = 0; i < THREADS; i++) ses_thread_pool_free(pools[i]);
    return check_report();
}
