/* A weight in the order gemm reads it, made once: on its second use, so that who asks a model once neither
 * waits for it nor holds the weights twice. Several threads may ask at once. */
#ifndef SES_TENSOR_PACK_H
#define SES_TENSOR_PACK_H

#include "base/arena.h"
#include "kernel/kernel.h"
#include "sesame/device.h"
#include "sesame/tensor.h"

#include <pthread.h>

/* A weight is a matrix: its first axis (0) and all the others as one (1). */
static inline int64_t ses_weight_dim(const ses_tensor *w, int axis)
{
    return axis ? ses_count(w) / w->dim[0] : w->dim[0];
}

/* Where packed weights lie, side by side: a block of its own would leave a matrix of 600 KB, or the end of
 * one of 2.2 MB, on small pages, and products of few rows wait for memory. */
typedef struct ses_pack_arena {
    ses_arena arena;
    pthread_mutex_t lock; /* held while room is taken */
} ses_pack_arena;

void ses_pack_arena_init(ses_pack_arena *s, ses_device *dev);
void ses_pack_arena_free(ses_pack_arena *s); /* and all that lies there; the packs are freed before */

/* The weight will lie in `room`. as: SES_REAL, or the narrower form it is rounded to (F16, BF16, I8).
 * mapped: the weight's values are a file's pages, of which none stay when they are packed. */
ses_pack *ses_pack_new(ses_pack_arena *room, ses_dtype as, bool mapped, ses_err *e);
void ses_pack_free(ses_pack *p);
ses_dtype ses_pack_dtype(const ses_tensor *w); /* SES_REAL where w has no pack */
size_t ses_pack_bytes(const ses_pack *p);

/* Rows of w, [rows, cols], in fewer bits, as embeddings read them: numbers borrowed from a file with the
 * scales of SES_I8, copied (unaligned), or made of w's values. NULL: w is read as it is. */
bool ses_pack_borrow_rows(const ses_tensor *w, const void *data, ses_dtype as, const void *scale, ses_err *e);
bool ses_pack_quantize_rows(const ses_tensor *w, ses_dtype as, ses_err *e);
const ses_quant_rows *ses_pack_quant_rows(const ses_tensor *w);

/* w packed for y = x w', w [N, K] or [K, N] as `order` says (always the same for one w). data NULL when w
 * has no pack yet or memory is short: gemm then packs on the way. A narrower form is made beforehand: by
 * ses_pack_build of w's values, by ses_pack_from_quantized of a file's numbers in that form, the scale being that of
 * each output. */
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
