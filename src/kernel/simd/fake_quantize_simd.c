/* Vectorized int8 rounding of floats, with the numbers of quantize_rows and gemm_i8_pack. */
#include "kernel/simd/gemm/gemm_i8_tile.h"
#include "kernel/simd/vec/vec_loop.h"

typedef struct fake {
    float *y;
    const float *a;
    int64_t rows, cols;
} fake;

static void fake_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const fake *f = ctx;
    ses_range r = ses_chunk(f->rows, ses_chunk_rows(f->cols), chunk);
    for (int64_t i = r.begin * f->cols; i < r.end * f->cols; i += f->cols) {
        float max = max_abs_of(f->a + i, f->cols);
        vf by = vf_set1(quant_factor(max)), scale = vf_set1(max / 127);
        for (int64_t j = i; j < i + f->cols; j += VF_LANES) {
            int64_t left = i + f->cols - j;
            vf_put(f->y + j, vf_mul(vf_round(vf_mul(vf_get(f->a + j, left), by)), scale), left);
        }
    }
}

/* VF_LANES columns */
static void fake_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const fake *f = ctx;
    const float *a = f->a + chunk * VF_LANES;
    int64_t left = f->cols - chunk * VF_LANES;
    vi max = vi_set1(0); /* as bits: NaN and infinity are the largest */
    for (int64_t i = 0; i < f->rows; i++)
        max = vi_max(max, vi_of_bits(vf_abs(vf_get(a + i * f->cols, left))));
    vf top = vf_of_bits(max);
    top = vf_add(top, vf_sub(top, top)); /* NaN if a number is not finite */
    vf by = quant_factors(top), scale = vf_div(top, vf_set1(127));
    for (int64_t i = 0; i < f->rows; i++) {
        vf x = vf_mul(vf_round(vf_mul(vf_get(a + i * f->cols, left), by)), scale);
        vf_put(f->y + i * f->cols + chunk * VF_LANES, x, left);
    }
}

void VF_NAME(ses_k_fake_quantize)(ses_exec *x, float *y, const float *a, int64_t rows, int64_t cols,
                                  bool by_col)
{
    fake f = { y, a, rows, cols };
    if (by_col)
        ses_parallel_for(x->pool, ses_chunks(cols, VF_LANES), fake_cols, &f);
    else
        ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), fake_rows, &f);
}
