/* Reference attention and its backward pass: one query or key at a time, see ses_attn. The operands of all
 * products are rounded to bf16 if ses_exec.bf16 is set. */
#include "base/half.h"
#include "kernel/attention_chunking.h"
#include "kernel/chunking.h"

#include <math.h>

/* One query of one head and the keys it attends to: the arguments of the formulas below. */
typedef struct row {
    const ses_attn *a;
    ses_attn_seq_head part;
    int64_t i; /* index of the query in its sequence */
    ses_attn_range keys;
    const ses_real *q, *k, *v;
    bool bf16;
} row;

static row row_of(const ses_attn *a, ses_attn_seq_head part, int64_t i, bool bf16)
{
    row r = { .a = a, .part = part, .i = i, .keys = ses_attn_key_range(a, part, i), .bf16 = bf16 };
    r.q = a->q + (part.q0 + i) * a->q_row + part.head * ses_attn_head_stride(a->q_head, a);
    r.k = a->k + part.k0 * a->k_row + part.head * ses_attn_head_stride(a->k_head, a);
    r.v = a->v + part.k0 * a->v_row + part.head * ses_attn_head_stride(a->v_head, a);
    return r;
}

/* v as operand of a product */
static double operand(double v, bool bf16) { return bf16 ? ses_bf16_to_f32(ses_f64_to_bf16(v)) : v; }

static double dot(const ses_real *x, const ses_real *y, int64_t n, bool bf16)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++) sum += operand(x[d], bf16) * operand(y[d], bf16);
    return sum;
}

static double score(const row *r, int64_t j)
{
    const ses_attn *a = r->a;
    double s = a->scale * dot(r->q, r->k + j * a->k_row, a->dim, r->bf16);
    if (a->rel_bias) s += a->rel_bias[ses_attn_rel_row(a, r->part, r->i, j) * a->heads + r->part.head];
    if (a->bias) s += a->bias[r->part.probs + r->i * r->part.len_k + j];
    return s;
}

/* Dropout factor of the probability of query i and key j: 0 if dropped, otherwise 1 / (1 - rate). */
static double keep(const row *r, int64_t j)
{
    const ses_attn *a = r->a;
    if (a->dropout <= 0) return 1;
    uint32_t draw = ses_dropout_draw(a->rng_key, ses_attn_draw_index(a, r->part, r->i, j));
    return draw >= ses_dropout_threshold(a->dropout) ? ses_drop_scale(a->dropout) : 0;
}

static double max_score(const row *r)
{
    double max = -INFINITY;
    for (int64_t j = r->keys.begin; j < r->keys.end; j++) max = fmax(max, score(r, j));
    return max;
}

static double log_sum_exp(const row *r)
{
    double max = max_score(r), sum = 0;
    for (int64_t j = r->keys.begin; j < r->keys.end; j++) sum += exp(score(r, j) - max);
    return r->keys.begin < r->keys.end ? max + log(sum) : -INFINITY;
}

static void forward_row(const row *r, double *out)
{
    const ses_attn *a = r->a;
    /* exponentials relative to the largest score are rounded, not probabilities */
    double lse = log_sum_exp(r), max = r->bf16 ? max_score(r) : lse, whole = exp(lse - max);
    ses_real *probs = a->probs ? a->probs + r->part.probs + r->i * r->part.len_k : NULL;
    for (int64_t d = 0; d < a->dim; d++) out[d] = 0;
    for (int64_t j = 0; probs && j < r->part.len_k; j++) probs[j] = 0;
    for (int64_t j = r->keys.begin; j < r->keys.end; j++) {
        double s = score(r, j), kept = operand(exp(s - max) * keep(r, j), r->bf16) / whole;
        if (probs) probs[j] = (ses_real)exp(s - lse);
        for (int64_t d = 0; d < a->dim; d++) out[d] += kept * operand(r->v[j * a->v_row + d], r->bf16);
    }
    for (int64_t d = 0; d < a->dim; d++)
        a->out[(r->part.q0 + r->i) * a->out_row + r->part.head * a->dim + d] = (ses_real)out[d];
    if (a->lse) a->lse[ses_attn_stat_index(a, r->part, r->i)] = (ses_real)lse;
}

typedef struct forward {
    ses_attn a;
    bool bf16;
} forward;

static void forward_chunk(void *ctx, int64_t index, void *scratch)
{
    const forward *f = ctx;
    ses_attn_seq_head part = ses_attn_seq_head_at(&f->a, index);
    for (int64_t i = 0; i < part.len_q; i++) {
        row r = row_of(&f->a, part, i, f->bf16);
        forward_row(&r, scratch);
    }
}

void ses_k_attention_ref(ses_exec *x, const ses_attn *a)
{
    forward f = { *a, x->bf16 };
    ses_parallel_for(x->pool, a->seqs * a->heads, forward_chunk, &f);
}

/* Backward pass, M the dropout factors:
 *     P = exp(S - lse)   out = (P M) v   delta_i = sum_j P_ij dP_ij = dout_i . out_i
 *     dS_ij = P_ij (M_ij dout_i . v_j - delta_i)
 * If P is given, delta is computed as sum_j P_ij dP_ij with dP rounded to ses_real: a query with a single
 * visible key then has dS = 0 exactly, however large its scores are. */
typedef struct backward {
    ses_attn a;
    ses_attn_grad g;
    bool bf16;
} backward;

typedef struct slope {
    double ds, p; /* dS_ij and P_ij M_ij */
} slope;

static double given_prob(const backward *b, const row *r, int64_t j)
{
    return b->g.probs[r->part.probs + r->i * r->part.len_k + j];
}

