/* The base of all other headers: linkage, the version, types, errors and devices. Each part below begins with
 * its rules of ownership and threads. */
#ifndef SESAME_BASE_H
#define SESAME_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Linkage of the public headers: C names in C++ programs, and visible symbols in the shared library, which
 * hides everything else. Every public header puts its declarations between the two macros. */

#if defined __GNUC__
#define SES_VISIBILITY_PUSH _Pragma("GCC visibility push(default)")
#define SES_VISIBILITY_POP _Pragma("GCC visibility pop")
#else
#define SES_VISIBILITY_PUSH
#define SES_VISIBILITY_POP
#endif

/* clang-format off */
#ifdef __cplusplus
#define SES_BEGIN_DECLS SES_VISIBILITY_PUSH extern "C" {
#define SES_END_DECLS } SES_VISIBILITY_POP
#else
#define SES_BEGIN_DECLS SES_VISIBILITY_PUSH
#define SES_END_DECLS SES_VISIBILITY_POP
#endif
/* clang-format on */

/* Version of the headers and of the library, by semantic versioning. While MAJOR is 0, a MINOR release may
 * change the API; the library is libsesame.so.0 until then, so compare ses_version_number at run time. */
#define SES_VERSION_MAJOR 0
#define SES_VERSION_MINOR 1
#define SES_VERSION_PATCH 0
#define SES_VERSION "0.1.0"

/* MAJOR * 10000 + MINOR * 100 + PATCH, for #if. */
#define SES_VERSION_NUMBER (SES_VERSION_MAJOR * 10000 + SES_VERSION_MINOR * 100 + SES_VERSION_PATCH)

SES_BEGIN_DECLS

/* Version of the linked library ("0.1.0"), a static string. It differs from SES_VERSION if a program runs
 * with another libsesame.so than it was compiled for. Thread-safe; cannot fail. */
const char *ses_version(void);

/* The same as a number, comparable with SES_VERSION_NUMBER. Thread-safe; cannot fail. */
int ses_version_number(void);

/* ---- Types ----
 *
 * Types shared by all of Sesame: the compute type, string views, dtypes and small enums. Plain C11, safe to
 * include from C++ and CUDA. Nothing here owns memory or has state. */

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

/* ---- Errors ----
 *
 * Errors: one struct that the failing call fills.
 *
 * A function that can fail returns bool or a pointer and takes `ses_err *e` as its last parameter. On
 * failure it returns false or NULL and describes the reason in *e. e may be NULL if the reason does not
 * matter. Start with `ses_err e = { 0 };`. The function that detects an error reports the cause; each
 * caller may prepend a location:
 *     model.safetensors: tensor "x": offset 96 past the end
 *
 * Ownership: the caller owns the struct; it holds no pointers.
 * Threads: one ses_err per thread. */

typedef enum {
    SES_OK,
    SES_ENOMEM,       /* out of memory, or above a limit that the caller set */
    SES_EIO,          /* a system call failed: open, read, write, rename */
    SES_EFORMAT,      /* input bytes violate their format */
    SES_EARG,         /* an argument or a value in a file is out of range or does not fit */
    SES_EUNSUPPORTED, /* valid input that Sesame does not implement */
    SES_EUSAGE        /* invalid command line */
} ses_code;

typedef struct ses_err {
    char msg[1024]; /* "" while code is SES_OK; before `code`, so that { 0 } is valid C++ too */
    ses_code code;
} ses_err;

/* Sets code and message, unless *e already holds an error: the first error wins. e may be NULL. Always
 * returns false, so that a function can `return ses_fail(...)`. Messages longer than msg are truncated. */
bool ses_fail(ses_err *e, ses_code code, const char *fmt, ...) SES_PRINTF(3, 4);

/* Prepends "location: " to the message. Does nothing if e is NULL or holds no error. Always returns false. */
bool ses_wrap(ses_err *e, const char *fmt, ...) SES_PRINTF(2, 3);

/* Resets *e to SES_OK. e may be NULL. */
void ses_err_clear(ses_err *e);

/* ---- Devices ----
 *
 * Devices: memory, kernels and the threads or stream that run them.
 *
 * Ownership: the application frees a device, after all stores, models and tapes made on it.
 * Threads: a device may be shared between threads; parallel kernels of several callers run in turn.
 * Errors: a function that can fail takes a ses_err, see err.h. */

typedef struct ses_device ses_device;

/* Options of ses_device_open. Zero-initialized: all cores, the best level, f32. */
typedef struct ses_device_options {
    int threads; /* CPU threads; 0: one per core available to the process */
    ses_isa isa; /* highest instruction set level; SES_ISA_BEST (0): the best available */
    /* CPU: dtype of dense weights in inference. SES_F32: unchanged; SES_F16 or SES_BF16: rounded; SES_I8:
     * quantized, with activations quantized for each product. At levels with bf16 products, SES_BF16 rounds
     * both operands of every matrix product, in training too; sums, activations in memory and parameters stay
     * f32. Other levels do not train with SES_BF16. GPU: dtype of activations in inference and training,
     * SES_F32 or SES_BF16; parameters and statistics stay f32. */
    ses_dtype dtype;
    /* CPU: SES_I8 also quantizes embedding tables in inference. SES_F32: unchanged. */
    ses_dtype embedding_dtype;
    /* GPU: autotune matrix products at once, as benchmarks do. Otherwise autotuning is limited to 5 % of the
     * elapsed time. The results have the same bits. */
    bool autotune_eagerly;
} ses_device_options;

/* Opens "cpu", or "cuda" / "cuda:N" in builds with CUDA. options NULL: all cores, best level, f32. Returns
 * NULL on failure: unknown name, no such GPU, unsupported dtype, out of memory. The caller frees the
 * device. */
ses_device *ses_device_open(const char *name, const ses_device_options *options, ses_err *e);

/* Frees the device; NULL is allowed. Stores, models and tapes on it must be freed before. */
void ses_device_free(ses_device *d);

/* The name the device was opened with. Borrowed; valid until the device is freed. */
const char *ses_device_name(const ses_device *d);
/* PCI bus id of a GPU, "0000:65:00.0"; "" for a CPU. Borrowed from d. */
const char *ses_device_pci_bus_id(const ses_device *d);

/* Number of CPU threads, at least 1; on a GPU they prepare batches. */
int ses_device_threads(const ses_device *d);

/* Instruction set level of the CPU kernels in use; SES_ISA_REF on a GPU. */
ses_isa ses_device_isa(const ses_device *d);
/* Name of a level, as options spell it: "ref", "avx2", ...; "unknown" if isa is not a level. */
const char *ses_isa_name(ses_isa isa);

/* dtype of dense weights in inference; SES_REAL: unchanged. Always SES_REAL on a GPU. */
ses_dtype ses_device_dtype(const ses_device *d);

SES_END_DECLS

#endif
