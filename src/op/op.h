/* The interface for implementing ops. An op is a file src/op/NAME.c with shape inference, forward, backward
 * and test cases, and a line in include/sesame/unstable/ops.def; see docs/ADDING.md.
 *
 * Ownership: nodes, tensors and buffers belong to the tape.
 * Threads: as the tape, one at a time; kernels run in parallel inside. */
#ifndef SES_OP_H
#define SES_OP_H

#include "kernel/kernel.h"
#include "op/rope/rope.h"
#include "sesame/unstable/ops.h"

enum { SES_MAX_IN = 10, SES_MAX_SAVED = 3 };

typedef struct ses_op ses_op;

/* One application of an op, on its tape. */
typedef struct ses_node {
    const ses_op *op;
    int64_t number; /* in the order of the forward pass, since the tape's reset */
    ses_tape *tape;
    ses_dtype dtype; /* dtype of real inputs and outputs; losses are always f32 */
    const ses_kernels *k;
    ses_exec *exec;
    int n_in;
    ses_tensor *in[SES_MAX_IN];     /* an optional input may be NULL */
    ses_tensor *out, *aux;          /* aux: second output without gradient; NULL: none */
    ses_real *saved[SES_MAX_SAVED]; /* buffers for backward */
    const void *attr;               /* a copy on the tape */
    struct ses_node *prev;
} ses_node;

/* Inputs of a test case. tests/test_ops.c and `sesame selftest` run every case of every op at every kernel
 * level against kernel/ref, and its gradients against finite differences. */
typedef struct ses_case {
    int64_t dim[SES_MAX_IN][SES_MAX_DIM]; /* {0} and no ints: the input is NULL */
    const int32_t *ints[SES_MAX_IN];      /* values of an integer input; dim is its length */
    const void *attr;
    double scale;      /* factor of the random values; 0: 1 */
    double tol;        /* tolerance relative to the largest magnitude; 0: 1e-5 */
    unsigned constant; /* bit i: input i has no gradient */
} ses_case;

struct ses_op {
    const char *name;
    size_t attr_size;
    /* bit i: input i is read in f32, so that it must be a parameter or a tape input */
    unsigned f32_inputs;
    bool (*infer)(ses_node *n, ses_err *e); /* checks inputs, makes out and saved buffers */
    void (*forward)(const ses_node *n);
    /* adds the gradient of each input that requires one, by ses_grad */
    void (*backward)(const ses_node *n);
    const ses_case *cases;
    size_t n_cases;
    bool straight_through; /* the gradient is not the derivative: finite differences do not apply */
};

#define SES_OP(name, params) extern const ses_op ses_op_##name;
#include "sesame/unstable/ops.def"
#undef SES_OP

const ses_op *const *ses_ops(void); /* all ops, NULL-terminated */

/* ses_apply_node makes the node, infers, runs forward and records; ses_apply returns its output. NULL: the
 * tape has failed. */
#define SES_IN(...) (ses_tensor *const[]){ __VA_ARGS__ }, (int)SES_LEN(((ses_tensor *const[]){ __VA_ARGS__ }))
ses_node *ses_apply_node(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr);
ses_tensor *ses_apply(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr);

/* Functions for infer. ses_node_out makes the output, ses_node_save the buffer saved[i] of count elements. */
bool ses_node_out(ses_node *n, const int64_t dim[SES_MAX_DIM], ses_err *e);
bool ses_node_out_i8(ses_node *n, const int64_t dim[SES_MAX_DIM], ses_err *e); /* int8 only */
/* f32; allocated even if the tape does not record */
bool ses_node_save(ses_node *n, int i, int64_t count, ses_err *e);
bool ses_node_save_elems(ses_node *n, int i, int64_t count, ses_err *e); /* in the node's dtype */
bool ses_node_needs_backward(const ses_node *n);                         /* will backward run? */
/* A tensor over existing memory, which must live as long. */
ses_tensor *ses_tensor_wrap(ses_tape *t, void *data, ses_dtype dtype, const int64_t dim[SES_MAX_DIM],
                            ses_err *e);
bool ses_check_input(const ses_node *n, int i, const char *what, ses_err *e); /* not NULL, real */
bool ses_check_ints(const ses_node *n, int i, const char *what, ses_err *e);  /* not NULL, integer */
/* Every integer of input i must be in 0 .. limit - 1 (or SES_IGNORE_INDEX, if allowed). Checked on the host
 * only; for other devices the uploader checks. */
