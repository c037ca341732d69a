/* A weight in the order gemm reads it, made once: on its second use, so that who asks a model once neither
 * waits for it nor holds the weights twice. Several threads may ask at once. */
#ifndef SES_TENSOR_PACK_H
#define SES_TENSOR_PACK_H

#include "kernel/kernel.h"
#include "sesame/device.h"
#include "sesame/tensor.h"

/* A weight is a matrix: its first axis (0) and all the others as one (1). */
static inline int64_t ses_weight_dim(const ses_tensor *w, int axis)
{
    return axis ? ses_count(w) / w->dim[0] : w->dim[0];
}

/* as: SES_REAL, or a narrower form the weight is rounded to: SES_F16, SES_BF16, SES_I8. mapped: the weight's
 * values are a file's pages, of which none stay when they are packed. */
ses_pack *ses_pack_new(ses_device *dev, ses_dtype as, bool mapped, ses_err *e);
void ses_pack_free(ses_pack *p);
ses_dtype ses_pack_as(const ses_tensor *w); /* SES_REAL where w has no pack */
size_t ses_pack_bytes(const ses_pack *p);

/* Rows of w, [rows, cols], in fewer bits, as embeddings read them: numbers borrowed from a file with the
 * scales of SES_I8, copied (unaligned), or made of w's values. NULL: w is read as it is. */
bool ses_pack_borrow_rows(const ses_tensor *w, const void *data, ses_dtype as, const void *scale, ses_err *e);
bool ses_pack_round_rows(const ses_tensor *w, ses_dtype as, ses_err *e);
const ses_table *ses_pack_rows(const ses_tensor *w);

/* w packed for y = x w', w [N, K] or [K, N] as `order` says (always the same for one w). data NULL when w
 * has no pack yet or memory is short: gemm then packs on the way. A narrower form is made beforehand: by
 * ses_pack_make of w's values, by ses_pack_take of a file's numbers in that form, the scale being that of
 * each output. */
typedef struct ses_packed_weight {
    const void *data;
    ses_dtype as;
} ses_packed_weight;
ses_packed_weight ses_packed(const ses_tensor *w, ses_weight order, const ses_kernels *k, ses_exec *x);
bool ses_pack_make(const ses_tensor *w, ses_weight order, const ses_kernels *k, ses_exec *x, ses_err *e);
bool ses_pack_take(const ses_tensor *w, ses_weight order, const ses_table *from, const ses_kernels *k,
                   ses_exec *x, ses_err *e);

#endif
