/* Reference elementwise kernels, gated units, dropout, column copies. */
#include "act_ref.h"
#include "base/half.h"
#include "kernel/chunking.h"

typedef struct pointwise {
    ses_dst y;
    const ses_real *a, *b;
    int64_t n;
    double s;
    ses_act act;
    ses_rng_key key;
} pointwise;

static void run(ses_exec *x, ses_chunk_fn *fn, pointwise *c)
{
    if (c->y.data) ses_parallel_for(x->pool, ses_chunks(c->n, SES_CHUNK), fn, c);
}

static void add_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) ses_dst_put(c->y, i, (double)c->a[i] + c->b[i]);
}

void ses_k_add_ref(ses_exec *x, ses_real *y, const ses_real *a, const ses_real *b, int64_t n)
{
    run(x, add_chunk, &(pointwise){ .y = { y, false }, .a = a, .b = b, .n = n });
}

typedef struct conversion {
    ses_real *real;
    const ses_real *from;
    uint16_t *half;
    const uint16_t *from_half;
    int64_t n;
} conversion;

static void pack_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const conversion *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) c->half[i] = ses_f32_to_bf16((float)c->from[i]);
}

void ses_k_pack_bf16_ref(ses_exec *x, uint16_t *y, const ses_real *a, int64_t n)
{
    conversion c = { .half = y, .from = a, .n = n };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), pack_chunk, &c);
}

static void unpack_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const conversion *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) c->real[i] = ses_bf16_to_f32(c->from_half[i]);
}

void ses_k_unpack_bf16_ref(ses_exec *x, ses_real *y, const uint16_t *a, int64_t n)
{
    conversion c = { .real = y, .from_half = a, .n = n };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), unpack_chunk, &c);
}

static void scale_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) ses_dst_put(c->y, i, c->s * c->a[i]);
}

void ses_k_scale_ref(ses_exec *x, ses_dst y, const ses_real *a, ses_real s, int64_t n)
{
    run(x, scale_chunk, &(pointwise){ .y = y, .a = a, .s = s, .n = n });
}

static void mul_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) ses_dst_put(c->y, i, (double)c->a[i] * c->b[i]);
}

void ses_k_mul_ref(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *b, int64_t n)
{
    run(x, mul_chunk, &(pointwise){ .y = y, .a = a, .b = b, .n = n });
}

static void act_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) ses_dst_put(c->y, i, ses_act_ref(c->act, c->a[i]));
}

void ses_k_act_ref(ses_exec *x, ses_real *y, const ses_real *a, int64_t n, ses_act act)
{
    run(x, act_chunk, &(pointwise){ .y = { y, false }, .a = a, .n = n, .act = act });
}

static void act_bwd_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        ses_dst_put(c->y, i, c->b[i] * ses_act_slope_ref(c->act, c->a[i]));
}

void ses_k_act_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dy, const ses_real *a, int64_t n, ses_act act)
{
    run(x, act_bwd_chunk, &(pointwise){ .y = da, .a = a, .b = dy, .n = n, .act = act });
}

void ses_k_act_bwd_sum_ref(ses_exec *x, ses_dst da, ses_dst sum, ses_real *y, const ses_real *dy,
                           const ses_real *a, int64_t rows, int64_t cols, ses_act act)
{
    ses_k_act_bwd_ref(x, da, dy, a, rows * cols, act);
    ses_k_col_sum_ref(x, sum, da.data, rows, cols, cols);
    if (y) ses_k_act_ref(x, y, a, rows * cols, act);
}

typedef struct glu {
    ses_dst y;
    const ses_real *ab, *dy;
    int64_t rows, cols;
    ses_act act;
} glu;

static void glu_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const glu *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin * c->cols; i < r.end * c->cols; i++) {
        int64_t at = i / c->cols * 2 * c->cols + i % c->cols;
        double a = c->ab[at], b = c->ab[at + c->cols];
        if (c->dy) {
            ses_dst_put(c->y, at, c->dy[i] * b * ses_act_slope_ref(c->act, a));
            ses_dst_put(c->y, at + c->cols, c->dy[i] * ses_act_ref(c->act, a));
        } else {
            ses_dst_put(c->y, i, ses_act_ref(c->act, a) * b);
        }
    }
}

static void run_glu(ses_exec *x, glu *c)
{
    if (c->y.data) ses_parallel_for(x->pool, ses_chunks(c->rows, ses_chunk_rows(c->cols)), glu_chunk, c);
}

void ses_k_glu_ref(ses_exec *x, ses_real *y, const ses_real *ab, int64_t rows, int64_t cols, ses_act act)
{
    run_glu(x, &(glu){ { y, false }, ab, NULL, rows, cols, act });
}

void ses_k_glu_bwd_ref(ses_exec *x, ses_dst dab, const ses_real *dy, const ses_real *ab, int64_t rows,
                       int64_t cols, ses_act act)
{
    run_glu(x, &(glu){ dab, ab, dy, rows, cols, act });
}

/* Multiplies in ses_real, as the other variants do, so that all variants give the same bits. */
static void dropout_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    uint32_t threshold = ses_dropout_threshold(c->s);
    ses_real scale = ses_drop_scale(c->s);
    for (int64_t i = r.begin; i < r.end; i++) {
        ses_real v = ses_dropout_draw(c->key, (uint64_t)i) >= threshold ? c->a[i] * scale : 0;
        ses_dst_put(c->y, i, v);
    }
}

void ses_k_dropout_ref(ses_exec *x, ses_dst y, const ses_real *a, int64_t n, double p, ses_rng_key key)
{
    run(x, dropout_chunk, &(pointwise){ .y = y, .a = a, .n = n, .s = p, .key = key });
}

typedef struct columns {
    ses_dst y;
    const ses_real *a;
    int64_t y_row, a_row, rows, cols;
} columns;

static void copy_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const columns *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = 0; j < c->cols; j++) ses_dst_put(c->y, i * c->y_row + j, c->a[i * c->a_row + j]);
}

void ses_k_copy_cols_ref(ses_exec *x, ses_dst y, int64_t y_row, const ses_real *a, int64_t a_row,
                         int64_t rows, int64_t cols)
{
    if (!y.data) return;
    columns c = { y, a, y_row, a_row, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), copy_rows, &c);
}

typedef struct affine {
    ses_dst y;
    const ses_real *a, *gain, *bias;
    int64_t rows, cols;
} affine;

static void affine_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const affine *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = 0; j < c->cols; j++) {
            double v = c->a[i * c->cols + j];
            if (c->gain) v *= c->gain[j];
            if (c->bias) v += c->bias[j];
            ses_dst_put(c->y, i * c->cols + j, v);
        }
}

void ses_k_affine_ref(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *gain, const ses_real *bias,
                      int64_t rows, int64_t cols)
{
    affine c = { y, a, gain, bias, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), affine_rows, &c);
}
