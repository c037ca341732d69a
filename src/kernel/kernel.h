/* Kernels: raw pointers and sizes, no shapes, no tensors, nothing that can fail.
 * kernels.def lists them with the variants that exist; ses_kernels is the table of one level.
 * A variant may read and write exactly what `ref` does, for any size, tails included. On the CPU a
 * result never depends on the thread count, nor a row's result on the other rows. */
#ifndef SES_KERNEL_H
#define SES_KERNEL_H

#include "base/rng.h"
#include "base/thread_pool.h"
#include "sesame/tensor.h"

#include <math.h>

/* What a kernel runs on: threads on a CPU, a stream on a GPU. */
typedef struct ses_exec {
    ses_thread_pool *pool;
    struct ses_cuda *cuda; /* cuda_context.h */
} ses_exec;

/* Where a gradient goes. data NULL: not wanted. add: it is added to what stands there. wide: on a device of
 * narrow reals (see kernels.def) this one is not. */
typedef struct ses_dst {
    ses_real *data;
    bool accumulate, is_f32;
} ses_dst;

/* Dropout on the way: element i draws number i of key; what is kept is scaled by 1 / (1 - rate). */
typedef struct ses_dropout_spec {
    double rate;
    ses_rng_key key;
} ses_dropout_spec;

/* C = act(A B + bias), or C += A B. A(i,p) = a[i * a_row + p * a_col], B(p,j) = b[p * b_row + j * b_col];
 * C(i,j) = c[i * ldc + j]. `packed` holds B as gemm_pack laid it out and saves packing it on the way; the
 * bits are the same, or those of B rounded to packed_dtype. */
typedef struct ses_gemm {
    int64_t m, n, k;
    ses_real *c;
    int64_t ldc;
    const ses_real *a;
    int64_t a_row, a_col;
    const ses_real *b;
    int64_t b_row, b_col;
    const void *packed;
    ses_dtype packed_dtype; /* SES_REAL, SES_F16 or SES_BF16; of gemm_i8: SES_I8 */
    const ses_real *bias;   /* [n] or NULL */
    ses_act act;            /* applied after the bias; SES_ACT_NONE with add */
    ses_real *pre_act;      /* NULL, or [m][ldc] for A B + bias before act, which the backward pass needs */
    bool accumulate;        /* C += A B; bias NULL, act none */
    bool is_f32;            /* C is a wide sink's */
} ses_gemm;

enum {
    SES_GEMM_I8_MAX_K = 1 << 16, /* so that no sum overflows */
    SES_GEMM_I8_MAX_N = 1 << 15, /* columns of C that is rounded */
    SES_PACK_STEP = 384,         /* whole panels of every variant: see gemm_pack */
};
enum {
    SES_ATTN_I8_MAX_KEYS = 1024, /* of a sequence, and the size of a head: see attention_i8 */
    SES_ATTN_I8_MAX_DIM = 256,
    SES_ATTN_I8_PROB_SCALE = 16383, /* the multiple that a probability of 1 is */
};
static inline int64_t ses_quad_count(int64_t k)
{
    return (k + 3) / 4;
} /* groups of four, the last filled up */

/* Rows in 8 bits, see quantize_rows: q[rows][4 ses_quad_count(cols)], and the scale of each. */
struct ses_i8_rows {
    uint8_t *q;
    ses_real *scale;
};

/* What becomes of whole rows of a product before they leave the cache. */
typedef struct ses_gemm_epilogue {
    const ses_real *gain, *bias; /* gain not NULL: C = norm(C + res), as the kernel norm computes it */
    const ses_real *residual;    /* [m][n] or NULL */
    double eps;
    bool gated; /* rows are a | b, and what is rounded is gate(a) b, as the kernel glu computes it */
    ses_act gate;
    ses_i8_rows
        i8_out; /* q not NULL: they are rounded as by quantize_rows; without gain C is not written then */
    int64_t group_cols; /* 0, or columns, n being a multiple of them, that are rounded for themselves:
                     to.q[n / part][m][4 ses_quad_count(part)], to.scale[n / part][m] is the largest magnitude */
} ses_gemm_epilogue;

/* The three products of a linear layer, all matrices contiguous: A B', A B and A' B are [m, n]. */
ses_gemm ses_gemm_nt(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k);
ses_gemm ses_gemm_nn(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k);
ses_gemm ses_gemm_tn(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k);

