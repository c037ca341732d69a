/* Vectorized RMS norm; kernels.def has the formulas. */
#include "kernel/simd/vec/vec_loop.h"

#include <math.h>

typedef struct forward {
    float *y, *stat;
    const float *a, *gain;
    int64_t rows, cols;
    double eps, plus;
} forward;

VF_INLINE vf_pair add_square(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const float *a = ctx;
    vf v = vf_get(a + i, left);
    sum.a = vf_fma(v, v, sum.a);
    return sum;
}

/* y = x rstd (gain + plus). Rows of at most NARROW columns are rounded once: rest is the rounding error of
 * the first product, x high, plus x times the rounding error of rstd. */
VF_INLINE void scale_row(float *y, const float *a, const float *gain, int64_t cols, double rstd, double plus,
                         const bool narrow)
{
    vf high = vf_set1((float)rstd), minus_high = vf_set1(-(float)rstd);
    vf offset = vf_set1((float)plus);
    vf low = vf_set1((float)(rstd - (double)(float)rstd));
    for (int64_t i = 0; i < cols; i += VF_LANES) {
        int64_t left = cols - i;
        vf x = vf_get(a + i, left), g = vf_add(vf_get(gain + i, left), offset);
        if (narrow) {
            vf minus_p = vf_mul(x, minus_high), rest = vf_fma(x, low, vf_fma(x, high, minus_p));
            vf_put(y + i, vf_fnma(minus_p, g, vf_mul(rest, g)), left);
        } else {
            vf_put(y + i, vf_mul(vf_mul(x, high), g), left);
        }
    }
}

static void rms_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const forward *f = ctx;
    ses_range r = ses_chunk(f->rows, ses_chunk_rows(f->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *a = f->a + row * f->cols;
        float *y = f->y + row * f->cols;
        double rstd = 1 / sqrt(sum_row(f->cols, add_square, (void *)a).a / f->cols + f->eps);
        if (f->cols <= NARROW)
            scale_row(y, a, f->gain, f->cols, rstd, f->plus, true);
        else
            scale_row(y, a, f->gain, f->cols, rstd, f->plus, false);
        if (f->stat) f->stat[row] = (float)rstd;
    }
}

void VF_NAME(ses_k_rms)(ses_exec *x, float *y, float *stat, const float *a, const float *gain, int64_t rows,
                        int64_t cols, double eps, double plus)
{
    forward f = { y, stat, a, gain, rows, cols, eps, plus };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), rms_rows, &f);
}

typedef struct backward {
    ses_dst da;
    float *dgain;
    const float *dy, *a, *stat, *gain;
    int64_t rows, cols;
    double plus;
} backward;

typedef struct grad_row {
    const float *dy, *a, *gain;
    float plus;
} grad_row;

VF_INLINE vf_pair add_grad(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    const grad_row *r = ctx;
    vf g = vf_mul(vf_get(r->dy + i, left), vf_add(vf_get(r->gain + i, left), vf_set1(r->plus)));
    sum.a = vf_fma(g, vf_get(r->a + i, left), sum.a);
    return sum;
}

static void bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range range = ses_chunk(b->rows, ses_chunk_rows(b->cols), chunk);
    for (int64_t row = range.begin; row < range.end; row++) {
        int64_t at = row * b->cols;
        grad_row r = { b->dy + at, b->a + at, b->gain, (float)b->plus };
        double rstd = (double)b->stat[row], mean = sum_row(b->cols, add_grad, &r).a * rstd / b->cols;
        vf vrstd = vf_set1((float)rstd), slope = vf_set1((float)(rstd * mean));
        for (int64_t i = 0; i < b->cols; i += VF_LANES) {
            int64_t left = b->cols - i;
            vf g = vf_mul(vf_get(r.dy + i, left), vf_add(vf_get(r.gain + i, left), vf_set1(r.plus)));
            vf_put_dst(b->da, at + i, vf_mul(vrstd, vf_fnma(vf_get(r.a + i, left), slope, g)), left);
        }
    }
}

/* Gradient of gain: COL_BLOCK columns per chunk, rows in order, sums of ROW_BLOCK rows in float, sums of the
 * blocks in double. */
enum { COL_BLOCK = 192, ROW_BLOCK = 32 };

static void bwd_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const backward *b = ctx;
    ses_range cols = ses_chunk(b->cols, COL_BLOCK, chunk);
    double dgain[COL_BLOCK] = { 0 };
    for (int64_t row = 0; row < b->rows;) {
        float sum[COL_BLOCK] = { 0 };
        int64_t end = b->rows - row < ROW_BLOCK ? b->rows : row + ROW_BLOCK;
        for (; row < end; row++) {
            const float *dy = b->dy + row * b->cols, *a = b->a + row * b->cols;
            vf rstd = vf_set1(b->stat[row]);
            for (int64_t j = cols.begin; j < cols.end; j += VF_LANES) {
                int64_t left = cols.end - j;
                float *to = sum + (j - cols.begin);
                vf_store(to, vf_fma(vf_get(dy + j, left), vf_mul(vf_get(a + j, left), rstd), vf_load(to)));
            }
        }
        for (int j = 0; j < COL_BLOCK; j++) dgain[j] += (double)sum[j];
    }
    for (int64_t j = cols.begin; j < cols.end; j++)
        b->dgain[j] = (float)(b->dgain[j] + dgain[j - cols.begin]);
}

void VF_NAME(ses_k_rms_bwd)(ses_exec *x, ses_dst da, float *dgain, const float *dy, const float *a,
                            const float *stat, const float *gain, int64_t rows, int64_t cols, double plus)
{
    backward b = { da, dgain, dy, a, stat, gain, rows, cols, plus };
    if (dgain) ses_parallel_for(x->pool, ses_chunks(cols, COL_BLOCK), bwd_cols, &b);
    if (da.data) ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), bwd_rows, &b);
}
