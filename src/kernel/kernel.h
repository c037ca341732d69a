/* Kernels: functions over raw pointers and sizes. They have no tensors, allocate nothing and cannot fail.
 *
 * kernels.def lists and specifies every kernel. ses_kernels is the table of one instruction set level or of
 * CUDA; it is a plain value. Every variant reads and writes exactly the elements that `ref` does, for any
 * size. On a CPU a result does not depend on the number of threads, nor a row's result on the other rows.
 *
 * The argument structs borrow all pointers for the duration of the call; on a GPU, until the queued work is
 * done. Kernels may be called from several threads; a ses_exec runs one parallel kernel at a time. */
#ifndef SES_KERNEL_H
#define SES_KERNEL_H

#include "base/rng.h"
#include "base/thread_pool.h"
#include "blocks.h"
#include "sesame/base.h"
#include "sesame/unstable/tensor.h"

#include <math.h>

/* Execution resources of a kernel: threads on a CPU, a stream on a GPU. */
typedef struct ses_exec {
    ses_thread_pool *pool;
    struct ses_cuda *cuda; /* cuda_context.h */
    /* CPU: gemm, attention and attention_bwd round the operands of their products to bf16 (to nearest even)
     * and sum in f32. Only ref and the levels with bf16 products honour it, see ses_isa_has_bf16. */
    bool bf16;
    ses_blocks blocks; /* block sizes of CPU kernels */
    bool dense_i8;     /* int8 weights are never packed in the sparse form, for comparisons */
} ses_exec;

/* Destination of an output or gradient. data NULL: not computed. accumulate: add to the present values.
 * is_f32: the destination is f32 although the device stores ses_real as bf16 (see kernels.def). */
typedef struct ses_dst {
    ses_real *data;
    bool accumulate, is_f32;
} ses_dst;

/* Dropout: element i is dropped depending on random number i of key; kept ones are scaled by 1 / (1 -
 * rate). */
typedef struct ses_dropout_spec {
    double rate;
    ses_rng_key key;
} ses_dropout_spec;

/* Rotary position embedding: heads of `dim` columns in the first `cols` columns. Of each head the first
 * 2 pairs columns are rotated. */
enum { SES_ROTARY_MAX_PAIRS = 256 };
typedef struct ses_rotary_spec {
    int64_t cols, dim, pairs;
    bool adjacent;      /* pair d is the columns 2 d and 2 d + 1, else d and d + pairs */
    const double *rate; /* host, [pairs]: angle of one position */
    double factor;      /* cos and sin are multiplied by it */
    double sign;        /* -1: the inverse rotation */
} ses_rotary_spec;

/* C = act(A B + bias), or C += A B, with A [m, k], B [k, n], C [m, n]:
 *     A(i,p) = a[i * a_row + p * a_col]   B(p,j) = b[p * b_row + j * b_col]   C(i,j) = c[i * ldc + j]
 * packed: B from gemm_pack, or NULL. It saves packing B on the fly. The result has the same bits; if
 * packed_dtype is not SES_REAL, the bits of a product with B rounded to it.
 * ses_exec.bf16: A and B are rounded to bf16, unless B is packed in another type, and GELU may have an error
 * of 2e-4 if pre_act is NULL. B must be packed and used with the same ses_exec.bf16. */
typedef struct ses_gemm {
    int64_t m, n, k;
    ses_real *c;
    int64_t ldc;
    const ses_real *a;
    int64_t a_row, a_col;
    const ses_real *b;
    int64_t b_row, b_col;
    const void *packed;
    ses_dtype packed_dtype; /* SES_REAL, SES_F16 or SES_BF16; SES_I8 for gemm_i8 */
    const ses_real *bias;   /* [n] or NULL */
    ses_act act;            /* applied after the bias; SES_ACT_NONE if accumulate */
    /* NULL, or [m][ldc]: receives A B + bias before act, for the backward pass */
    ses_real *pre_act;
    bool accumulate; /* C += A B; needs bias NULL and SES_ACT_NONE */
    bool is_f32;     /* C is f32, see ses_dst */
} ses_gemm;

