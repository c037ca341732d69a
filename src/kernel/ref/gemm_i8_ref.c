/* Reference int8 matrix products, quantization of rows, and row-wise epilogues. */
#include "act_ref.h"
#include "kernel/chunking.h"

#include <math.h>

/* Largest magnitude of n numbers that are `step` apart. */
static ses_real max_abs(const ses_real *a, int64_t n, int64_t step)
{
    ses_real max = 0;
    for (int64_t i = 0; i < n; i++) max = (ses_real)fmax(max, fabs(a[i * step]));
    return max;
}

static int to_i8(ses_real a, ses_real max)
{
    return isfinite(max) && isfinite(127 / max) ? (int)rint(a * (127 / max)) : 0;
}

void ses_k_quantize_rows_ref(ses_exec *x, ses_i8_rows to, const ses_real *a, int64_t rows, int64_t cols)
{
    (void)x;
    int64_t width = 4 * ses_quad_count(cols);
    uint8_t *q = to.q;
    for (int64_t r = 0; r < rows; r++, a += cols, q += width) {
        ses_real max = max_abs(a, cols, 1), nonfinite = 0; /* NaN if a number is not finite */
        for (int64_t i = 0; i < cols; i++) nonfinite += a[i] - a[i];
        for (int64_t i = 0; i < width; i++)
            q[i] = (uint8_t)(SES_I8_ZERO + (i < cols && nonfinite == 0 ? to_i8(a[i], max) : 0));
        to.scale[r] = max / 127 + nonfinite;
    }
}

/* packed: one scale per column, then the int8 columns one after another */
int64_t ses_k_gemm_i8_pack_size_ref(int64_t n, int64_t k) { return n * (int64_t)sizeof(ses_real) + n * k; }

void ses_k_gemm_i8_pack_ref(ses_exec *x, void *packed, const ses_real *b, int64_t b_row, int64_t b_col,
                            int64_t n, int64_t k)
{
    (void)x;
    ses_real *scale = packed;
    int8_t *q = (int8_t *)(scale + n);
    for (int64_t j = 0; j < n; j++, b += b_col, q += k) {
        ses_real max = max_abs(b, k, b_row);
        for (int64_t p = 0; p < k; p++) q[p] = (int8_t)to_i8(b[p * b_row], max);
        scale[j] = max / 127;
    }
}

void ses_k_gemm_i8_pack_quantized_ref(ses_exec *x, void *packed, const int8_t *b, const float *scale,
                                      int64_t b_row, int64_t b_col, int64_t n, int64_t k)
{
    (void)x;
    ses_real *to = packed;
    int8_t *q = (int8_t *)(to + n);
    for (int64_t j = 0; j < n; j++, q += k) {
        for (int64_t p = 0; p < k; p++) q[p] = b[p * b_row + j * b_col];
        to[j] = (ses_real)scale[j];
    }
}

/* The loops below read every number: B is always dense. */
int64_t ses_k_gemm_i8_sparse_size_ref(ses_exec *x, const ses_i8_weight *w, double max_share)
{
    (void)x, (void)w, (void)max_share;
    return 0;
}

void ses_k_gemm_i8_sparse_pack_ref(ses_exec *x, void *packed, const ses_i8_weight *w)
{
    if (w->bytes)
        ses_k_gemm_i8_pack_quantized_ref(x, packed, w->bytes, w->scale, w->b_row, w->b_col, w->n, w->k);
    else
        ses_k_gemm_i8_pack_ref(x, packed, w->b, w->b_row, w->b_col, w->n, w->k);
}

static void product_row(const ses_gemm *g, ses_real *c, ses_real *pre, const uint8_t *a, ses_real a_scale)
{
    const ses_real *scale = g->packed;
    const int8_t *q = (const int8_t *)(scale + g->n);
    for (int64_t j = 0; j < g->n; j++) {
        int64_t sum = 0;
        for (int64_t p = 0; p < g->k; p++) sum += (int8_t)(a[p] - SES_I8_ZERO) * q[j * g->k + p];
        double z = (double)sum * a_scale * scale[j] + (g->bias ? (double)g->bias[j] : 0);
        if (pre) pre[j] = (ses_real)z;
        c[j] = (ses_real)ses_act_ref(g->act, z);
    }
}

