/* What an op is, for those who write one: a file src/op/NAME.c with the shape rule, forward, backward
 * and cases, and a line in include/sesame/ops.def. See docs/ADDING.md. */
#ifndef SES_OP_H
#define SES_OP_H

#include "kernel/kernel.h"
#include "sesame/ops.h"

enum { SES_MAX_IN = 10, SES_MAX_SAVED = 3 };

typedef struct ses_op ses_op;

/* One application of an op, on its tape. */
typedef struct ses_node {
    const ses_op *op;
    ses_tape *tape;
    ses_dtype dtype; /* of its real inputs and outputs, losses apart */
    const ses_kernels *k;
    ses_exec *exec;
    int n_in;
    ses_tensor *in[SES_MAX_IN];     /* an optional input may be NULL */
    ses_tensor *out, *aux;          /* aux: a second output without a gradient, where an op has one */
    ses_real *saved[SES_MAX_SAVED]; /* buffers that backward reads */
    const void *attr;               /* a copy, on the tape */
    struct ses_node *prev;
} ses_node;

/* A test case: what goes in. Every op is run on every case at every kernel level against `ref`, its
 * gradients against finite differences, by tests/test_ops.c and `sesame selftest`. */
typedef struct ses_case {
    int64_t dim[SES_MAX_IN][SES_MAX_DIM]; /* {0} and no ints: the input is absent */
    const int32_t *ints[SES_MAX_IN];      /* contents of an integer input; its dim is its length */
    const void *attr;
    double scale;      /* of the random reals; 0: 1 */
    double tol;        /* allowed error relative to the largest magnitude; 0: 1e-5 */
    unsigned constant; /* bit i: input i is given, nobody asks for its gradient */
} ses_case;

struct ses_op {
    const char *name;
    size_t attr_size;
    unsigned f32_inputs; /* bit i: input i is read in full, so it is a parameter or an input of the tape */
    bool (*infer)(ses_node *n, ses_err *e); /* check inputs, make out and saved buffers */
    void (*forward)(const ses_node *n);
    void (*backward)(const ses_node *n); /* hands each wanted input its gradient by ses_grad */
    const ses_case *cases;
    size_t n_cases;
};

#define SES_OP(name, params) extern const ses_op ses_op_##name;
#include "sesame/ops.def"
#undef SES_OP

const ses_op *const *ses_ops(void); /* all of them, NULL at the end */

/* Apply: makes the node, infers, runs forward, records. NULL once the tape has failed. */
#define SES_IN(...) (ses_tensor *const[]){ __VA_ARGS__ }, (int)SES_LEN(((ses_tensor *const[]){ __VA_ARGS__ }))
ses_node *ses_apply_node(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr);
ses_tensor *ses_apply(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr);

/* For infer. */
bool ses_node_out(ses_node *n, const int64_t dim[SES_MAX_DIM], ses_err *e);
bool ses_node_out_i8(ses_node *n, const int64_t dim[SES_MAX_DIM], ses_err *e); /* 8 bits, nothing else */
bool ses_node_save(ses_node *n, int i, int64_t count, ses_err *e); /* always made, recording or not; wide */
bool ses_node_save_elems(ses_node *n, int i, int64_t count, ses_err *e); /* of the node's dtype */
bool ses_node_needs_backward(const ses_node *n);                         /* will backward run? */
ses_tensor *ses_tensor_wrap(ses_tape *t, void *data, ses_dtype dtype, const int64_t dim[SES_MAX_DIM],
                            ses_err *e);
bool ses_check_input(const ses_node *n, int i, const char *what, ses_err *e); /* present, and real */
bool ses_check_ints(const ses_node *n, int i, const char *what, ses_err *e);  /* present, and integers */
/* Every integer of input i in 0 .. limit - 1 (or SES_IGNORE_INDEX, if allowed). Checked where the host can see
 * them; on other devices whoever uploads them has checked. */
bool ses_check_range(const ses_node *n, int i, int64_t limit, bool ignore, const char *what, ses_err *e);
/* The integers of input i for the host to read: its own, or a copy (the device is waited for); NULL without
 * an input. */
const int32_t *ses_node_ints(const ses_node *n, int i);
#define SES_DIM(...) ((const int64_t[SES_MAX_DIM]){ __VA_ARGS__ })

/* Reals are opaque to ops: a device may hold them narrow. Element i of an array of them, and of a sink. */
void *ses_elem_at(const ses_node *n, const void *array, int64_t i);
ses_dst ses_dst_at(const ses_node *n, ses_dst s, int64_t i);
/* Input i, of those that are read in full; NULL: absent. */
const ses_real *ses_input_f32(const ses_node *n, int i);

/* For backward: where input i's gradient goes; data NULL when nobody wants it. Asking means writing. */
ses_dst ses_grad(const ses_node *n, int i);
/* Input i takes the buffer of the output's gradient for its own, which n->out->grad then is no longer. Not
 * where it has a gradient already, wants none, or is of another size. */
bool ses_grad_donate(const ses_node *n, int i);
ses_dst ses_grad_zeroed(const ses_node *n, int i);   /* for scattered additions */
ses_real *ses_grad_vector(const ses_node *n, int i); /* the same of a vector, wide; NULL when not wanted */

