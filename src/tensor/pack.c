/* Packed and quantized copies of constant weights, see pack.h. */
#include "pack.h"

#include "base/alloc.h"
#include "base/file.h"
#include "device_impl.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

struct ses_pack {
    ses_pack_arena *arena;
    ses_dtype dtype;
    bool mapped;
    atomic_bool used;     /* a product has used the weight before it was packed */
    pthread_mutex_t lock; /* held while packing */
    _Atomic(void *) data; /* NULL until packed */
    size_t bytes;
    ses_quant_rows rows; /* data NULL: none */
    float *scale;        /* scales of rows */
    void *owned;         /* numbers of rows, unless borrowed */
};

void ses_pack_arena_init(ses_pack_arena *s, ses_device *dev)
{
    *s = (ses_pack_arena){ .arena.allocator = ses_device_allocator(dev) };
    pthread_mutex_init(&s->lock, NULL);
}

void ses_pack_arena_free(ses_pack_arena *s)
{
    ses_arena_free(&s->arena);
    pthread_mutex_destroy(&s->lock);
}

ses_pack *ses_pack_new(ses_pack_arena *arena, ses_dtype dtype, bool mapped, ses_err *e)
{
    ses_pack *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->arena = arena;
    p->dtype = dtype;
    p->mapped = mapped;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void ses_pack_free(ses_pack *p)
{
    if (!p) return;
    pthread_mutex_destroy(&p->lock);
    ses_free(p->scale);
    ses_free(p->owned);
    ses_free(p);
}

ses_dtype ses_pack_dtype(const ses_tensor *w) { return w->pack ? w->pack->dtype : SES_REAL; }

size_t ses_pack_bytes(const ses_pack *p) { return p && atomic_load(&p->data) ? p->bytes : 0; }

const ses_quant_rows *ses_pack_quant_rows(const ses_tensor *w)
{
    return w->pack && w->pack->rows.data ? &w->pack->rows : NULL;
}

bool ses_pack_borrow_rows(const ses_tensor *w, const void *data, ses_dtype dtype, const void *scale,
                          ses_err *e)
{
    ses_pack *p = w->pack;
    size_t rows = (size_t)ses_rows(w);
    if (scale && !(p->scale = ses_alloc_array(rows, sizeof *p->scale, e))) return false;
    if (scale) memcpy(p->scale, scale, rows * sizeof *p->scale);
    p->rows = (ses_quant_rows){ data, dtype, p->scale };
    return true;
}

/* Quantizes each row to int8 with the scale max |w| / 127. */
static void quantize_i8(int8_t *q, float *scale, const ses_real *w, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, w += cols, q += cols) {
        double max_abs = 0;
        for (int64_t j = 0; j < cols; j++) max_abs = fmax(max_abs, fabs((double)w[j]));
        scale[i] = (float)max_abs / 127;
        for (int64_t j = 0; j < cols; j++) q[j] = (int8_t)(scale[i] > 0 ? rint(w[j] / scale[i]) : 0);
    }
}

bool ses_pack_quantize_rows(const ses_tensor *w, ses_dtype dtype, ses_err *e)
{
    ses_pack *p = w->pack;
    int64_t rows = ses_rows(w), cols = ses_cols(w);
    p->owned = ses_alloc_array((size_t)ses_count(w), ses_dtype_size(dtype), e);
    p->scale = ses_alloc_array((size_t)rows, sizeof *p->scale, e);
    if (!p->owned || !p->scale) return false;
    if (dtype == SES_I8)
        quantize_i8(p->owned, p->scale, w->f, rows, cols);
    else if (!ses_convert(p->owned, dtype, w->f, SES_REAL, (size_t)ses_count(w), e))
        return false;
    p->rows = (ses_quant_rows){ p->owned, dtype, dtype == SES_I8 ? p->scale : NULL };
    return true;
}

/* B(p, j) = w[p * row + j * col] with B [k, n]. */
typedef struct layout {
    int64_t n, k, row, col;
} layout;

static layout layout_of(const ses_tensor *w, ses_weight_layout order)
{
    bool in_out = order == SES_IN_OUT;
    int64_t n = ses_weight_dim(w, in_out), k = ses_weight_dim(w, !in_out);
    return (layout){ n, k, in_out ? n : 1, in_out ? 1 : k };
}

static void *alloc_packed(ses_pack *p, size_t bytes, ses_err *e)
{
    p->bytes = bytes;
    pthread_mutex_lock(&p->arena->lock);
    void *data = ses_arena_alloc(&p->arena->arena, bytes, e);
    pthread_mutex_unlock(&p->arena->lock);
    return data;
}

static ses_i8_weight i8_weight(layout b, const ses_real *w, const ses_quant_rows *from)
{
    return (ses_i8_weight){ .b = w,
                            .bytes = from ? from->data : NULL,
                            .scale = from ? from->scale : NULL,
                            .b_row = b.row,
                            .b_col = b.col,
                            .n = b.n,
                            .k = b.k };
}

