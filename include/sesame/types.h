/* Types shared by all of Sesame: the compute type, string views, dtypes and small enums. Plain C11, safe to
 * include from C++ and CUDA. Nothing here owns memory or has state. */
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

/* The type all ops compute in: float, or double in the builds that check gradients against finite
 * differences. */
#ifdef SES_DOUBLE
typedef double ses_real;
#else
typedef float ses_real;
#endif

/* A borrowed range of bytes: p[0, n), in most cases UTF-8. p is not necessarily followed by a NUL. */
typedef struct ses_string {
    const char *p;
    size_t n;
} ses_string;

/* An option by name, "top_k" or "top-k", and its value as text. List values are separated by commas, or the
 * option is repeated. An array of settings ends with { 0 }. */
typedef struct ses_setting {
    const char *name, *value;
} ses_setting;

enum { SES_MAX_DIM = 4 }; /* axes of a tensor */

/* Storage type of the elements of a tensor or a file. */
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

/* Activation functions; see ses_act_from_name for their names in config.json. */
typedef enum {
    SES_ACT_NONE,
    SES_ACT_GELU,      /* x Phi(x), by erf */
    SES_ACT_GELU_TANH, /* tanh approximation of GELU */
    SES_ACT_RELU,
    SES_ACT_SILU,
    SES_ACT_TANH,
    SES_ACT_SIGMOID,
    SES_ACT_COUNT
} ses_act;

/* Storage order of a dense layer's weight: [out, in] as nn.Linear, or [in, out] as GPT-2's Conv1D. */
typedef enum { SES_OUT_IN, SES_IN_OUT } ses_weight_layout;
typedef enum { SES_RNN_LSTM, SES_RNN_GRU } ses_rnn_type;

/* Pooling: how the rows of a sequence become one vector. */
typedef enum { SES_POOL_FIRST, SES_POOL_MEAN, SES_POOL_MAX, SES_POOL_COUNT } ses_pool_kind;

/* Element-wise losses of an output x against a real-valued target t. */
typedef enum {
    SES_LOSS_MSE, /* (x - t)^2 */
    SES_LOSS_BCE, /* binary cross entropy with logits: x a logit, t in [0, 1] */
    SES_LOSS_COUNT
} ses_loss;

/* Distillation losses of a student row x against a teacher row y. */
typedef enum {
    SES_TEACHER_KL,     /* T^2 KL(softmax(y / T) || softmax(x / T)) */
    SES_TEACHER_COSINE, /* 1 - cos(x, y) */
    SES_TEACHER_MSE,    /* mean of (x - y)^2 */
    SES_TEACHER_LOSS_COUNT
} ses_teacher_loss_kind;

/* Instruction set levels of the CPU kernels of this architecture; each includes the ones before it.
 * SES_ISA_BEST, in options: the highest level of the machine. SES_ISA_REF: the plain C loops that define the
 * results. */
typedef enum {
    SES_ISA_BEST,
    SES_ISA_REF,
#if defined __aarch64__
    SES_ISA_NEON,
    SES_ISA_NEON_BF16, /* BF16: products of bf16 numbers */
#else
    SES_ISA_AVX2,
    SES_ISA_AVX512,
    SES_ISA_AVX512_BF16, /* AVX512_BF16: products of bf16 numbers */
    SES_ISA_AMX,         /* tiles: AMX_INT8 and AMX_BF16 */
#endif
    SES_ISA_COUNT
} ses_isa;

/* Label that a loss ignores, PyTorch's ignore_index. */
enum { SES_IGNORE_INDEX = -100 };

SES_END_DECLS

#endif