/* Scratch for the time of one forward or backward call; NULL (and a failed tape) when there is none. */
ses_real *ses_scratch(const ses_node *n, int64_t count);
ses_real *ses_scratch_elems(const ses_node *n, int64_t count); /* of the node's dtype */

/* Room for rows in 8 bits: the same, and until the tape is reset or rewound. */
const ses_i8_rows *ses_scratch_i8_rows(const ses_node *n, int64_t rows, int64_t cols);
const ses_i8_rows *ses_tape_i8_rows(ses_tape *t, int64_t rows, int64_t cols);
/* x's rows in 8 bits, if they are there; those of the tensor that was rounded last are. */
const ses_i8_rows *ses_tape_cached_i8(const ses_tape *t, const ses_tensor *x);
void ses_tape_cache_i8(ses_tape *t, const ses_tensor *x, const ses_i8_rows *rounded);

/* Draws of this place in the step. */
ses_rng_key ses_tape_rng_key(ses_tape *t);
bool ses_tape_training(const ses_tape *t);
ses_device *ses_tape_device(const ses_tape *t);

/* For measurements: the newest node recorded, and its passes once more, alone. The gradient of its output is
 * n->out->grad, which the first backward makes; grad_set of an input says whether its gradient is added. */
ses_node *ses_tape_last_node(const ses_tape *t); /* NULL: none, or the tape has failed */
void ses_node_forward(ses_node *n);
void ses_node_backward(ses_node *n);

/* f(ctx, x), of which only the result is kept: backward runs f once more, on the same draws, and goes back
 * through that. What f gives may depend on x, on parameters and on tensors made before; ctx lives on the
 * tape. Not inside another f. */
typedef ses_tensor *ses_segment_fn(void *ctx, ses_tensor *x);
ses_tensor *ses_recompute(ses_tape *t, ses_segment_fn *f, void *ctx, ses_tensor *x);
bool ses_tape_recomputing(const ses_tape *t); /* is it wanted? */

/* f(ctx, x) on a tape that does not record. Where a device can keep what was queued, and all is as it was the
 * last time, it is queued as one from then on, and f is not called. All: x, the tape's memory, and what f
 * depends on beside it, addresses of what it reads included, as `size` bytes of key. */
enum { SES_MAX_GRAPH_KEY = 96 };
ses_tensor *ses_graph_replay(ses_tape *t, ses_segment_fn *f, void *ctx, ses_tensor *x, const void *key,
                             size_t size);

/* Zeroed host memory until the tape is reset; NULL once the tape has failed. */
void *ses_tape_host_alloc(ses_tape *t, size_t n, size_t size);

/* ses_embed with an id for each table that passes no gradient; -1: none. */
ses_tensor *ses_embed_with_pads(ses_tape *t, int n, ses_tensor *const table[], ses_tensor *const id[],
                                const int32_t pad[SES_MAX_TABLES]);

/* ses_linear for products with 8-bit weights alone to read: where w is such a weight, too, and nothing is
 * recorded, the result may be rounded only. The bits of what those products give are the same. */
ses_tensor *ses_linear_i8_out(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                              ses_weight_layout order);
/* The same of act(a) b, where a | b = x w' + bias. */
ses_tensor *ses_linear_gated(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias, ses_act act,
                             ses_weight_layout order);

/* x w' + b of n weights of 8 bits and one shape, side by side, where nothing is recorded. heads not 0: for
 * attention alone to read, narrow and plain (see ses_attn_i8_supported), of at most SES_ATTN_I8_MAX_KEYS tokens a
 * sequence; it may be rounded by heads only. ses_i8_rows_plane is then what became of weight i. */
ses_tensor *ses_linear_fused(ses_tape *t, ses_tensor *x, int n, ses_tensor *const w[], ses_tensor *const b[],
                             ses_weight_layout order, int64_t heads);
static inline ses_i8_rows ses_i8_rows_plane(const ses_i8_rows *all, int64_t i, int64_t rows, int64_t heads,
                                            int64_t cols)
{
    return (ses_i8_rows){ all->q + i * rows * heads * 4 * ses_quad_count(cols / heads),
                          all->scale + i * rows * heads };
}

/* norm(x w' + b + residual) in one, where w is of 8 bits and nothing is recorded: does it take w? */
bool ses_linear_norm_supports(const ses_tape *t, const ses_tensor *w);
ses_tensor *ses_linear_norm(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *b, ses_weight_layout order,
                            ses_tensor *residual, ses_tensor *gain, ses_tensor *bias, double eps);

/* ses_layer_norm of x dropped out at this rate. x is given up, since nothing needs it but what made it: its
 * memory takes the sum. */
ses_tensor *ses_layer_norm_dropout(ses_tape *t, ses_tensor *x, double rate, ses_tensor *residual,
                                   ses_tensor *gain, ses_tensor *bias, double eps);

/* ses_rotary in place: x is given up. */
ses_tensor *ses_rotary_inplace(ses_tape *t, ses_tensor *x, ses_tensor *places, int64_t turned, int64_t dim,
                               double theta);

#endif
