#include "pack.h"

#include "base/alloc.h"
#include "base/file.h"
#include "device_impl.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

struct ses_pack {
    ses_pack_arena *room;
    ses_dtype as;
    bool mapped;
    atomic_bool used;     /* by a product, before it was packed */
    pthread_mutex_t lock; /* held while packing */
    _Atomic(void *) data; /* NULL until done */
    size_t bytes;
    ses_quant_rows rows; /* data NULL: none */
    float *scale;        /* of the rows, */
    void *own;           /* and themselves where they are not borrowed */
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

ses_pack *ses_pack_new(ses_pack_arena *room, ses_dtype as, bool mapped, ses_err *e)
{
    ses_pack *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->room = room;
    p->as = as;
    p->mapped = mapped;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void ses_pack_free(ses_pack *p)
{
    if (!p) return;
    pthread_mutex_destroy(&p->lock);
    ses_free(p->scale);
    ses_free(p->own);
    ses_free(p);
}

ses_dtype ses_pack_dtype(const ses_tensor *w) { return w->pack ? w->pack->as : SES_REAL; }

size_t ses_pack_bytes(const ses_pack *p) { return p && atomic_load(&p->data) ? p->bytes : 0; }

const ses_quant_rows *ses_pack_quant_rows(const ses_tensor *w)
{
    return w->pack && w->pack->rows.data ? &w->pack->rows : NULL;
}

bool ses_pack_borrow_rows(const ses_tensor *w, const void *data, ses_dtype as, const void *scale, ses_err *e)
{
    ses_pack *p = w->pack;
    size_t rows = (size_t)ses_rows(w);
    if (scale && !(p->scale = ses_alloc_array(rows, sizeof *p->scale, e))) return false;
    if (scale) memcpy(p->scale, scale, rows * sizeof *p->scale);
    p->rows = (ses_quant_rows){ data, as, p->scale };
    return true;
}

/* Each row as multiples of its largest magnitude / 127. */
static void to_multiples(int8_t *q, float *scale, const ses_real *w, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, w += cols, q += cols) {
        double most = 0;
        for (int64_t j = 0; j < cols; j++) most = fmax(most, fabs((double)w[j]));
        scale[i] = (float)most / 127;
        for (int64_t j = 0; j < cols; j++) q[j] = (int8_t)(scale[i] > 0 ? rint(w[j] / scale[i]) : 0);
    }
}

bool ses_pack_quantize_rows(const ses_tensor *w, ses_dtype as, ses_err *e)
{
    ses_pack *p = w->pack;
    int64_t rows = ses_rows(w), cols = ses_cols(w);
    p->own = ses_alloc_array((size_t)ses_count(w), ses_dtype_size(as), e);
    p->scale = ses_alloc_array((size_t)rows, sizeof *p->scale, e);
    if (!p->own || !p->scale) return false;
    if (as == SES_I8)
        to_multiples(p->own, p->scale, w->f, rows, cols);
    else if (!ses_convert(p->own, as, w->f, SES_REAL, (size_t)ses_count(w), e))
        return false;
    p->rows = (ses_quant_rows){ p->own, as, as == SES_I8 ? p->scale : NULL };
    return true;
}

/* Where B(p, j) of a weight lies, and how large it is. */
typedef struct layout {
    int64_t n, k, row, col;
} layout;

static layout layout_of(const ses_tensor *w, ses_weight_layout order)
{
    bool in_out = order == SES_IN_OUT;
    int64_t n = ses_weight_dim(w, in_out), k = ses_weight_dim(w, !in_out);
    return (layout){ n, k, in_out ? n : 1, in_out ? 1 : k };
}

static void *take_room(ses_pack *p, layout b, const ses_kernels *k, ses_err *e)
{
    p->bytes = p->as == SES_I8 ? (size_t)k->gemm_i8_pack_size(b.n, b.k)
                               : (size_t)k->gemm_pack_size(b.n, b.k) * ses_dtype_size(p->as);
    pthread_mutex_lock(&p->room->lock);
    void *data = ses_arena_alloc(&p->room->arena, p->bytes, e);
    pthread_mutex_unlock(&p->room->lock);
    return data;
}

static void *make(ses_pack *p, const ses_tensor *w, layout b, const ses_kernels *k, ses_exec *x, ses_err *e)
{
    void *data = take_room(p, b, k, e);
    if (data && p->as == SES_I8) k->gemm_i8_pack(x, data, w->f, b.row, b.col, b.n, b.k);
    if (data && p->as != SES_I8) k->gemm_pack(x, data, p->as, w->f, b.row, b.col, b.n, b.k);
    if (data && p->mapped) ses_mmap_release(w->f, (size_t)ses_count(w) * sizeof *w->f);
    return data;
}

ses_packed_weight ses_pack_get(const ses_tensor *w, ses_weight_layout order, const ses_kernels *k,
                               ses_exec *x)
{
    ses_pack *p = w->pack;
    if (!p || !k->gemm_pack_size(1, 1))
        return (ses_packed_weight){ NULL, SES_REAL }; /* nothing is packed here */
    void *data = atomic_load_explicit(&p->data, memory_order_acquire);
    if (!data && p->as == SES_REAL && w->f && atomic_exchange(&p->used, true)) {
        pthread_mutex_lock(&p->lock);
        data = atomic_load(&p->data);
        if (!data) data = make(p, w, layout_of(w, order), k, x, NULL);
        atomic_store_explicit(&p->data, data, memory_order_release);
        pthread_mutex_unlock(&p->lock);
    }
    assert(data || w->f); /* a table that only embeddings read */
    return (ses_packed_weight){ data, p->as };
}

bool ses_pack_build(const ses_tensor *w, ses_weight_layout order, const ses_kernels *k, ses_exec *x,
                    ses_err *e)
{
    void *data = make(w->pack, w, layout_of(w, order), k, x, e);
    atomic_store_explicit(&w->pack->data, data, memory_order_release);
    return data != NULL;
}

/* 16-bit numbers, some columns of B after the other: widened, then packed as they were. */
static bool take_halves(char *to, layout b, const ses_quant_rows *from, const ses_kernels *k, ses_exec *x,
                        ses_err *e)
{
    enum { SIZE = 2 };
    bool in_out = b.col == 1;
    ses_real *some = ses_alloc_aligned((size_t)(SES_PACK_STEP * b.k) * sizeof *some, e);
    for (int64_t j = 0; some && j < b.n; j += SES_PACK_STEP) {
        int64_t n = b.n - j < SES_PACK_STEP ? b.n - j : SES_PACK_STEP;
        ses_quant_rows part = { .data = (const char *)from->data + SIZE * j * b.col,
                                .dtype = from->dtype,
                                .row_stride = in_out ? b.n : b.k };
        k->dequantize_rows(x, some, &part, NULL, in_out ? b.k : n, in_out ? n : b.k);
        k->gemm_pack(x, to + SIZE * j * b.k, from->dtype, some, in_out ? n : 1, in_out ? 1 : b.k, n, b.k);
    }
    ses_free(some);
    return some != NULL;
}

bool ses_pack_from_quantized(const ses_tensor *w, ses_weight_layout order, const ses_quant_rows *from,
                             const ses_kernels *k, ses_exec *x, ses_err *e)
{
    ses_pack *p = w->pack;
    layout b = layout_of(w, order);
    assert(p->as == from->dtype);
    void *data = take_room(p, b, k, e);
    atomic_store_explicit(&p->data, data, memory_order_release);
    if (!data) return false;
    if (p->as == SES_I8)
        k->gemm_i8_pack_quantized(x, data, from->data, from->scale, b.row, b.col, b.n, b.k);
    else if (!take_halves(data, b, from, k, x, e))
        return false;
    if (p->mapped) ses_mmap_release(from->data, (size_t)ses_count(w) * ses_dtype_size(from->dtype));
    return true;
}
