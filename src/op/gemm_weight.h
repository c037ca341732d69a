/* Products with a weight, which may be transposed, packed or quantized. */
#ifndef SES_OP_GEMM_WEIGHT_H
#define SES_OP_GEMM_WEIGHT_H

#include "op.h"
#include "tensor/pack.h"

/* Number of inputs (columns of x) and outputs of a weight. */
static inline int64_t ses_weight_in(const ses_tensor *w, ses_weight_layout layout)
{
    return ses_weight_dim(w, layout == SES_OUT_IN);
}
static inline int64_t ses_weight_out(const ses_tensor *w, ses_weight_layout layout)
{
    return ses_weight_dim(w, layout == SES_IN_OUT);
}

/* May the output of a product with w be int8 only, for the next product? */
static inline bool ses_output_may_be_i8(const ses_tape *t, const ses_tensor *w)
{
    return ses_pack_dtype(w) == SES_I8 && !ses_tape_recording(t) && !ses_tape_training(t);
}

/* One thread computes an int8 row to its end (norm, quantization): with few rows, other threads would be
 * idle. */
static inline bool ses_has_enough_rows(const ses_exec *x, int64_t rows, int64_t width)
{
    enum { ROWS = 16 };
    return rows >= ROWS * ses_thread_pool_size(x->pool) && width <= SES_GEMM_I8_MAX_N;
}

/* x's rows in int8, kept as long as further products may read them; NULL: the tape has failed. */
static inline const ses_i8_rows *ses_rows_quantized(const ses_node *n, const ses_gemm *g, const ses_tensor *x)
{
    const ses_i8_rows *rows = x ? ses_tape_cached_i8(n->tape, x) : NULL;
    if (rows) return rows;
    bool keep = x && !ses_tape_recording(n->tape);
    rows = keep ? ses_tape_i8_rows(n->tape, g->m, g->k) : ses_scratch_i8_rows(n, g->m, g->k);
    if (!rows) return NULL;
    n->k->quantize_rows(n->exec, *rows, g->a, g->m, g->k);
    if (keep) ses_tape_cache_i8(n->tape, x, rows);
    return rows;
}

/* g with B packed once for all rows of A, if there are many. */
static inline void ses_gemm_packing(const ses_node *n, ses_gemm *g)
{
    enum { ROWS = 192 };
    ses_dtype dtype = n->exec->bf16 ? SES_BF16 : SES_REAL;
    /* also 0 if this kernel does not pack */
    int64_t size = g->m >= ROWS ? n->k->gemm_pack_size(g->n, g->k) : 0;
    ses_real *packed = size > 0 ? ses_scratch(n, n->exec->bf16 ? (size + 1) / 2 : size) : NULL;
    if (size > 0 && !packed) return;
    if (packed) n->k->gemm_pack(n->exec, packed, dtype, g->b, g->b_row, g->b_col, g->n, g->k);
    g->packed = packed, g->packed_dtype = dtype;
    n->k->gemm(n->exec, g);
}

/* g with an unpacked B. f32 operands are packed on the fly for large blocks of rows. */
static inline void ses_gemm_unpacked(const ses_node *n, ses_gemm *g)
{
    if (n->exec->bf16)
        ses_gemm_packing(n, g);
    else
        n->k->gemm(n->exec, g);
}

/* g = A w' (+ bias, act), A row-major. x: the tensor that is A, whose int8 rows the next product may reuse,
 * or NULL. end: epilogue of an int8 product, or NULL. */
static inline void ses_gemm_weight(const ses_node *n, ses_gemm *g, const ses_tensor *x, const ses_tensor *w,
                                   ses_weight_layout layout, const ses_gemm_epilogue *end)
{
    ses_packed_weight p = ses_pack_get(w, layout, n->k, n->exec);
    g->packed = p.data;
    g->packed_dtype = p.dtype;
    if (!p.data) {
        ses_gemm_unpacked(n, g);
        return;
    }
    if (p.dtype != SES_I8) {
        n->k->gemm(n->exec, g);
        return;
    }
    const ses_i8_rows *rows = ses_rows_quantized(n, g, x);
    if (rows) n->k->gemm_i8(n->exec, g, 1, *rows, end);
}

/* The product A w' for rows A [M, K] that gives y [M, N]. */
static inline ses_gemm ses_gemm_for_weight(ses_real *y, const ses_real *a, const ses_tensor *w,
                                           ses_weight_layout layout, int64_t M, int64_t N, int64_t K)
{
    return layout == SES_IN_OUT ? ses_gemm_nn(y, a, w->f, M, N, K) : ses_gemm_nt(y, a, w->f, M, N, K);
}

/* Its backward pass: from dz [M, N] to A [M, K] and to w. */
static inline void ses_gemm_weight_bwd(const ses_node *n, ses_dst da, ses_dst dw, const ses_real *dz,
                                       const ses_real *a, const ses_tensor *w, ses_weight_layout layout,
                                       int64_t M, int64_t N, int64_t K)
{
    bool in_out = layout == SES_IN_OUT;
    ses_gemm ga = in_out ? ses_gemm_nt(da.data, dz, w->f, M, K, N) : ses_gemm_nn(da.data, dz, w->f, M, K, N);
    ses_gemm gw = in_out ? ses_gemm_tn(dw.data, a, dz, K, N, M) : ses_gemm_tn(dw.data, dz, a, N, K, M);
    ga.accumulate = da.accumulate, ga.is_f32 = da.is_f32;
    gw.accumulate = dw.accumulate, gw.is_f32 = dw.is_f32;
    if (da.data) ses_gemm_unpacked(n, &ga);
    if (dw.data) ses_gemm_packing(n, &gw);
}

#endif