/* Packs an int8 weight: sparse, if enough of its blocks of four inputs are zero for this to be faster. */
static void *build_i8(ses_pack *p, const ses_i8_weight *w, const ses_kernels *k, ses_exec *x, ses_err *e)
{
    int64_t bytes = x->dense_i8 ? 0 : k->gemm_i8_sparse_size(x, w, 0);
    void *data = alloc_packed(p, (size_t)(bytes ? bytes : k->gemm_i8_pack_size(w->n, w->k)), e);
    if (data && bytes)
        k->gemm_i8_sparse_pack(x, data, w);
    else if (data && w->bytes)
        k->gemm_i8_pack_quantized(x, data, w->bytes, w->scale, w->b_row, w->b_col, w->n, w->k);
    else if (data)
        k->gemm_i8_pack(x, data, w->b, w->b_row, w->b_col, w->n, w->k);
    return data;
}

static void *build(ses_pack *p, const ses_tensor *w, layout b, const ses_kernels *k, ses_exec *x, ses_err *e)
{
    ses_i8_weight from = i8_weight(b, w->f, NULL);
    void *data = p->dtype == SES_I8
                     ? build_i8(p, &from, k, x, e)
                     : alloc_packed(p, (size_t)k->gemm_pack_size(b.n, b.k) * ses_dtype_size(p->dtype), e);
    if (data && p->dtype != SES_I8) k->gemm_pack(x, data, p->dtype, w->f, b.row, b.col, b.n, b.k);
    if (data && p->mapped) ses_mmap_release(w->f, (size_t)ses_count(w) * sizeof *w->f);
    return data;
}

ses_packed_weight ses_pack_get(const ses_tensor *w, ses_weight_layout order, const ses_kernels *k,
                               ses_exec *x)
{
    ses_pack *p = w->pack;
    if (!p || !k->gemm_pack_size(1, 1))
        return (ses_packed_weight){ NULL, SES_REAL }; /* this device packs nothing */
    void *data = atomic_load_explicit(&p->data, memory_order_acquire);
    if (!data && p->dtype == SES_REAL && w->f && atomic_exchange(&p->used, true)) {
        pthread_mutex_lock(&p->lock);
        data = atomic_load(&p->data);
        if (!data) data = build(p, w, layout_of(w, order), k, x, NULL);
        atomic_store_explicit(&p->data, data, memory_order_release);
        pthread_mutex_unlock(&p->lock);
    }
    assert(data || w->f); /* otherwise it is an embedding table without a product */
    return (ses_packed_weight){ data, p->dtype };
}

bool ses_pack_build(const ses_tensor *w, ses_weight_layout order, const ses_kernels *k, ses_exec *x,
                    ses_err *e)
{
    void *data = build(w->pack, w, layout_of(w, order), k, x, e);
    atomic_store_explicit(&w->pack->data, data, memory_order_release);
    return data != NULL;
}

/* Converts and packs 16-bit numbers, SES_PACK_STEP columns of B at a time. */
static bool pack_halves(char *to, layout b, const ses_quant_rows *from, const ses_kernels *k, ses_exec *x,
                        ses_err *e)
{
    enum { SIZE = 2 };
    bool in_out = b.col == 1;
    ses_real *block = ses_alloc_aligned((size_t)(SES_PACK_STEP * b.k) * sizeof *block, e);
    for (int64_t j = 0; block && j < b.n; j += SES_PACK_STEP) {
        int64_t n = b.n - j < SES_PACK_STEP ? b.n - j : SES_PACK_STEP;
        ses_quant_rows part = { .data = (const char *)from->data + SIZE * j * b.col,
                                .dtype = from->dtype,
                                .row_stride = in_out ? b.n : b.k };
        k->dequantize_rows(x, block, &part, NULL, in_out ? b.k : n, in_out ? n : b.k);
        int64_t at = x->bf16 && from->dtype == SES_BF16 ? k->gemm_pack_size(j, b.k) : j * b.k;
        k->gemm_pack(x, to + SIZE * at, from->dtype, block, in_out ? n : 1, in_out ? 1 : b.k, n, b.k);
    }
    ses_free(block);
    return block != NULL;
}

bool ses_pack_from_quantized(const ses_tensor *w, ses_weight_layout order, const ses_quant_rows *from,
                             const ses_kernels *k, ses_exec *x, ses_err *e)
{
    ses_pack *p = w->pack;
    layout b = layout_of(w, order);
    assert(p->dtype == from->dtype);
    ses_i8_weight bytes = i8_weight(b, NULL, from);
    void *data = p->dtype == SES_I8
                     ? build_i8(p, &bytes, k, x, e)
                     : alloc_packed(p, (size_t)k->gemm_pack_size(b.n, b.k) * ses_dtype_size(p->dtype), e);
    atomic_store_explicit(&p->data, data, memory_order_release);
    if (!data || (p->dtype != SES_I8 && !pack_halves(data, b, from, k, x, e))) return false;
    if (p->mapped) ses_mmap_release(from->data, (size_t)ses_count(w) * ses_dtype_size(from->dtype));
    return true;
}
