/* Reference kernels that gather and scatter rows, dequantize tables and pool sequences. */
#include "base/half.h"
#include "kernel/chunking.h"

#include <string.h>

typedef struct gather {
    ses_real *y;
    const ses_real *const *table;
    const int32_t *const *id;
    int n_tables;
    int64_t rows, cols;
} gather;

static void gather_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const gather *g = ctx;
    ses_range r = ses_chunk(g->rows, ses_chunk_rows(g->cols), chunk);
    for (int64_t t = r.begin; t < r.end; t++)
        for (int64_t j = 0; j < g->cols; j++) {
            double sum = 0;
            for (int k = 0; k < g->n_tables; k++)
                if (g->id[k][t] != SES_IGNORE_INDEX) sum += g->table[k][g->id[k][t] * g->cols + j];
            g->y[t * g->cols + j] = (ses_real)sum;
        }
}

void ses_k_gather_ref(ses_exec *x, ses_real *y, const ses_real *const *table, const int32_t *const *id,
                      int n_tables, int64_t rows, int64_t cols)
{
    gather g = { y, table, id, n_tables, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), gather_rows, &g);
}

typedef struct dequantize {
    ses_real *y;
    const ses_quant_rows *table;
    const int32_t *id;
    int64_t rows, cols;
} dequantize;

static double number_at(const ses_quant_rows *t, int64_t i)
{
    uint16_t half;
    if (t->dtype == SES_I8) return ((const int8_t *)t->data)[i];
    memcpy(&half, (const char *)t->data + i * (int64_t)sizeof half, sizeof half);
    return t->dtype == SES_F16 ? ses_f16_to_f32(half) : ses_bf16_to_f32(half);
}

static void dequantize_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const dequantize *w = ctx;
    ses_range r = ses_chunk(w->rows, ses_chunk_rows(w->cols), chunk);
    for (int64_t t = r.begin; t < r.end; t++) {
        int64_t row = w->id ? w->id[t] : t, stride = w->table->row_stride ? w->table->row_stride : w->cols;
        double by = row != SES_IGNORE_INDEX && w->table->scale ? (double)w->table->scale[row] : 1;
        for (int64_t j = 0; j < w->cols; j++)
            w->y[t * w->cols + j] =
                (ses_real)(row == SES_IGNORE_INDEX ? 0 : number_at(w->table, row * stride + j) * by);
    }
}

void ses_k_dequantize_rows_ref(ses_exec *x, ses_real *y, const ses_quant_rows *table, const int32_t *id,
                               int64_t rows, int64_t cols)
{
    dequantize w = { y, table, id, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), dequantize_rows, &w);
}

typedef struct scatter {
    ses_real *table;
    const ses_real *dy;
    const int32_t *id;
    int64_t rows, cols;
    int32_t skip;
} scatter;

static void scatter_cols(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const scatter *s = ctx;
    ses_range c = ses_chunk(s->cols, SES_COL_BLOCK, chunk);
    for (int64_t t = 0; t < s->rows; t++) {
        if (s->id[t] == s->skip) continue;
        ses_real *to = s->table + s->id[t] * s->cols;
        const ses_real *from = s->dy + t * s->cols;
        for (int64_t j = c.begin; j < c.end; j++) to[j] += from[j];
    }
}

void ses_k_scatter_add_ref(ses_exec *x, ses_dst table, const ses_real *dy, const int32_t *id, int64_t rows,
                           int64_t cols, int32_t skip)
{
    scatter s = { table.data, dy, id, rows, cols, skip };
    ses_parallel_for(x->pool, ses_chunks(cols, SES_COL_BLOCK), scatter_cols, &s);
}

typedef struct scatter_heads {
    ses_real *y;
    int64_t y_head;
    const int32_t *row;
    const ses_real *a;
    int64_t a_row, a_head, rows, heads, dim;
} scatter_heads;

static void scatter_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const scatter_heads *p = ctx;
    ses_range r = ses_chunk(p->rows, ses_chunk_rows(p->heads * p->dim), chunk);
    for (int64_t t = r.begin; t < r.end; t++)
        for (int64_t h = 0; h < p->heads; h++)
            memcpy(p->y + h * p->y_head + p->row[t] * p->dim, p->a + t * p->a_row + h * p->a_head,
                   (size_t)p->dim * sizeof *p->y);
}

