/* Packed weights: copies of constant weights in the memory order of gemm, made on their second use. One-shot
 * runs skip the cost and keep only one copy of the weights.
 * A pack is owned by its store. ses_pack_get may be called from several threads at once. */
#ifndef SES_TENSOR_PACK_H
#define SES_TENSOR_PACK_H

#include "base/arena.h"
#include "kernel/kernel.h"
#include "sesame/base.h"
#include "sesame/unstable/tensor.h"

#include <pthread.h>

/* A weight is a matrix: axis 0 is its first axis, axis 1 all others together. */
static inline int64_t ses_weight_dim(const ses_tensor *w, int axis)
{
    return axis ? ses_count(w) / w->dim[0] : w->dim[0];
}

/* Memory of packed weights. Weights are packed side by side: in separate blocks a matrix of 600 KB, or the
 * end of one of 2.2 MB, would lie on small pages, and products of few rows are limited by memory. */
typedef struct ses_pack_arena {
    ses_arena arena;
    pthread_mutex_t lock; /* held while allocating */
} ses_pack_arena;

void ses_pack_arena_init(ses_pack_arena *s, ses_device *dev);
void ses_pack_arena_free(ses_pack_arena *s); /* frees all packed weights; free the packs first */

/* A pack whose data will lie in `arena`. dtype: SES_REAL, or SES_F16, SES_BF16, SES_I8 to quantize.
 * mapped: the weight's values are mapped file pages, which are released after packing. */
ses_pack *ses_pack_new(ses_pack_arena *arena, ses_dtype dtype, bool mapped, ses_err *e);
void ses_pack_free(ses_pack *p);
ses_dtype ses_pack_dtype(const ses_tensor *w); /* SES_REAL if w has no pack */
size_t ses_pack_bytes(const ses_pack *p);

/* Quantized rows of w [rows, cols] for embedding lookups: _borrow_rows uses numbers of a file (the int8
 * scales are copied, because they may be unaligned), _quantize_rows quantizes w's values. _quant_rows returns
 * NULL if w has none. */
bool ses_pack_borrow_rows(const ses_tensor *w, const void *data, ses_dtype dtype, const void *scale,
                          ses_err *e);
bool ses_pack_quantize_rows(const ses_tensor *w, ses_dtype dtype, ses_err *e);
const ses_quant_rows *ses_pack_quant_rows(const ses_tensor *w);

/* w packed for y = x w', with w [N, K] or [K, N] depending on `order`, which must not change for one w. data
 * NULL: w has no pack yet or memory is short; gemm then packs on the fly. Quantized packs are made in
 * advance: by ses_pack_build from w's values, or by ses_pack_from_quantized from a file's numbers in that
 * dtype, with one scale per output. */
typedef struct ses_packed_weight {
    const void *data;
    ses_dtype dtype;
} ses_packed_weight;
ses_packed_weight ses_pack_get(const ses_tensor *w, ses_weight_layout order, const ses_kernels *k,
                               ses_exec *x);
bool ses_pack_build(const ses_tensor *w, ses_weight_layout order, const ses_kernels *k, ses_exec *x,
                    ses_err *e);
bool ses_pack_from_quantized(const ses_tensor *w, ses_weight_layout order, const ses_quant_rows *from,
                             const ses_kernels *k, ses_exec *x, ses_err *e);

#endif
