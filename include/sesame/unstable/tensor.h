/* Tensors: contiguous row-major arrays with up to four axes on a device.
 *
 * Ownership: a tensor belongs to a tape (an activation) or a store (a parameter) and is never freed alone.
 * Threads: the functions below only read their arguments and may be called from any thread. */
#ifndef SESAME_TENSOR_H
#define SESAME_TENSOR_H

#include "sesame/base.h"

SES_BEGIN_DECLS

typedef struct ses_pack ses_pack;
typedef struct ses_i8_rows ses_i8_rows;
typedef struct ses_score_terms ses_score_terms;

typedef struct ses_tensor {
    union { /* device memory; NULL if only i8_rows or terms is set */
        ses_real *f;
        int32_t *i;
        void *data;
    };
    ses_dtype dtype;          /* SES_REAL, SES_I32, or SES_BF16 on a device with bf16 activations */
    int64_t dim[SES_MAX_DIM]; /* outermost first; 0 after the last axis */
    ses_real *grad;           /* NULL until a backward pass needs it; owned by the store for a parameter */
    bool requires_grad;
    bool has_grad;  /* grad has a value: further contributions are accumulated */
    bool keep_grad; /* the gradient of this output of an op stays after backward */
    /* On a device with bf16 activations: f32 values of a parameter or input, of which data is a bf16 copy.
     * The gradient is then f32, too. NULL otherwise. */
    ses_real *master;
    int64_t capacity; /* elements of its buffers, zeros past the last one; 0: as many as the tensor has */
    ses_pack *pack;   /* packed copy of a constant weight; NULL: none */
    const ses_i8_rows *i8_rows;   /* NULL, or quantized rows, which only products with int8 weights read */
    const ses_score_terms *terms; /* NULL, or terms of scores, which only attention reads */
    /* A weight: products round it and their other operand as int8 products do, and gradients pass unchanged
     * (quantization-aware training). */
    bool rounds_i8;
} ses_tensor;

/* Shape functions. A NULL tensor has 0 axes, elements, rows and columns, and equals no shape. */
int ses_rank(const ses_tensor *t);                             /* number of axes */
int64_t ses_count(const ses_tensor *t);                        /* elements: product of all axes */
int64_t ses_rows(const ses_tensor *t);                         /* product of all axes but the last */
int64_t ses_cols(const ses_tensor *t);                         /* last axis */
bool ses_same_shape(const ses_tensor *a, const ses_tensor *b); /* same axes; dtypes may differ */

/* Full-precision values of a parameter or input: master if there is one, otherwise f. Device memory,
 * borrowed. */
ses_real *ses_master_data(const ses_tensor *t);

/* Bytes per number; 0 for an invalid dtype. */
size_t ses_dtype_size(ses_dtype d);

/* Name as in safetensors: "F32", "BF16", ...; "?" for an invalid dtype. A static string. */
const char *ses_dtype_name(ses_dtype d);

/* Inverse of ses_dtype_name. False: unknown name or NULL; *out is unchanged. */
bool ses_dtype_from_name(const char *name, ses_dtype *out);

/* Converts n numbers in host memory from dtype `from` to dtype `to`. dst and src may be unaligned and must
 * not overlap. Floats round to nearest even; floats to integers truncate towards zero; SES_BOOL is 1 for
 * every number but 0. False: invalid dtype, or a number does not fit; dst is then partly written. */
bool ses_convert(void *dst, ses_dtype to, const void *src, ses_dtype from, size_t n, ses_err *e);

/* Name as in config.json: "gelu", "relu", ...; "?" for an invalid value. A static string. */
const char *ses_act_name(ses_act act);

/* Accepts all names that config.json may contain for an activation. False: unknown name or NULL; *out is
 * unchanged. */
bool ses_act_from_name(const char *name, ses_act *out);

SES_END_DECLS

#endif