/* Attention over sequences laid end to end. Token t of head h is at x[t * x_row + h * x_head].
 *     out = softmax(scale q k' + dist + bias [where a query sees a key]) v, dropout on the probabilities
 * Sequence s has queries cu_seqlens_q[s] .. cu_seqlens_q[s+1]-1 and keys cu_seqlens_k[s] .. cu_seqlens_k[s+1]-1, or, where len_k is given (a
 * cache with room to grow), len_k[s] keys from cu_seqlens_k[s] on. Key j lies at distance r = j - (i + keys -
 * queries) from query i: in a sequence with more keys than queries the queries are its last tokens. */
typedef struct ses_attn {
    int64_t seqs, heads, dim;
    int64_t max_seqlen_q, max_seqlen_k; /* the longest sequence's lengths */
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    const int32_t *len_k; /* NULL: as cu_seqlens_k says */
    const ses_real *q, *k, *v;
    int64_t q_row, k_row, v_row;
    int64_t q_head, k_head, v_head; /* 0: dim */
    ses_i8_rows q_i8, k_i8,
        v_i8;      /* q8.q, or k8.q and v8.q, not NULL, for attention_i8 alone: in place of q, or
                             k and v, their multiples, as gemm_i8 leaves them for parts of dim columns */
    ses_real *out; /* heads side by side, dim apart */
    int64_t out_row;
    ses_real *lse; /* NULL, or [heads][queries]: log of each row's sum of exponentials */
    ses_real
        *lse_lo; /* NULL, or as lse: what rounding took from a large one; written and read on a GPU only */
    ses_real *probs; /* NULL, or sequence after sequence [heads][len_q][len_k] */
    ses_real scale;
    bool causal;    /* r <= 0 only */
    int64_t window; /* |r| < reach only; 0: any */
    /* NULL, or [2 max_seqlen_k - 1][heads]: added to the score at distance r from row r + max_seqlen_k - 1. */
    const ses_real *rel_bias;
    const ses_real *bias; /* NULL, or laid out as probs: added to the score */
    double dropout;       /* dropout rate, 0: none. What is kept is scaled by 1 / (1 - drop) */
    ses_rng_key rng_key;  /* element (h, query t, key j of its sequence) draws as ses_attn_draw says */
} ses_attn;

typedef struct ses_attn_grad {
    const ses_real *dout; /* rows as out */
    ses_dst dq, dk, dv;   /* rows and heads as q, k, v */
    ses_dst drel_bias;    /* as dist */
    ses_dst dbias;        /* as bias; 0 where a query does not see a key */
    ses_real *delta;      /* scratch [heads][queries] */
    /* P as the forward pass wrote it, which ses_attn.probs points to, too; NULL: exp(S - lse), which loses
     * its digits where scores are in the thousands. Plain loops, on a host only: a GPU has ses_attn.rest. */
    const ses_real *probs;
} ses_attn_grad;

/* Scores by what lies between two tokens: of query i and key j of a sequence, in each head,
 *     y[i][j] = scale x . r[row(i, j)] + mask[i][j]       x: the head's columns of the query, or of the key
 * laid out as ses_attn's bias. Query i stands at place(i) among its sequence's keys: place[i] where given,
 * else queries are the last of their keys. row(i, j) = at[j - place(i) + max_seqlen_k - 1]; without `at` it is 0
 * where the two tokens have one label, else 1. */
typedef struct ses_relative {
    int64_t seqs, heads, dim, max_seqlen_k;
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    const int32_t *q_pos;       /* [queries] or NULL */
    const int32_t *dist_to_row; /* [2 max_seqlen_k - 1] or NULL */
    const int32_t *label;       /* [keys] where `at` is NULL */
    int64_t reversed_from;      /* sequences from this one on count distances the other way */
    const ses_real *x;          /* token t of head h is at x[t * x_row + h * x_head] */
    int64_t x_row, x_head;
    bool x_is_key;     /* x are the keys, else the queries */
    const ses_real *r; /* [rows][heads * dim] */
    int64_t rows;
    const ses_real *mask; /* NULL, or sequence after sequence [len_q][len_k], the same for every head */
    ses_real scale;
} ses_relative;

/* One step of a recurrent layer for n sequences side by side. What is per token has rows of all tokens;
 * `row` says which one each sequence is at, `before` the one it comes from (-1: none). s: the logistic
 * function.
 *   LSTM  [i f g o] = s, s, tanh, s of x + h + bias;  cell = f cell' + i g;  y = o tanh(cell)
 *   GRU   [r z] = s of x + h + bias;  cell = h_n + bias_n;  n = tanh(x_n + r cell);  y = (1 - z) n + z y'
 * gates in this order beside each other, as PyTorch has them. */
