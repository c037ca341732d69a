/* A product with a weight, which may lie in another order and be rounded to fewer bits. */
#ifndef SES_OP_GEMM_WEIGHT_H
#define SES_OP_GEMM_WEIGHT_H

#include "op.h"
#include "tensor/pack.h"

/* The columns of x, and of what a weight makes of it. */
static inline int64_t ses_weight_in(const ses_tensor *w, ses_weight_layout order)
{
    return ses_weight_dim(w, order == SES_OUT_IN);
}
static inline int64_t ses_weight_out(const ses_tensor *w, ses_weight_layout order)
{
    return ses_weight_dim(w, order == SES_IN_OUT);
}

/* May what a product with w makes go on to the next one in 8 bits? Nothing else then has it in full. */
static inline bool ses_output_may_be_i8(const ses_tape *t, const ses_tensor *w)
{
    return ses_pack_dtype(w) == SES_I8 && !ses_tape_recording(t) && !ses_tape_training(t);
}

/* Whole rows of a product with an 8-bit weight are taken to their end by one thread: with few of them the
 * others would wait. */
static inline bool ses_has_enough_rows(const ses_exec *x, int64_t rows, int64_t width)
{
    enum { ROWS = 16 };
    return rows >= ROWS * ses_thread_pool_size(x->pool) && width <= SES_GEMM_I8_MAX_N;
}

/* x's rows in 8 bits, for as long as the next product that reads x may want them; NULL: the tape has
 * failed. */
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

/* g = A w' (+ bias, act): A's rows lie one after the other. x: the tensor that they are all of, whose rounded
 * rows the next product may read, too, or NULL. end: of a product with an 8-bit weight, or NULL. */
static inline void ses_gemm_weight(const ses_node *n, ses_gemm *g, const ses_tensor *x, const ses_tensor *w,
                                   ses_weight_layout order, const ses_gemm_epilogue *end)
{
    ses_packed_weight p = ses_pack_get(w, order, n->k, n->exec);
    g->packed = p.data;
    g->packed_dtype = p.dtype;
    if (p.dtype != SES_I8) {
        n->k->gemm(n->exec, g);
        return;
    }
    const ses_i8_rows *rows = ses_rows_quantized(n, g, x);
    if (rows) n->k->gemm_i8(n->exec, g, 1, *rows, end);
}

/* g = A' B, the gradient of a weight: where A has columns enough B is packed once for all of them. */
static inline void ses_gemm_grad(const ses_node *n, ses_gemm *g)
{
    enum { COLUMNS = 192 };
    /* 0, too, where nothing is packed. */
    int64_t size = g->m >= COLUMNS ? n->k->gemm_pack_size(g->n, g->k) : 0;
    ses_real *packed = size > 0 ? ses_scratch(n, size) : NULL;
    if (size > 0 && !packed) return;
    if (packed) n->k->gemm_pack(n->exec, packed, SES_REAL, g->b, g->b_row, g->b_col, g->n, g->k);
    g->packed = packed, g->packed_dtype = SES_REAL;
    n->k->gemm(n->exec, g);
}

/* A w' for rows A [M, K]: the product that gives y [M, N]. */
static inline ses_gemm ses_gemm_for_weight(ses_real *y, const ses_real *a, const ses_tensor *w,
                                           ses_weight_layout order, int64_t M, int64_t N, int64_t K)
{
    return order == SES_IN_OUT ? ses_gemm_nn(y, a, w->f, M, N, K) : ses_gemm_nt(y, a, w->f, M, N, K);
}

/* The way back through it: from dz [M, N] to A [M, K] and to w. */
static inline void ses_gemm_weight_bwd(const ses_node *n, ses_dst da, ses_dst dw, const ses_real *dz,
                                       const ses_real *a, const ses_tensor *w, ses_weight_layout order,
                                       int64_t M, int64_t N, int64_t K)
{
    bool in_out = order == SES_IN_OUT;
    ses_gemm ga = in_out ? ses_gemm_nt(da.data, dz, w->f, M, K, N) : ses_gemm_nn(da.data, dz, w->f, M, K, N);
    ses_gemm gw = in_out ? ses_gemm_tn(dw.data, a, dz, K, N, M) : ses_gemm_tn(dw.data, dz, a, N, K, M);
    ga.accumulate = da.accumulate, ga.is_f32 = da.is_f32;
    gw.accumulate = dw.accumulate, gw.is_f32 = dw.is_f32;
    if (da.data) n->k->gemm(n->exec, &ga);
    if (dw.data) ses_gemm_grad(n, &gw);
}

#endif
