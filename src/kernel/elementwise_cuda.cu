#include "act_cuda.cuh"

void ses_k_add_cuda(ses_exec *x, ses_real *y, const ses_real *a, const ses_real *b, int64_t n)
{
    each(x, n, [=] __device__(int64_t i) { y[i] = a[i] + b[i]; });
}

void ses_k_scale_cuda(ses_exec *x, ses_sink y, const ses_real *a, ses_real s, int64_t n)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    if (y.data) each(x, n, [=] __device__(int64_t i) { put(to, i, s * a[i]); });
}

void ses_k_mul_cuda(ses_exec *x, ses_sink y, const ses_real *a, const ses_real *b, int64_t n)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    if (y.data) each(x, n, [=] __device__(int64_t i) { put(to, i, a[i] * b[i]); });
}

void ses_k_affine_cuda(ses_exec *x, ses_sink y, const ses_real *a, const ses_real *gain, const ses_real *bias,
                       int64_t rows, int64_t cols)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    each(x, rows * cols, [=] __device__(int64_t i) {
        int64_t j = i % cols;
        float v = a[i];
        if (gain) v *= gain[j];
        if (bias) v += bias[j];
        put(to, i, v);
    });
}

void ses_k_act_cuda(ses_exec *x, ses_real *y, const ses_real *a, int64_t n, ses_act act)
{
    each(x, n, [=] __device__(int64_t i) { y[i] = act_of(act, a[i]); });
}

void ses_k_act_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dy, const ses_real *a, int64_t n,
                        ses_act act)
{
    sink<ses_real> to = sink_of<ses_real>(da);
    if (da.data) each(x, n, [=] __device__(int64_t i) { put(to, i, dy[i] * act_slope(act, a[i])); });
}

/* Four neighbors share a Philox block: a thread draws it once for all of them. */
void ses_k_dropout_cuda(ses_exec *x, ses_sink y, const ses_real *a, int64_t n, double p, ses_key key)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    uint32_t threshold = ses_drop_threshold(p);
    float scale = drop_scale(p);
    if (!y.data) return;
    each(x, ceil_div(n, 4), [=] __device__(int64_t block) {
        uint32_t draw[4];
        ses_philox(draw, key, (uint64_t)block);
        for (int64_t k = 0, i = 4 * block; k < 4 && i < n; k++, i++)
            put(to, i, draw[k] >= threshold ? a[i] * scale : 0);
    });
}

void ses_k_copy_cols_cuda(ses_exec *x, ses_sink y, int64_t y_row, const ses_real *a, int64_t a_row,
                          int64_t rows, int64_t cols)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    if (!y.data) return;
    each(x, rows * cols, [=] __device__(int64_t i) {
        int64_t row = i / cols, j = i % cols;
        put(to, row * y_row + j, a[row * a_row + j]);
    });
}

void ses_k_scale_rows_cuda(ses_exec *x, ses_sink y, const ses_real *a, const ses_real *w, int64_t rows,
                           int64_t cols)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    each(x, rows * cols, [=] __device__(int64_t i) { put(to, i, a[i] * w[i / cols]); });
}

void ses_k_put_heads_cuda(ses_exec *x, ses_real *y, const int32_t *row, const ses_real *a, int64_t a_row,
                          int64_t a_head, int64_t rows, int64_t heads, int64_t dim)
{
    each(x, rows * heads * dim, [=] __device__(int64_t i) {
        int64_t d = i % dim, h = i / dim % heads, t = i / dim / heads;
        y[(row[t] * heads + h) * dim + d] = a[t * a_row + h * a_head + d];
    });
}