typedef struct ses_rnn_step {
    int64_t n, size;
    const int32_t *row, *prev_row;
    const ses_real *x;         /* [tokens][gates * size] */
    const ses_real *h;         /* [n][gates * size]: the state before, times its weights */
    const ses_real *bias;      /* [gates * size] */
    ses_real *gate, *cell, *y; /* [tokens][gates * size], [tokens][size], [tokens][size] */
    ses_real *state;           /* [n][size]: y once more */
} ses_rnn_step;

/* The step backwards. dstate is what later steps want of y, and becomes what this one passes by beside its
 * gates; dcell the same of an LSTM's cell. dx and dh: of what stood before the gates' functions, by x's and
 * by h's part; d: dh of the n rows once more. */
typedef struct ses_rnn_grad {
    const ses_real *dy;       /* [tokens][size] */
    ses_real *dstate, *dcell; /* [n][size] */
    ses_real *dx, *dh;        /* [tokens][gates * size] */
    ses_real *dh_step;        /* [n][gates * size] */
} ses_rnn_grad;

enum { SES_MAX_TABLES = 4 };

/* Numbers by rows in fewer bits, as a file or a rounding left them; data may be unaligned. */
typedef struct ses_quant_rows {
    const void *data;
    ses_dtype dtype;    /* SES_F16, SES_BF16, or SES_I8 */
    const float *scale; /* of SES_I8: the factor of each row */
    int64_t row_stride; /* numbers from one row to the next; 0: as many as a row has */
} ses_quant_rows;

/* Optimizers: `scale` is what each gradient is multiplied by first. */

/* The numbers Adam needs; correction is 1 / (1 - beta^t), or 1 without bias correction. */
typedef struct ses_adamw {
    double lr, beta1, beta2, eps, weight_decay, correction1, correction2, scale;
} ses_adamw;

/* |w| / |u| of sums of squares; 1 where either is 0. */
SES_HD static inline double ses_lamb_trust(double squares_w, double squares_u)
{
    return squares_w > 0 && squares_u > 0 ? sqrt(squares_w) / sqrt(squares_u) : 1;
}

/* A tensor's share of adamw_list. */
typedef struct ses_adamw_tensor {
    ses_real *w;
    const ses_real *g;
    ses_real *m, *v;
    void *w_bf16; /* NULL, or where w's copy goes on a device of narrow reals */
    int64_t n;
    ses_adamw o;
} ses_adamw_tensor;

/* d = g + decay w; buf = momentum buf + keep d; w -= lr (nesterov ? d + momentum buf : buf).
 * buf NULL: w -= lr d. */
typedef struct ses_sgd {
    double lr, momentum, grad_weight, weight_decay, scale;
    bool nesterov;
} ses_sgd;

/* Means of g^2 + eps become beta2 old + (1 - beta2) new. */
typedef struct ses_adafactor {
    double beta2, eps, scale;
} ses_adafactor;

typedef struct ses_kernels {
#define SES_KERNEL(name, avx2, avx512, cuda, result, params) result(*name) params;
#include "kernels.def"
#undef SES_KERNEL
} ses_kernels;

#define SES_KERNEL(name, avx2, avx512, cuda, result, params) \
    result ses_k_##name##_ref params;                        \
    result ses_k_##name##_avx2 params;                       \
    result ses_k_##name##_avx512 params;
#include "kernels.def"
#undef SES_KERNEL

ses_isa ses_isa_best(void);               /* the highest level this CPU and this build have */
const char *ses_isa_name(ses_isa isa);    /* "ref", "avx2", "avx512" */
ses_kernels ses_kernels_cpu(ses_isa cap); /* the best variant of each kernel up to cap */
/* The cuda column, of f32 or of bf16; only where SES_CUDA is defined. */
ses_kernels ses_kernels_cuda(bool narrow);
const char *ses_kernels_missing(const ses_kernels *k); /* the first of the cuda column that is missing */

/* The table of kernels.def for those who iterate it: tests, selftest, doctor. */
typedef struct ses_kernel_info {
    const char *name;
    bool has[SES_ISA_COUNT], has_cuda;
} ses_kernel_info;
const ses_kernel_info *ses_kernel_list(size_t *n);

#endif