/* Products of one shape: C_i = alpha A_i B_i + beta D_i for i < count. g is the first one, without packed,
 * bias, act, pre_act and accumulate; matrix i lies i times a step behind the first. D has the strides of
 * C. */
typedef struct ses_gemm_batch {
    ses_gemm g;
    int64_t count, a_step, b_step, c_step;
    const ses_real *d; /* NULL: beta is 0 */
    double alpha, beta;
} ses_gemm_batch;

enum {
    SES_GEMM_I8_MAX_K = 1 << 16, /* larger k could overflow int32 sums */
    SES_GEMM_I8_MAX_N = 1 << 15, /* columns of C with an epilogue */
    SES_PACK_STEP = 384,         /* a multiple of the panel width of every variant, see gemm_pack */
};
/* Zero point of quantized rows. Dot products of bytes are unsigned by signed on x86, signed on aarch64. */
#if defined __aarch64__
enum { SES_I8_ZERO = 0 };
#else
enum { SES_I8_ZERO = 128 };
#endif
enum {
    SES_ATTN_I8_MAX_KEYS = 1024, /* limits of attention_i8: keys per sequence, head size */
    SES_ATTN_I8_MAX_DIM = 256,
    SES_ATTN_I8_PROB_SCALE = 16383, /* integer that represents a probability of 1 */
};
static inline int64_t ses_quad_count(int64_t k) { return (k + 3) / 4; } /* groups of four, rounded up */

/* int8 rows from quantize_rows: q[rows][4 ses_quad_count(cols)] with zero point SES_I8_ZERO, scale[rows]. */
struct ses_i8_rows {
    uint8_t *q;
    ses_real *scale;
};

/* B of gemm_i8 before it is packed: B(p, j) = b[p * b_row + j * b_col], to be quantized, or such int8 numbers
 * with one scale per column. */
typedef struct ses_i8_weight {
    const ses_real *b;
    const int8_t *bytes; /* NULL: use b */
    const float *scale;  /* [n], of bytes */
    int64_t b_row, b_col, n, k;
} ses_i8_weight;

/* Row-wise epilogue of gemm_i8, applied while the rows are cached: layer norm or gated unit, then
 * quantization. */
typedef struct ses_gemm_epilogue {
    const ses_real *gain, *bias; /* gain not NULL: C = norm(C + residual), see the kernel norm */
    const ses_real *residual;    /* [m][n] or NULL */
    double eps;
    bool gated; /* rows are a | b; gate(a) b is quantized, see the kernel glu */
    ses_act gate;
    /* q not NULL: receives the rows as by quantize_rows; C is then stored only if gain is given. */
    ses_i8_rows i8_out;
    /* 0, or a divisor of n: each group of columns is quantized with its own scale:
     *     i8_out.q[n / group_cols][m][4 ses_quad_count(group_cols)]
     *     i8_out.scale[n / group_cols][m] = max |v| */
    int64_t group_cols;
} ses_gemm_epilogue;

/* The three products of a linear layer on contiguous matrices; the result is [m, n].
 *     _nt: C = A B', A [m, k], B [n, k]
 *     _nn: C = A B,  A [m, k], B [k, n]
 *     _tn: C = A' B, A [k, m], B [k, n] */
ses_gemm ses_gemm_nt(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k);
ses_gemm ses_gemm_nn(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k);
ses_gemm ses_gemm_tn(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k);

/* gemm_batch on a CPU: one product after another. */
void ses_gemm_one_by_one(ses_exec *x, const ses_gemm_batch *b, void (*gemm)(ses_exec *x, const ses_gemm *g));

