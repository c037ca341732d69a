/* Types every part of Sesame shares: the number type, sizes, dtypes, small enums.
 * Plain C11; safe to include from C++ and CUDA. */
#ifndef SESAME_TYPES_H
#define SESAME_TYPES_H

#include "sesame/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

SES_BEGIN_DECLS

#define SES_LEN(a) (sizeof(a) / sizeof *(a))

#if defined __GNUC__
#define SES_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SES_PRINTF(fmt, args)
#endif

/* The number every op computes in. Float in the product; the gradient checks compile the same
 * sources with double, where finite differences are sharp. */
#ifdef SES_DOUBLE
typedef double ses_real;
#else
typedef float ses_real;
#endif

enum { SES_MAX_DIM = 4 };

/* How one number is stored in a tensor or a file. */
typedef enum {
    SES_F32,
    SES_F16,
    SES_BF16,
    SES_F64,
    SES_I64,
    SES_I32,
    SES_I16,
    SES_I8,
    SES_U8,
    SES_BOOL,
    SES_DTYPE_COUNT
} ses_dtype;

#ifdef SES_DOUBLE
#define SES_REAL SES_F64
#else
#define SES_REAL SES_F32
#endif

/* Pointwise functions, in the names config.json uses; see ses_act_from_name. */
typedef enum {
    SES_ACT_NONE,
    SES_ACT_GELU,      /* x Phi(x), by erf */
    SES_ACT_GELU_TANH, /* its tanh approximation */
    SES_ACT_RELU,
    SES_ACT_SILU,
    SES_ACT_TANH,
    SES_ACT_SIGMOID,
    SES_ACT_COUNT
} ses_act;

/* How a dense layer's weight is stored. */
typedef enum { SES_OUT_IN, SES_IN_OUT } ses_weight_layout;
typedef enum { SES_RNN_LSTM, SES_RNN_GRU } ses_rnn_type; /* of recurrent layers */

/* How the rows of a sequence become one. */
typedef enum { SES_POOL_FIRST, SES_POOL_MEAN, SES_POOL_MAX, SES_POOL_COUNT } ses_pool_kind;

/* A loss between an output and a target of real numbers, each element alone. */
typedef enum {
    SES_LOSS_MSE, /* (x - t)^2 */
    SES_LOSS_BCE, /* cross entropy of the yes-or-no t in [0, 1], x a logit */
    SES_LOSS_COUNT
} ses_loss;

/* How far a row is from one it should be like. */
typedef enum {
    SES_TEACHER_KL,     /* T^2 KL(softmax(y / T) || softmax(x / T)) */
    SES_TEACHER_COSINE, /* 1 - cos(x, y) */
    SES_TEACHER_MSE,    /* the mean of (x - y)^2 */
    SES_TEACHER_LOSS_COUNT
} ses_teacher_loss_kind;

/* Instruction set levels of the CPU kernels; each includes the ones before it. */
typedef enum { SES_ISA_REF, SES_ISA_AVX2, SES_ISA_AVX512, SES_ISA_COUNT } ses_isa;

/* The label that counts for nothing in a loss. */
enum { SES_IGNORE_INDEX = -100 };

SES_END_DECLS

#endif