bool ses_check_range(const ses_node *n, int i, int64_t limit, bool ignore, const char *what, ses_err *e);
/* The integers of input i on the host: its own memory, or a copy (waits for the device). NULL: no input. */
const int32_t *ses_node_ints(const ses_node *n, int i);
#define SES_DIM(...) ((const int64_t[SES_MAX_DIM]){ __VA_ARGS__ })

/* Element i of an array in the node's dtype (a device may hold reals as bf16), and of a destination. */
void *ses_elem_at(const ses_node *n, const void *array, int64_t i);
ses_dst ses_dst_at(const ses_node *n, ses_dst s, int64_t i);
/* Input i in f32, one of op->f32_inputs; NULL: absent. */
const ses_real *ses_input_f32(const ses_node *n, int i);

/* Functions for backward. ses_grad: destination of input i's gradient; data NULL: none required. The caller
 * must write to it. */
ses_dst ses_grad(const ses_node *n, int i);
/* Moves the output's gradient buffer to input i; n->out->grad becomes NULL. False: input i requires no
 * gradient, already has one, or has another size. */
bool ses_grad_donate(const ses_node *n, int i);
ses_dst ses_grad_zeroed(const ses_node *n, int i); /* zeroed if new, for scattered additions */
/* the same for a vector, in f32; NULL: none required */
ses_real *ses_grad_vector(const ses_node *n, int i);

/* Scratch memory for one forward or backward call; NULL: the tape has failed. */
ses_real *ses_scratch(const ses_node *n, int64_t count);
ses_real *ses_scratch_elems(const ses_node *n, int64_t count); /* in the node's dtype */

/* Memory for int8 rows: for one call, or until the tape is reset or rewound. */
const ses_i8_rows *ses_scratch_i8_rows(const ses_node *n, int64_t rows, int64_t cols);
const ses_i8_rows *ses_tape_i8_rows(ses_tape *t, int64_t rows, int64_t cols);
/* The int8 rows of x, if they exist; the tape remembers the rows of the tensor that was quantized last. */
const ses_i8_rows *ses_tape_cached_i8(const ses_tape *t, const ses_tensor *x);
void ses_tape_cache_i8(ses_tape *t, const ses_tensor *x, const ses_i8_rows *rows_i8);

/* The RNG key of this call; every call in a step has its own. */
ses_rng_key ses_tape_rng_key(ses_tape *t);
bool ses_tape_training(const ses_tape *t);
ses_device *ses_tape_device(const ses_tape *t);

/* For benchmarks: the last recorded node, and single runs of its passes. The first backward allocates the
 * gradient of its output, n->out->grad; grad_set of an input means that its gradient is added. */
ses_node *ses_tape_last_node(const ses_tape *t); /* NULL: none, or the tape has failed */
void ses_node_forward(ses_node *n);
void ses_node_backward(ses_node *n);

/* Gradient checkpointing: computes f(ctx, x) and keeps only its result; backward runs f again with the same
 * random numbers, then its backward pass. f may read x, parameters and earlier tensors; ctx must live until
 * the tape is reset. Not reentrant. */
typedef ses_tensor *ses_segment_fn(void *ctx, ses_tensor *x);
ses_tensor *ses_recompute(ses_tape *t, ses_segment_fn *f, void *ctx, ses_tensor *x);
bool ses_tape_recomputing(const ses_tape *t); /* does the tape recompute? */
/* FLOPs of the models that ran since the last reset, as they were added. */
void ses_tape_add_flops(ses_tape *t, double flops);
double ses_tape_flops(const ses_tape *t);

/* Computes f(ctx, x) on a tape that does not record. If the device supports graphs and everything is as in
 * the previous call (x, the tape's memory, and the `size` bytes of key, which must cover all other inputs of
 * f, including the addresses it reads), the work is replayed as one graph and f is not called. */
enum { SES_MAX_GRAPH_KEY = 96 };
ses_tensor *ses_graph_replay(ses_tape *t, ses_segment_fn *f, void *ctx, ses_tensor *x, const void *key,
                             size_t size);