/* Scores by relative position or by segment. For query i and key j of a sequence, in each head:
 *     y[i][j] = scale x . r[row(i, j)] + mask[i][j]      x: the head's columns of the query, or of the key
 * in the layout of ses_attn.bias. pos(i), the position of query i among the keys, is q_pos[i]; q_pos NULL:
 * the queries are the last tokens. row(i, j) = dist_to_row[j - pos(i) + max_seqlen_k - 1]; dist_to_row NULL:
 * 0 if both tokens have the same segment label, otherwise 1. */
typedef struct ses_relative {
    int64_t seqs, heads, dim, max_seqlen_k;
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    const int32_t *q_pos;       /* [queries] or NULL */
    const int32_t *dist_to_row; /* [2 max_seqlen_k - 1] or NULL */
    const int32_t *label;       /* [keys]: segment of each key, if dist_to_row is NULL */
    int64_t reversed_from;      /* sequences from this one on have negated distances */
    const ses_real *x;          /* row t of head h is at x[t * x_row + h * x_head] */
    int64_t x_row, x_head;
    bool x_is_key;     /* x are the keys; otherwise the queries */
    const ses_real *r; /* [rows][heads * dim] */
    int64_t rows;
    /* NULL, or for one sequence after another [len_q][len_k], shared by all heads */
    const ses_real *mask;
    ses_real scale;
} ses_relative;

/* Scores that exist as their terms only: attention adds them up. */
struct ses_score_terms {
    ses_relative term[2]; /* the mask is the first one's */
    int n;
    int64_t pairs; /* sum over sequences of queries times keys */
};

/* Attention over unpadded sequences. Row t of head h is at x[t * x_row + h * x_head], for x in q, k, v.
 *     out = dropout(softmax(scale q k' + rel_bias + bias, masked)) v
 * Sequence s has the queries cu_seqlens_q[s] .. cu_seqlens_q[s+1]-1 and the keys cu_seqlens_k[s] ..
 * cu_seqlens_k[s+1]-1. If len_k is given (a KV cache with free capacity), it has len_k[s] keys from
 * cu_seqlens_k[s] on. If a sequence has more keys than queries, the queries are its last tokens: the distance
 * of key j from query i is r = j - (i + keys - queries). */
typedef struct ses_attn {
    int64_t seqs, heads, dim;
    int64_t max_seqlen_q, max_seqlen_k; /* lengths of the longest sequence */
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    const int32_t *len_k; /* [seqs], or NULL: lengths from cu_seqlens_k */
    const ses_real *q, *k, *v;
    int64_t q_row, k_row, v_row;
    int64_t q_head, k_head, v_head; /* 0: dim */
    /* attention_i8 only. q not NULL: used instead of q, or of k and v, as gemm_i8 writes them with groups of
     * dim columns */
    ses_i8_rows q_i8, k_i8, v_i8;
    ses_real *out; /* heads are dim apart */
    int64_t out_row;
    ses_real *lse;    /* NULL, or [heads][queries]: log-sum-exp of each row's scores */
    ses_real *lse_lo; /* NULL, or like lse: rounding error of a large lse; used on GPUs only */
    /* NULL, or for one sequence after another [heads][len_q][len_k]: receives the probabilities */
    ses_real *probs;
    ses_real scale;
    bool causal;     /* mask: r <= 0 */
    bool anticausal; /* mask: r >= 0 */
    int64_t window;  /* mask: |r| < window; 0: no window */
    bool equal_keys; /* the window of each sequence is keys - queries + 1, instead */
    /* NULL, or [2 max_seqlen_k - 1][heads]: row r + max_seqlen_k - 1 is added to the scores at distance r. */
    const ses_real *rel_bias;
    const ses_real *bias;         /* NULL, or in the layout of probs: added to the scores */
    const ses_score_terms *terms; /* NULL, or the terms of bias, which is NULL; bf16 on GPUs only */
    double dropout;               /* dropout rate of the probabilities; 0: no dropout */
    ses_rng_key rng_key;          /* random numbers of dropout, indexed by ses_attn_draw_index */
} ses_attn;