typedef struct rows_job {
    const ses_gemm *g;
    ses_i8_rows a;
    const ses_gemm_epilogue *epilogue;
} rows_job;

_Static_assert((SES_GEMM_I8_MAX_N + 1) * sizeof(ses_real) + SES_GEMM_I8_MAX_K <= SES_SCRATCH_BYTES,
               "scratch");

/* Quantizes row i of m, each group of columns with its own scale. */
static void quantize_groups(const ses_gemm_epilogue *epilogue, int64_t i, const ses_real *row, int64_t m,
                            int64_t n)
{
    int64_t part = epilogue->group_cols ? epilogue->group_cols : n, parts = n / part,
            width = 4 * ses_quad_count(part);
    for (int64_t p = 0; p < parts; p++) {
        ses_i8_rows to = { epilogue->i8_out.q + (p * m + i) * width, epilogue->i8_out.scale + p * m + i };
        ses_k_quantize_rows_ref(NULL, to, row + p * part, 1, part);
        if (epilogue->group_cols)
            to.scale[0] = max_abs(row + p * part, part, 1) + (to.scale[0] - to.scale[0]);
    }
}

static void epilogue_row(void *ctx, int64_t i, void *scratch)
{
    const rows_job *r = ctx;
    const ses_gemm *g = r->g;
    ses_real *row = scratch, *scale = row + g->n;
    ses_i8_rows a = { (uint8_t *)(scale + 1), scale }, to = r->epilogue->i8_out;
    if (r->a.q)
        a = (ses_i8_rows){ r->a.q + i * 4 * ses_quad_count(g->k), r->a.scale + i };
    else
        ses_k_quantize_rows_ref(NULL, a, g->a + i * g->k, 1, g->k);
    product_row(g, r->epilogue->gain ? g->c + i * g->ldc : row, NULL, a.q, a.scale[0]);
    int64_t n = r->epilogue->gated ? g->n / 2 : g->n;
    for (int64_t j = 0; j < n && r->epilogue->gated; j++)
        row[j] = (ses_real)(ses_act_ref(r->epilogue->gate, row[j]) * row[j + n]);
    if (!r->epilogue->gain && to.q) quantize_groups(r->epilogue, i, row, g->m, n);
}

static void epilogue_rows(ses_exec *x, const ses_gemm *g, ses_i8_rows a, const ses_gemm_epilogue *epilogue)
{
    rows_job r = { g, a, epilogue };
    ses_parallel_for(x->pool, g->m, epilogue_row, &r);
    if (!epilogue->gain) return;
    ses_k_norm_ref(x, g->c, NULL, NULL, g->c, epilogue->residual, epilogue->gain, epilogue->bias, g->m, g->n,
                   epilogue->eps, NULL);
    for (int64_t i = 0; epilogue->i8_out.q && i < g->m; i++)
        quantize_groups(epilogue, i, g->c + i * g->ldc, g->m, g->n);
}

void ses_k_gemm_i8_ref(ses_exec *x, const ses_gemm *g, int64_t count, ses_i8_rows a,
                       const ses_gemm_epilogue *epilogue)
{
    for (; count > 0; count--, g++, epilogue = epilogue ? epilogue + 1 : NULL) {
        if (epilogue) epilogue_rows(x, g, a, epilogue);
        for (int64_t i = 0; !epilogue && i < g->m; i++)
            product_row(g, g->c + i * g->ldc, g->pre_act ? g->pre_act + i * g->ldc : NULL,
                        a.q + i * 4 * ses_quad_count(g->k), a.scale[i]);
    }
}
