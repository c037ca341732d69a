/* Vectorized gather and pooling; kernels.def has the formulas. scatter_add is limited by memory and uses the
 * reference kernel. */
#include "kernel/simd/vec/vec_loop.h"

#include <string.h>

typedef struct gather {
    float *y;
    const float *const *table;
    const int32_t *const *id;
    int n_tables;
    int64_t rows, cols;
} gather;

static void gather_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const gather *g = ctx;
    ses_range r = ses_chunk(g->rows, ses_chunk_rows(g->cols), chunk);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *from[SES_MAX_TABLES];
        int n = 0;
        for (int k = 0; k < g->n_tables; k++)
            if (g->id[k][t] != SES_IGNORE_INDEX) from[n++] = g->table[k] + g->id[k][t] * g->cols;
        for (int64_t j = 0; j < g->cols; j += VF_LANES) {
            vf sum = n ? vf_get(from[0] + j, g->cols - j) : vf_zero();
            for (int k = 1; k < n; k++) sum = vf_add(sum, vf_get(from[k] + j, g->cols - j));
            vf_put(g->y + t * g->cols + j, sum, g->cols - j);
        }
    }
}

void VF_NAME(ses_k_gather)(ses_exec *x, float *y, const float *const *table, const int32_t *const *id,
                           int n_tables, int64_t rows, int64_t cols)
{
    gather g = { y, table, id, n_tables, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), gather_rows, &g);
}

typedef struct dequantize {
    float *y;
    const ses_quant_rows *table;
    const int32_t *id;
    int64_t rows, cols;
} dequantize;

VF_INLINE vf dequantize_at(const char *row, int64_t j, const ses_dtype as)
{
    if (as == SES_I8) return vf_load_i8((const int8_t *)row + j);
    const uint16_t *half = (const uint16_t *)(const void *)(row + 2 * j);
    return as == SES_F16 ? vf_load_f16(half) : vf_load_bf16(half);
}

VF_INLINE void dequantize_row(float *y, const char *row, float by, int64_t cols, const ses_dtype as)
{
    int64_t j = 0, size = as == SES_I8 ? 1 : 2;
    for (; j + VF_LANES <= cols; j += VF_LANES) {
        vf v = dequantize_at(row, j, as);
        vf_store(y + j, as == SES_I8 ? vf_mul(v, vf_set1(by)) : v);
    }
    if (j == cols) return;
    char rest[VF_LANES * 2] = { 0 };
    memcpy(rest, row + j * size, (size_t)((cols - j) * size));
    vf v = dequantize_at(rest, 0, as);
    vf_store_part(y + j, as == SES_I8 ? vf_mul(v, vf_set1(by)) : v, cols - j);
}

static void dequantize_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const dequantize *w = ctx;
    const ses_quant_rows *t = w->table;
    ses_range r = ses_chunk(w->rows, ses_chunk_rows(w->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        int64_t row = w->id ? w->id[i] : i, at = row * (t->row_stride ? t->row_stride : w->cols);
        float *y = w->y + i * w->cols;
        if (row == SES_IGNORE_INDEX)
            memset(y, 0, (size_t)w->cols * sizeof *y);
        else if (t->dtype == SES_I8)
            dequantize_row(y, (const char *)t->data + at, t->scale[row], w->cols, SES_I8);
        else if (t->dtype == SES_F16)
            dequantize_row(y, (const char *)t->data + 2 * at, 1, w->cols, SES_F16);
        else
            dequantize_row(y, (const char *)t->data + 2 * at, 1, w->cols, SES_BF16);
    }
}

void VF_NAME(ses_k_dequantize_rows)(ses_exec *x, float *y, const ses_quant_rows *table, const int32_t *id,
                                    int64_t rows, int64_t cols)
{
    dequantize w = { y, table, id, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), dequantize_rows, &w);
}

typedef struct pool {
    ses_dst to;
    int32_t *arg;
    const int32_t *arg_in;
    const float *from;
    const int32_t *cu_seqlens;
    int64_t cols;
    ses_pool_kind kind;
} pool;

/* Row numbers are stored in the bits of a vf. */
VF_INLINE vf row_number(int32_t t) { return vf_of_bits(vi_set1(t)); }