typedef struct ses_attn_grad {
    const ses_real *dout; /* strides of out */
    ses_dst dq, dk, dv;   /* strides of q, k, v */
    ses_dst drel_bias;    /* shape of rel_bias */
    ses_dst dbias;        /* layout of bias; 0 for masked keys */
    ses_real *delta;      /* scratch [heads][queries] */
    /* Probabilities of the forward pass, also in ses_attn.probs. NULL: P = exp(S - lse), which loses
     * precision if scores are in the thousands. Reference kernel only; GPUs use ses_attn.lse_lo. */
    const ses_real *probs;
} ses_attn_grad;

/* A recurrent layer over ragged sequences. s is the sigmoid; gates are in PyTorch's order; h' and cell' are
 * the values of the previous time step, or h0 and c0. G is 4 size for an LSTM, 3 size for a GRU.
 *     LSTM  [i f g o] = s, s, tanh, s of x + w h' + bias;  cell = clip(f cell' + i g);  hidden = o tanh(cell)
 *           y = hidden, or clip(proj hidden)
 *     GRU   [r z] = s of x + w h' + bias;  cell = (w h' + bias)_n;  n = tanh(x_n + r cell);
 *           y = (1 - z) n + z h'
 * Sequences are sorted by length, the longest first: at step t the first active[t] of them run. The i-th is
 * sequence order[i] of h0 and c0, and its row at step t is first[i] + stride t. */
typedef struct ses_recurrence {
    ses_rnn_type type;
    int64_t seqs, tokens, steps;
    int64_t size, out;                     /* units; columns of the output, `size` without proj */
    double cell_clip, proj_clip;           /* clip(v) = min(max(v, -c), c); 0: not clipped */
    const int32_t *active, *order, *first; /* on the host: [steps], [seqs], [seqs] */
    const int32_t *device_schedule;        /* active, order, first on the device */
    int64_t stride;                        /* 1, or -1: from the end to the start */
    const ses_real *x;                     /* [tokens][G] */
    const ses_real *w, *bias, *proj;       /* [G][out], [G] or NULL, [out][size] or NULL */
    const void *packed_w, *packed_proj;    /* from gemm_pack: w', proj' (rnn), w, proj (rnn_bwd); or NULL */
    const ses_real *h0, *c0;               /* [seqs][out], [seqs][size]; NULL: zeros */
    ses_real *y;                           /* row t is at y + t y_row; y_row > out: cell states follow */
    int64_t y_row;
    /* for the backward pass: activated gates [tokens][G] (NULL: not kept), cell [tokens][size] (always f32),
     * hidden [tokens][size] (NULL without proj) */
    ses_real *gate, *cell, *hidden;
    ses_real *work; /* rnn_work_size numbers */
} ses_recurrence;

/* Backward pass. Gradients do not pass clipped values. */
typedef struct ses_rnn_grad {
    const ses_real *dy;   /* rows y_row apart, the cell states' gradients behind the outputs' */
    ses_real *dx;         /* [tokens][G]: of x */
    ses_real *dh;         /* [tokens][G]: of w h' + bias; for an LSTM the same memory as dx */
    ses_real *dprojected; /* [tokens][out]: of proj hidden; NULL without proj */
    ses_dst dh0, dc0;     /* gradients of the initial states */
} ses_rnn_grad;

/* Scores of additive attention (Bahdanau et al. 2015): v . tanh(q_i + k_j) for query i and key j of each
 * sequence, [queries, keys] sequence after sequence. Keys after the last offset are not read. */
typedef struct ses_additive {
    int64_t seqs, cols, queries, keys;
    const int32_t *cu_seqlens_q, *cu_seqlens_k;
    const ses_real *q, *k; /* [queries, cols], [keys, cols] */
    const ses_real *v;     /* [cols], always f32 */
} ses_additive;

/* A linear-chain CRF over the labeled rows of each sequence; rows with an ignored label are skipped. The
 * score of labels y is start[y_1] + sum_t x[t][y_t] + sum_t trans[y_t-1][y_t] + end[y_n], its negative log
 * likelihood the log-sum-exp over all label sequences minus that score. */
