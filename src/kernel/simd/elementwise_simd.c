/* Vectorized elementwise kernels; kernels.def has the formulas. */
#include "glu_row.h"

typedef struct pointwise {
    ses_dst y;
    const float *a, *b;
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
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf_put(c->y.data + i, vf_add(vf_get(c->a + i, left), vf_get(c->b + i, left)), left);
    }
}

void VF_NAME(ses_k_add)(ses_exec *x, float *y, const float *a, const float *b, int64_t n)
{
    run(x, add_chunk, &(pointwise){ .y = { y, false }, .a = a, .b = b, .n = n });
}

static void scale_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    vf s = vf_set1((float)c->s);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES)
        vf_put_dst(c->y, i, vf_mul(s, vf_get(c->a + i, r.end - i)), r.end - i);
}

void VF_NAME(ses_k_scale)(ses_exec *x, ses_dst y, const float *a, float s, int64_t n)
{
    run(x, scale_chunk, &(pointwise){ .y = y, .a = a, .s = s, .n = n });
}

static void mul_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf_put_dst(c->y, i, vf_mul(vf_get(c->a + i, left), vf_get(c->b + i, left)), left);
    }
}

void VF_NAME(ses_k_mul)(ses_exec *x, ses_dst y, const float *a, const float *b, int64_t n)
{
    run(x, mul_chunk, &(pointwise){ .y = y, .a = a, .b = b, .n = n });
}

VF_INLINE void act_range(const pointwise *c, ses_range r, ses_act act)
{
    for (int64_t i = r.begin; i < r.end; i += VF_LANES)
        vf_put(c->y.data + i, vf_act(act, vf_get(c->a + i, r.end - i)), r.end - i);
}

static void act_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    switch (c->act) { /* once per chunk, so that each loop has a constant activation */
    case SES_ACT_GELU: act_range(c, r, SES_ACT_GELU); break;
    case SES_ACT_GELU_TANH: act_range(c, r, SES_ACT_GELU_TANH); break;
    case SES_ACT_RELU: act_range(c, r, SES_ACT_RELU); break;
    case SES_ACT_SILU: act_range(c, r, SES_ACT_SILU); break;
    case SES_ACT_TANH: act_range(c, r, SES_ACT_TANH); break;
    case SES_ACT_SIGMOID: act_range(c, r, SES_ACT_SIGMOID); break;
    default: act_range(c, r, SES_ACT_NONE); break;
    }
}

void VF_NAME(ses_k_act)(ses_exec *x, float *y, const float *a, int64_t n, ses_act act)
{
    run(x, act_chunk, &(pointwise){ .y = { y, false }, .a = a, .n = n, .act = act });
}

VF_INLINE void act_bwd_range(const pointwise *c, ses_range r, ses_act act)
{
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf slope = vf_act_grad(act, vf_get(c->a + i, left));
        vf_put_dst(c->y, i, vf_mul(vf_get(c->b + i, left), slope), left);
    }
}

static void act_bwd_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    switch (c->act) {
    case SES_ACT_GELU: act_bwd_range(c, r, SES_ACT_GELU); break;
    case SES_ACT_GELU_TANH: act_bwd_range(c, r, SES_ACT_GELU_TANH); break;
    case SES_ACT_RELU: act_bwd_range(c, r, SES_ACT_RELU); break;
    case SES_ACT_SILU: act_bwd_range(c, r, SES_ACT_SILU); break;
    case SES_ACT_TANH: act_bwd_range(c, r, SES_ACT_TANH); break;
    case SES_ACT_SIGMOID: act_bwd_range(c, r, SES_ACT_SIGMOID); break;
    default: act_bwd_range(c, r, SES_ACT_NONE); break;
    }
}

void VF_NAME(ses_k_act_bwd)(ses_exec *x, ses_dst da, const float *dy, const float *a, int64_t n, ses_act act)
{
    run(x, act_bwd_chunk, &(pointwise){ .y = da, .a = a, .b = dy, .n = n, .act = act });
}

void VF_NAME(ses_k_act_bwd_sum)(ses_exec *x, ses_dst da, ses_dst sum, float *y, const float *dy,
                                const float *a, int64_t rows, int64_t cols, ses_act act)
{
    VF_NAME(ses_k_act_bwd)(x, da, dy, a, rows * cols, act);
    VF_NAME(ses_k_col_sum)(x, sum, da.data, rows, cols, cols);
    if (y) VF_NAME(ses_k_act)(x, y, a, rows * cols, act);
}

typedef struct glu {
    ses_dst y; /* act(a) b; if dy is given, the gradient of a | b */
    const float *ab, *dy;
    int64_t rows, cols;
    ses_act act;
} glu;

VF_INLINE void glu_bwd_row(const glu *c, int64_t row, ses_act act)
{
    const float *a = c->ab + row * 2 * c->cols, *b = a + c->cols, *dy = c->dy + row * c->cols;
    int64_t at = row * 2 * c->cols;
    for (int64_t j = 0; j < c->cols; j += VF_LANES) {
        int64_t left = c->cols - j;
        vf u = vf_get(a + j, left), v = vf_get(b + j, left), d = vf_get(dy + j, left);
        vf_put_dst(c->y, at + j, vf_mul(vf_mul(d, v), vf_act_grad(act, u)), left);
        vf_put_dst(c->y, at + c->cols + j, vf_mul(d, vf_act(act, u)), left);
    }
}