VF_INLINE void max_cols(const pool *p, int64_t seq, int64_t j, int64_t left)
{
    vf best = vf_get(p->from + p->cu_seqlens[seq] * p->cols + j, left), arg = row_number(p->cu_seqlens[seq]);
    for (int32_t t = p->cu_seqlens[seq] + 1; t < p->cu_seqlens[seq + 1]; t++) {
        vf v = vf_get(p->from + t * p->cols + j, left);
        vm number = vf_eq(v, v), above = vf_lt(best, v);
        arg = vf_select(number, vf_select(above, row_number(t), arg), row_number(t));
        best = vf_select(number, vf_select(above, v, best), v);
    }
    if (p->arg) vf_put((float *)(void *)(p->arg + seq * p->cols + j), arg, left);
    vf_put(p->to.data + seq * p->cols + j, best, left);
}

enum { ROW_BLOCK = 32 }; /* rows per partial sum */

VF_INLINE void mean_cols(const pool *p, int64_t seq, int64_t j, int64_t left)
{
    int32_t first = p->cu_seqlens[seq], end = p->cu_seqlens[seq + 1];
    vf total = vf_zero();
    for (int32_t t = first; t < end;) {
        vf sum = vf_zero();
        for (int32_t stop = end - t < ROW_BLOCK ? end : t + ROW_BLOCK; t < stop; t++)
            sum = vf_add(sum, vf_get(p->from + t * p->cols + j, left));
        total = vf_add(total, sum);
    }
    vf_put(p->to.data + seq * p->cols + j, vf_div(total, vf_set1((float)(end - first))), left);
}

static void pool_seq(void *ctx, int64_t seq, void *scratch)
{
    (void)scratch;
    const pool *p = ctx;
    bool empty = p->cu_seqlens[seq] == p->cu_seqlens[seq + 1];
    for (int64_t j = 0; j < p->cols; j += VF_LANES) {
        int64_t left = p->cols - j;
        if (empty) {
            vf_put(p->to.data + seq * p->cols + j, vf_zero(), left);
            if (p->arg) vf_put((float *)(void *)(p->arg + seq * p->cols + j), row_number(-1), left);
        } else if (p->kind == SES_POOL_FIRST) {
            vf_put(p->to.data + seq * p->cols + j, vf_get(p->from + p->cu_seqlens[seq] * p->cols + j, left),
                   left);
        } else if (p->kind == SES_POOL_MEAN) {
            mean_cols(p, seq, j, left);
        } else {
            max_cols(p, seq, j, left);
        }
    }
}

void VF_NAME(ses_k_pool)(ses_exec *x, float *y, int32_t *arg, const float *a, const int32_t *cu_seqlens,
                         int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    pool p = { { y, false }, kind == SES_POOL_MAX ? arg : NULL, NULL, a, cu_seqlens, cols, kind };
    ses_parallel_for(x->pool, seqs, pool_seq, &p);
}

static void pool_bwd_seq(void *ctx, int64_t seq, void *scratch)
{
    (void)scratch;
    const pool *p = ctx;
    int32_t first = p->cu_seqlens[seq], end = p->cu_seqlens[seq + 1];
    const float *dy = p->from + seq * p->cols;
    vf len = vf_set1((float)(end - first));
    for (int32_t t = first; t < end; t++)
        for (int64_t j = 0; j < p->cols; j += VF_LANES) {
            int64_t left = p->cols - j;
            vf d = vf_get(dy + j, left);
            if (p->kind == SES_POOL_MEAN) {
                d = vf_div(d, len);
            } else if (p->kind == SES_POOL_MAX) {
                vf arg = vf_get((const float *)(const void *)(p->arg_in + seq * p->cols + j), left);
                d = vf_select(vi_eq(vi_of_bits(arg), vi_set1(t)), d, vf_zero());
            } else if (t != first) {
                d = vf_zero();
            }
            vf_put_dst(p->to, t * p->cols + j, d, left);
        }
}

void VF_NAME(ses_k_pool_bwd)(ses_exec *x, ses_dst da, const float *dy, const int32_t *arg,
                             const int32_t *cu_seqlens, int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    if (!da.data) return;
    pool p = { da, NULL, arg, dy, cu_seqlens, cols, kind };
    ses_parallel_for(x->pool, seqs, pool_bwd_seq, &p);
}