typedef struct ses_crf_chain {
    int64_t seqs, labels;
    const int32_t *cu_seqlens, *label; /* [seqs + 1], [tokens] */
    const ses_real *x;                 /* [tokens][labels] */
    const ses_real *trans;             /* [labels][labels]: from, to; with start and end always f32 */
    const ses_real *start, *end;       /* [labels] */
    /* [tokens][labels], always f32: log probability of each label given the rows up to this one */
    ses_real *alpha;
    /* loss[0] = mean over sequences with labels, loss[1] = 1 / their number, or both 0; loss[2 + s] = loss of
     * sequence s */
    ses_real *loss;
} ses_crf_chain;

enum { SES_CRF_CHUNKS = 16 }; /* maximum number of partial sums over sequences */

/* Doubles in ses_crf_grad.work. */
static inline int64_t ses_crf_work(int64_t labels) { return SES_CRF_CHUNKS * labels * (labels + 4); }

typedef struct ses_crf_grad {
    const ses_real *dloss;
    ses_dst dx, dtrans, dstart, dend;
    double *work; /* [ses_crf_work(labels)] */
} ses_crf_grad;

enum { SES_MAX_TABLES = 4 };

/* A matrix in 16 or 8 bits per number, from a file or quantized in memory. data may be unaligned. */
typedef struct ses_quant_rows {
    const void *data;
    ses_dtype dtype;    /* SES_F16, SES_BF16 or SES_I8 */
    const float *scale; /* SES_I8: factor of each row */
    int64_t row_stride; /* row stride in numbers; 0: contiguous */
} ses_quant_rows;

/* Optimizer hyperparameters. `scale` multiplies each gradient first (gradient clipping, loss scaling). */

/* Adam. correction1 and correction2 are 1 / (1 - beta^t), or 1 without bias correction. */
typedef struct ses_adamw {
    double lr, beta1, beta2, eps, weight_decay, correction1, correction2, scale;
} ses_adamw;

/* LAMB's trust ratio |w| / |u| from sums of squares; 1 if either is 0. */
SES_HD static inline double ses_lamb_trust(double squares_w, double squares_u)
{
    return squares_w > 0 && squares_u > 0 ? sqrt(squares_w) / sqrt(squares_u) : 1;
}

/* A matrix [rows, cols] divided into blocks of block_rows x block_cols elements, numbered row by row. Blocks
 * at the right and lower border may be smaller. ld: elements from one row to the next. */
typedef struct ses_block_grid {
    int64_t rows, cols, ld, block_rows, block_cols;
} ses_block_grid;

SES_HD static inline int64_t ses_block_grid_rows(const ses_block_grid *g)
{
    return (g->rows + g->block_rows - 1) / g->block_rows;
}
SES_HD static inline int64_t ses_block_grid_cols(const ses_block_grid *g)
{
    return (g->cols + g->block_cols - 1) / g->block_cols;
}

/* Muon (Jordan et al. 2024), without its matrix products. */
typedef struct ses_muon {
    int64_t rows, cols;
    double momentum, eps, scale;
    bool nesterov;
} ses_muon;

/* One matrix of it: a parameter, or a part of one. Rows are `ld` elements apart. */
typedef struct ses_muon_matrix {
    ses_real *w;
    const ses_real *g;
    ses_real *m;
    void *w_bf16; /* NULL, or the bf16 copy of w to update */
    int64_t ld;
    double keep, rate;
} ses_muon_matrix;

/* One tensor of adamw_list. */
typedef struct ses_adamw_tensor {
    ses_real *w;
    const ses_real *g;
    ses_real *m, *v;
    void *w_bf16; /* NULL, or the bf16 copy of w to update */
    int64_t n;
    ses_adamw o;
} ses_adamw_tensor;

/* SGD as in PyTorch: d = g + weight_decay w; buf = momentum buf + grad_weight d, with grad_weight = 1 -
 * dampening; w -= lr (nesterov ? d + momentum buf : buf). buf NULL: w -= lr d. */