/* Follows the gradients of parameters; used and passed may be NULL, both. used: node `number` uses parameter
 * x, in the forward pass (also inside a recomputed segment, which then counts as used after the segment's own
 * node). passed: the backward pass of all nodes from `number` on is queued; numbers fall from call to call.
 * So the gradient of a parameter is complete once the backward pass has passed the first node that used
 * it. */
typedef struct ses_tape_watch {
    void *ctx;
    void (*used)(void *ctx, const ses_tensor *x, int64_t number);
    void (*passed)(void *ctx, int64_t number);
    /* or NULL: after the forward pass of each node, recorded or not; after the backward pass of a node */
    void (*computed)(void *ctx, const ses_node *n);
    void (*differentiated)(void *ctx, const ses_node *n);
} ses_tape_watch;
/* w: borrowed until the tape is reset, which ends it; NULL: none. */
void ses_tape_set_watch(ses_tape *t, const ses_tape_watch *w);

/* Zeroed host memory until the tape is reset; NULL: the tape has failed. */
void *ses_tape_host_alloc(ses_tape *t, size_t n, size_t size);

/* ses_embed with one id per table that gets no gradient; -1: none. */
ses_tensor *ses_embed_with_pads(ses_tape *t, int n, ses_tensor *const table[], ses_tensor *const id[],
                                const int32_t pad[SES_MAX_TABLES]);

/* ses_linear for an output that only products with int8 weights read: in inference with an int8 weight w, the
 * output may be int8 only. The results of these products have the same bits. */
ses_tensor *ses_linear_i8_out(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                              ses_weight_layout layout);
/* The same for act(a) b with a | b = x w' + bias. */
ses_tensor *ses_linear_gated(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                             ses_weight_layout layout);

/* If w rounds as int8 products do: replaces x and w by their rounded forms; else leaves both. x NULL: only
 * w. */
void ses_round_operands(ses_tape *t, ses_tensor **x, ses_tensor **w, ses_weight_layout layout);

/* [x w0' + b0 | x w1' + b1 | ...] with n int8 weights of the same shape, for inference. heads not 0: only
 * attention reads the output, with ses_attn_i8_supported and at most SES_ATTN_I8_MAX_KEYS tokens per
 * sequence; it may then be int8 only, quantized by head. ses_i8_rows_plane is the part of weight i. */
ses_tensor *ses_linear_fused(ses_tape *t, ses_tensor *x, int n, ses_tensor *const w[], ses_tensor *const b[],
                             ses_weight_layout layout, int64_t heads);
static inline ses_i8_rows ses_i8_rows_plane(const ses_i8_rows *all, int64_t i, int64_t rows, int64_t heads,
                                            int64_t cols)
{
    return (ses_i8_rows){ all->q + i * rows * heads * 4 * ses_quad_count(cols / heads),
                          all->scale + i * rows * heads };
}

/* norm(x w' + b + residual) in one op. ses_linear_norm_supports: does it support w (int8, inference)? */
bool ses_linear_norm_supports(const ses_tape *t, const ses_tensor *w);
ses_tensor *ses_linear_norm(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *b,
                            ses_weight_layout layout, ses_tensor *residual, ses_tensor *gain,
                            ses_tensor *bias, double eps);

/* ses_layer_norm of dropout(x). The caller gives x up: its memory is overwritten by the sum. */
ses_tensor *ses_layer_norm_dropout(ses_tape *t, ses_tensor *x, double rate, ses_tensor *residual,
                                   ses_tensor *gain, ses_tensor *bias, double eps);

/* ses_rms_norm with the gain `gain + plus`. */
ses_tensor *ses_rms_norm_plus(ses_tape *t, ses_tensor *x, ses_tensor *gain, double eps, double plus);

typedef struct ses_rotary_options {
    int64_t cols, dim; /* heads of size dim in the first columns */
    int64_t pairs;     /* the first 2 pairs columns of a head are rotated; 0: all */
    bool adjacent;     /* pairs of adjacent columns, not of two halves */
    bool inplace;      /* the caller gives x up: the result overwrites it */
    ses_rope rope;
    /* SES_ROPE_DYNAMIC, which depends on the length of a sequence; on the host, until the tape is reset */
    const int32_t *cu_seqlens;
    int64_t seqs;
} ses_rotary_options;
/* ses_rotary with scaled frequencies. */
ses_tensor *ses_rotary_scaled(ses_tape *t, ses_tensor *x, ses_tensor *positions, const ses_rotary_options *o);

#endif