void ses_k_scatter_heads_ref(ses_exec *x, ses_real *y, int64_t y_head, const int32_t *row, const ses_real *a,
                             int64_t a_row, int64_t a_head, int64_t rows, int64_t heads, int64_t dim)
{
    scatter_heads p = { y, y_head, row, a, a_row, a_head, rows, heads, dim };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(heads * dim)), scatter_chunk, &p);
}

typedef struct pool {
    ses_dst to;
    int32_t *arg;
    const int32_t *arg_in;
    const ses_real *from;
    const int32_t *cu_seqlens;
    int64_t cols;
    ses_pool_kind kind;
} pool;

/* Index of the maximum: the first of equal values; a NaN wins over every number. */
static ses_real pool_max(const pool *p, int64_t seq, int64_t j)
{
    int32_t best = p->cu_seqlens[seq];
    for (int32_t t = best + 1; t < p->cu_seqlens[seq + 1]; t++) {
        ses_real v = p->from[t * p->cols + j];
        if (v > p->from[best * p->cols + j] || v != v) best = t;
    }
    if (p->arg) p->arg[seq * p->cols + j] = best;
    return p->from[best * p->cols + j];
}

static double pool_mean(const pool *p, int64_t seq, int64_t j)
{
    double sum = 0;
    for (int32_t t = p->cu_seqlens[seq]; t < p->cu_seqlens[seq + 1]; t++) sum += p->from[t * p->cols + j];
    return sum / (p->cu_seqlens[seq + 1] - p->cu_seqlens[seq]);
}

static void pool_seq(void *ctx, int64_t seq, void *scratch)
{
    (void)scratch;
    const pool *p = ctx;
    for (int64_t j = 0; j < p->cols; j++) {
        double v = 0; /* empty sequence */
        if (p->cu_seqlens[seq] == p->cu_seqlens[seq + 1]) {
            if (p->arg) p->arg[seq * p->cols + j] = -1;
        } else if (p->kind == SES_POOL_FIRST) {
            v = p->from[p->cu_seqlens[seq] * p->cols + j];
        } else {
            v = p->kind == SES_POOL_MEAN ? pool_mean(p, seq, j) : pool_max(p, seq, j);
        }
        ses_dst_put(p->to, seq * p->cols + j, v);
    }
}

void ses_k_pool_ref(ses_exec *x, ses_real *y, int32_t *arg, const ses_real *a, const int32_t *cu_seqlens,
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
    for (int32_t t = first; t < end; t++)
        for (int64_t j = 0; j < p->cols; j++) {
            double dy = p->from[seq * p->cols + j];
            if (p->kind == SES_POOL_MEAN) dy /= end - first;
            bool is_source = p->kind == SES_POOL_MEAN ||
                             t == (p->kind == SES_POOL_MAX ? p->arg_in[seq * p->cols + j] : first);
            ses_dst_put(p->to, t * p->cols + j, is_source ? dy : 0);
        }
}

void ses_k_pool_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dy, const int32_t *arg,
                        const int32_t *cu_seqlens, int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    if (!da.data) return;
    pool p = { da, NULL, arg, dy, cu_seqlens, cols, kind };
    ses_parallel_for(x->pool, seqs, pool_bwd_seq, &p);
}

typedef struct row_scale {
    ses_dst y;
    const ses_real *a, *w;
    int64_t rows, cols;
} row_scale;

static void scale_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const row_scale *s = ctx;
    ses_range r = ses_chunk(s->rows, ses_chunk_rows(s->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++)
        for (int64_t j = 0; j < s->cols; j++)
            ses_dst_put(s->y, row * s->cols + j, (double)s->a[row * s->cols + j] * s->w[row]);
}

void ses_k_scale_rows_ref(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *w, int64_t rows,
                          int64_t cols)
{
    row_scale s = { y, a, w, rows, cols };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), scale_chunk, &s);
}