typedef struct ses_sgd {
    double lr, momentum, grad_weight, weight_decay, scale;
    bool nesterov;
} ses_sgd;

/* Batch norm. train: with the statistics of the rows, which move the running ones by `momentum`. */
typedef struct ses_batch_norm_spec {
    double eps, momentum;
    bool train;
} ses_batch_norm_spec;

/* Adagrad: d = scale g + weight_decay w; sum += d^2; w -= lr d / (sqrt(sum + accumulator) + eps). */
typedef struct ses_adagrad {
    double lr, eps, accumulator, weight_decay, scale;
} ses_adagrad;

/* Adafactor: running mean = beta2 mean + (1 - beta2) (g^2 + eps). */
typedef struct ses_adafactor {
    double beta2, eps, scale;
} ses_adafactor;

enum { SES_WORD_STEP_MAX = 64 }; /* rows of word_step on each side; outputs of bag_step */

/* A step of skip-gram or CBOW: f(i,j) = x[i] . y[j], g(i,j) = rate (label[j] - sigmoid(f(i,j))),
 *     x[i] += sum over j of g(i,j) y[j]        y[j] += sum over i of g(i,j) x[i]
 * from the rows before the step. The loss of a pair is -log sigmoid(f) for label 1, -log sigmoid(-f) for
 * label 0. An input row may occur several times: all its gradients are added. Output rows are distinct. */
typedef struct ses_word_step {
    float *const *x;    /* [n] rows */
    float *const *y;    /* [m] rows */
    const float *label; /* [m] */
    int64_t n, m, cols;
    float rate;
} ses_word_step;

/* A cell of an alias table (Vose 1991): a draw that falls into cell i takes i below the threshold, else the
 * alias. */
typedef struct ses_sampling_cell {
    uint32_t threshold;
    int32_t alias;
} ses_sampling_cell;

/* Rounds of skip-gram or CBOW. The text is divided into equal parts; a round trains the next part_words words
 * of each. All its steps (ses_word_step) read the weights before the round, then each row receives the sum of
 * its gradients, scaled by ses_word_scale. word_draws.h has the words, contexts and outputs of the steps. */
typedef struct ses_word_rounds {
    const int32_t *id; /* [n]: words of the text; negative: end of a sentence */
    int64_t n, parts, part_words;
    int64_t words;        /* size of the vocabulary */
    const uint32_t *keep; /* [words]: subsampling */
    /* Outputs: negative samples, or, if path is given, the path of the word in a tree: path[path_start[word]]
     * .. path[path_start[word + 1] - 1] are 2 node + label. */
    const ses_sampling_cell *negatives; /* [words] */
    const int64_t *path_start;
    const int32_t *path;
    int32_t window, outputs;         /* outputs: most of a step, at most SES_WORD_STEP_MAX */
    bool bags;                       /* the input is the mean of the context words (CBOW) */
    uint64_t keep_start, step_start; /* random numbers of the pass */
    float *weight;                   /* [rows][cols]; inputs are the first in_rows */
    int64_t in_rows, rows, cols;     /* cols: a multiple of 4 */
    float in_step, out_step;         /* size of a use as input, as output, at the learning rate 1 */
    double *sums;                    /* [2]: sum of the losses and number of pairs are added */
    int64_t first, count;            /* rounds of the pass to train */
    const float *rate;               /* [count], in host memory on every device */
    void *scratch;                   /* word_rounds_size bytes */
} ses_word_rounds;

/* Points of the plane. */
typedef struct ses_points {
    int64_t n;
    const double *x, *y;
} ses_points;

/* Rows of a sparse matrix: row i has the columns col[row[i]] .. col[row[i + 1] - 1], in ascending order. */
typedef struct ses_sparse {
    const int64_t *row;
    const int32_t *col;
    const float *value;
} ses_sparse;

enum { SES_FFT_LANES = 16, SES_FFT_STAGES = 32 };

