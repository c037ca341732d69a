/* A tensor: contiguous, row-major, up to four axes. It belongs to a tape (an activation) or a store
 * (a parameter) and is never freed alone. */
#ifndef SESAME_TENSOR_H
#define SESAME_TENSOR_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_pack ses_pack;
typedef struct ses_i8_rows ses_i8_rows;

typedef struct ses_tensor {
    union { /* on the tensor's device */
        ses_real *f;
        int32_t *i;
        void *data;
    };
    ses_dtype dtype;          /* SES_REAL, SES_I32, or SES_BF16 on a device of narrow reals */
    int64_t dim[SES_MAX_DIM]; /* outermost first; 0 after the last axis */
    ses_real *grad;           /* NULL until a backward pass needs it; a parameter's is the store's */
    bool requires_grad;
    bool has_grad; /* grad holds something: further contributions are added */
    /* On a device of narrow reals: a parameter's or an input's numbers in full, which its gradient is too;
     * data is their copy. NULL otherwise. */
    ses_real *master;
    int64_t capacity; /* numbers its buffers hold, those past the last being zeros; 0: as many as it has */
    ses_pack *pack;   /* of a parameter that does not change: its copy in the order gemm reads; may be NULL */
    const ses_i8_rows *i8_rows; /* NULL, or what only products with 8-bit weights read: data is NULL then */
} ses_tensor;

/* All of these take NULL for a tensor and answer 0. */
int ses_rank(const ses_tensor *t);
int64_t ses_count(const ses_tensor *t); /* product of all axes */
int64_t ses_rows(const ses_tensor *t);  /* product of all but the last */
int64_t ses_cols(const ses_tensor *t);  /* the last */
bool ses_same_shape(const ses_tensor *a, const ses_tensor *b);

/* A parameter's numbers in full. */
ses_real *ses_master_data(const ses_tensor *t);

size_t ses_dtype_size(ses_dtype d);
const char *ses_dtype_name(ses_dtype d); /* as safetensors spells it: "F32", "BF16", ... */
bool ses_dtype_from_name(const char *name, ses_dtype *out);

/* n numbers from one dtype to another; either side may be unaligned, they must not overlap. Floats round to
 * nearest even; floats to integers towards zero, and fail when one does not fit. Not 0 is true. */
bool ses_convert(void *dst, ses_dtype to, const void *src, ses_dtype from, size_t n, ses_err *e);

const char *ses_act_name(ses_act act); /* as config.json spells it: "gelu", ... */
bool ses_act_from_name(const char *name, ses_act *out);

SES_END_DECLS

#endif