static slope slope_of(const backward *b, const row *r, const ses_real *dout, int64_t j)
{
    const ses_attn *a = r->a;
    int64_t stat = ses_attn_stat_index(a, r->part, r->i);
    double keep_ij = keep(r, j), dp = keep_ij * dot(dout, r->v + j * a->v_row, a->dim, r->bf16);
    if (b->g.probs) {
        double p = given_prob(b, r, j);
        return (slope){ p * ((ses_real)dp - b->g.delta[stat]), p * keep_ij };
    }
    double p = exp(score(r, j) - a->lse[stat]);
    return (slope){ p * (dp - b->g.delta[stat]), p * keep_ij };
}

static const ses_real *dout_of(const backward *b, const row *r)
{
    return b->g.dout + (r->part.q0 + r->i) * b->a.out_row + r->part.head * b->a.dim;
}

/* Stores the sums of one token's head columns, starting at element `at`. */
static void store_row(ses_dst s, int64_t at, const double *sum, int64_t dim)
{
    for (int64_t d = 0; s.data && d < dim; d++) ses_dst_put(s, at + d, sum[d]);
}

static double delta_of(const backward *b, const row *r, const ses_real *dout)
{
    const ses_attn *a = r->a;
    int64_t at = (r->part.q0 + r->i) * a->out_row + r->part.head * a->dim;
    double sum = 0;
    if (!b->g.probs) return dot(dout, a->out + at, a->dim, false);
    for (int64_t j = r->keys.begin; j < r->keys.end; j++)
        sum += given_prob(b, r, j) * (ses_real)(keep(r, j) * dot(dout, r->v + j * a->v_row, a->dim, r->bf16));
    return sum;
}

static void query_grad(const backward *b, const row *r, double *dq)
{
    const ses_attn *a = r->a;
    const ses_real *dout = dout_of(b, r);
    b->g.delta[ses_attn_stat_index(a, r->part, r->i)] = (ses_real)delta_of(b, r, dout);
    for (int64_t d = 0; d < a->dim; d++) dq[d] = 0;
    for (int64_t j = 0; j < r->part.len_k; j++) {
        bool visible = j >= r->keys.begin && j < r->keys.end;
        double ds = visible ? slope_of(b, r, dout, j).ds : 0;
        for (int64_t d = 0; visible && d < a->dim; d++)
            dq[d] += a->scale * operand(ds, r->bf16) * operand(r->k[j * a->k_row + d], r->bf16);
        if (b->g.dbias.data) ses_dst_put(b->g.dbias, r->part.probs + r->i * r->part.len_k + j, ds);
    }
    store_row(b->g.dq, (r->part.q0 + r->i) * a->q_row + r->part.head * ses_attn_head_stride(a->q_head, a), dq,
              a->dim);
}

static void key_grad(const backward *b, ses_attn_seq_head part, int64_t j, double *dk, double *dv)
{
    const ses_attn *a = &b->a;
    for (int64_t d = 0; d < a->dim; d++) dk[d] = dv[d] = 0;
    for (int64_t i = 0; i < part.len_q; i++) {
        row r = row_of(a, part, i, b->bf16);
        if (j < r.keys.begin || j >= r.keys.end) continue;
        const ses_real *dout = dout_of(b, &r);
        slope s = slope_of(b, &r, dout, j);
        for (int64_t d = 0; d < a->dim; d++) {
            dk[d] += a->scale * operand(s.ds, r.bf16) * operand(r.q[d], r.bf16);
            dv[d] += operand(s.p, r.bf16) * operand(dout[d], r.bf16);
        }
    }
    store_row(b->g.dk, (part.k0 + j) * a->k_row + part.head * ses_attn_head_stride(a->k_head, a), dk, a->dim);
    store_row(b->g.dv, (part.k0 + j) * a->v_row + part.head * ses_attn_head_stride(a->v_head, a), dv, a->dim);
}

static void backward_chunk(void *ctx, int64_t index, void *scratch)
{
    const backward *b = ctx;
    ses_attn_seq_head part = ses_attn_seq_head_at(&b->a, index);
    double *sum = scratch;
    for (int64_t i = 0; i < part.len_q; i++) {
        row r = row_of(&b->a, part, i, b->bf16);
        query_grad(b, &r, sum);
    }
    for (int64_t j = 0; j < part.len_k; j++) key_grad(b, part, j, sum, sum + b->a.dim);
}

/* drel_bias of one head. The table is shared by all sequences, so one chunk sums over them in order. */
static void rel_bias_grad(void *ctx, int64_t head, void *scratch)
{
    const backward *b = ctx;
    const ses_attn *a = &b->a;
    double *sum = scratch;
    int64_t rows = 2 * a->max_seqlen_k - 1;
    for (int64_t r = 0; r < rows; r++) sum[r] = 0;
    for (int64_t s = 0; s < a->seqs; s++) {
        ses_attn_seq_head part = ses_attn_seq_head_at(a, s * a->heads + head);
        for (int64_t i = 0; i < part.len_q; i++) {
            row r = row_of(a, part, i, b->bf16);
            for (int64_t j = r.keys.begin; j < r.keys.end; j++)
                sum[ses_attn_rel_row(a, part, i, j)] += slope_of(b, &r, dout_of(b, &r), j).ds;
        }
    }
    for (int64_t r = 0; r < rows; r++) ses_dst_put(b->g.drel_bias, r * a->heads + head, sum[r]);
}

void ses_k_attention_bwd_ref(ses_exec *x, const ses_attn *a, const ses_attn_grad *g)
{
    backward b = { *a, *g, x->bf16 };
    ses_parallel_for(x->pool, a->seqs * a->heads, backward_chunk, &b);
    if (g->drel_bias.data) ses_parallel_for(x->pool, a->heads, rel_bias_grad, &b);
}