/* Factors of a transform of length n: 2, 3, 4 or 5 each. turn: for each stage [m][radix - 1][2], the cosines
 * and sines of -2 pi p k / (m radix), m = n over all radices up to this one. */
typedef struct ses_fft_plan {
    int64_t n;
    int stages, radix[SES_FFT_STAGES];
    const float *turn;
} ses_fft_plan;

/* Parameters of GloVe: rows of word and context vectors, each followed by its sums of squared steps. A column
 * with rate 0 is constant: with a constant 1 in the other side's row a column holds a bias. */
typedef struct ses_glove {
    ses_real *word, *context; /* [rows][2][width] */
    int64_t width;
    const ses_real *word_rate, *context_rate; /* [width]: learning rates of the columns */
    ses_real limit;                           /* largest component of a gradient */
} ses_glove;

typedef struct ses_glove_pair {
    int32_t word, context; /* rows */
    float log_count, weight;
} ses_glove_pair;

typedef struct ses_kernels {
#define SES_KERNEL(name, simd, matrix, cuda, result, params) result(*name) params;
#include "kernels.def"
#undef SES_KERNEL
} ses_kernels;

#define SES_KERNEL(name, simd, matrix, cuda, result, params) \
    result ses_k_##name##_ref params;                        \
    result ses_k_##name##_avx2 params;                       \
    result ses_k_##name##_avx512 params;                     \
    result ses_k_##name##_avx512bf16 params;                 \
    result ses_k_##name##_amx params;                        \
    result ses_k_##name##_neon params;                       \
    result ses_k_##name##_neonbf16 params;                   \
    result ses_k_##name##_plain params; /* plain C vectors and tiles, in tests only */
#include "kernels.def"
#undef SES_KERNEL

/* Names of the levels of this architecture, as choices of an option. */
#if defined __aarch64__
#define SES_ISA_CHOICES "ref|neon|neonbf16"
#else
#define SES_ISA_CHOICES "ref|avx2|avx512|avx512bf16|amx"
#endif

/* Highest level that the CPU, the operating system and this build support. */
ses_isa ses_isa_best(void);
ses_isa ses_isa_limit(ses_isa cap); /* the same, but at most `cap`; SES_ISA_BEST: no limit */
bool ses_isa_built(ses_isa isa);    /* this build has the kernels of the level */
bool ses_isa_left_out(ses_isa isa); /* the machine has the level, but this build has no kernels of it */
bool ses_isa_has_bf16(ses_isa isa); /* kernels of this level honour ses_exec.bf16 */
/* Whether this process may use AMX. */
typedef enum ses_amx_state {
    SES_AMX_ABSENT,    /* the processor has no AMX with int8 and bf16 products */
    SES_AMX_NOT_SAVED, /* the operating system does not save tiles when it switches threads */
    SES_AMX_DENIED,    /* it does, but does not let this process use them */
    SES_AMX_READY,
} ses_amx_state;
ses_amx_state ses_amx_detect(int *error); /* error: errno of a denial, or 0 */
bool ses_isa_has_tiles(ses_isa isa);
/* The level whose bits a level has without ses_exec.bf16: its vector level. */
ses_isa ses_isa_vectors(ses_isa isa);
ses_kernels ses_kernels_cpu(ses_isa cap); /* best variant of each kernel up to level cap */
/* CUDA kernels for f32 or bf16 activations. Defined in the CUDA module only (tensor/cuda_module.h). */
ses_kernels ses_kernels_cuda(bool is_bf16);
const char *ses_kernels_missing(const ses_kernels *k); /* first missing CUDA kernel; NULL: none */

/* The rows of kernels.def, for code that iterates over all kernels: tests, selftest, doctor. */
typedef struct ses_kernel_info {
    const char *name;
    bool has_cuda;
} ses_kernel_info;
const ses_kernel_info *ses_kernel_list(size_t *n);
bool ses_kernel_has(size_t i, ses_isa isa); /* kernel i of the list has a variant of its own at this level */

#endif