VF_INLINE void glu_bwd_rows(const glu *c, ses_range r, ses_act act)
{
    for (int64_t row = r.begin; row < r.end; row++) glu_bwd_row(c, row, act);
}

static void glu_bwd_chunk(const glu *c, ses_range r)
{
    switch (c->act) {
    case SES_ACT_GELU: glu_bwd_rows(c, r, SES_ACT_GELU); break;
    case SES_ACT_GELU_TANH: glu_bwd_rows(c, r, SES_ACT_GELU_TANH); break;
    case SES_ACT_RELU: glu_bwd_rows(c, r, SES_ACT_RELU); break;
    case SES_ACT_SILU: glu_bwd_rows(c, r, SES_ACT_SILU); break;
    case SES_ACT_TANH: glu_bwd_rows(c, r, SES_ACT_TANH); break;
    case SES_ACT_SIGMOID: glu_bwd_rows(c, r, SES_ACT_SIGMOID); break;
    default: glu_bwd_rows(c, r, SES_ACT_NONE); break;
    }
}

static void glu_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const glu *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    if (c->dy) glu_bwd_chunk(c, r);
    for (int64_t row = r.begin; row < r.end && !c->dy; row++)
        glu_row(c->y.data + row * c->cols, c->ab + row * 2 * c->cols, c->cols, c->act);
}

static void run_glu(ses_exec *x, glu *c)
{
    if (c->y.data) ses_parallel_for(x->pool, ses_chunks(c->rows, ses_chunk_rows(c->cols)), glu_chunk, c);
}

void VF_NAME(ses_k_glu)(ses_exec *x, float *y, const float *ab, int64_t rows, int64_t cols, ses_act act)
{
    run_glu(x, &(glu){ { y, false }, ab, NULL, rows, cols, act });
}

void VF_NAME(ses_k_glu_bwd)(ses_exec *x, ses_dst dab, const float *dy, const float *ab, int64_t rows,
                            int64_t cols, ses_act act)
{
    run_glu(x, &(glu){ dab, ab, dy, rows, cols, act });
}

/* One draw of VF_LANES Philox blocks serves eight vectors; chunks begin at multiples of 8 * VF_LANES. */
static void dropout_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const pointwise *c = ctx;
    ses_range r = ses_chunk(c->n, SES_CHUNK, chunk);
    vi threshold = vi_set1((int32_t)ses_dropout_threshold(c->s));
    vf scale = vf_set1(ses_drop_scale(c->s));
    uint32_t draw[8 * VF_LANES];
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i, at = i % (8 * VF_LANES);
        if (at == 0) vf_drop_draws(draw, c->key, (uint64_t)i / 8);
        vm keep = vi_ge_unsigned(vi_load(draw + at), threshold);
        vf_put_dst(c->y, i, vf_select(keep, vf_mul(scale, vf_get(c->a + i, left)), vf_zero()), left);
    }
}

void VF_NAME(ses_k_dropout)(ses_exec *x, ses_dst y, const float *a, int64_t n, double p, ses_rng_key key)
{
    run(x, dropout_chunk, &(pointwise){ .y = y, .a = a, .n = n, .s = p, .key = key });
}

typedef struct columns {
    ses_dst y;
    const float *a;
    int64_t y_row, a_row, rows, cols;
} columns;

static void copy_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const columns *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        const float *from = c->a + i * c->a_row;
        ses_dst to = { c->y.data + i * c->y_row, c->y.accumulate };
        for (int64_t j = 0; j < c->cols; j += VF_LANES)
            vf_put_dst(to, j, vf_get(from + j, c->cols - j), c->cols - j);
    }
}

void VF_NAME(ses_k_copy_cols)(ses_exec *x, ses_dst y, int64_t y_row, const float *a, int64_t a_row,
                              int64_t rows, int64_t cols)
{
    if (!y.data) return;
    columns c = { y, a, y_row, a_row, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), copy_rows, &c);
}

typedef struct affine {
    ses_dst y;
    const float *a, *gain, *bias;
    int64_t rows, cols;
} affine;

static void affine_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const affine *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        for (int64_t j = 0; j < c->cols; j += VF_LANES) {
            int64_t at = i * c->cols + j, left = c->cols - j;
            vf v = vf_get(c->a + at, left);
            if (c->gain) v = vf_mul(v, vf_get(c->gain + j, left));
            if (c->bias) v = vf_add(v, vf_get(c->bias + j, left));
            vf_put_dst(c->y, at, v, left);
        }
}

void VF_NAME(ses_k_affine)(ses_exec *x, ses_dst y, const float *a, const float *gain, const float *bias,
                           int64_t rows, int64_t cols)
{
    affine c = { y, a, gain, bias, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), affine_rows, &c);
}
