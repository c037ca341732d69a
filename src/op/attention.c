/* softmax(scale q k' + rel_bias + bias) v within each sequence and head; see ses_attn. */
#include "op.h"

#include "tensor/device_impl.h"

#include <math.h>

enum { Q, K, V, CU_Q, CU_K, LEN_K, DIST, BIAS, INPUTS };

typedef struct attr {
    ses_attention_options o;
    bool want_probs, head_major, allow_i8;
    ses_rng_key key;
} attr;

static const attr *attr_of(const ses_node *n) { return n->attr; }

static int64_t head_size(const ses_node *n)
{
    const ses_attention_options *o = &attr_of(n)->o;
    return ses_cols(n->in[Q]) / (o->layout == SES_QKV_SEPARATE ? o->heads : 3 * o->heads);
}

/* Distance in columns between query, key and value when one tensor holds all three. */
static int64_t part_stride(const ses_attn *a, ses_qkv_layout layout)
{
    return layout == SES_QKV_FUSED ? a->heads * a->dim : a->dim;
}

static void set_fused(const ses_node *n, ses_attn *a, ses_qkv_layout layout, const ses_real *x)
{
    int64_t part = part_stride(a, layout);
    a->q = x, a->k = ses_elem_at(n, x, part), a->v = ses_elem_at(n, x, 2 * part);
    a->q_row = a->k_row = a->v_row = 3 * a->heads * a->dim;
    a->q_head = a->k_head = a->v_head = layout == SES_QKV_FUSED ? a->dim : 3 * a->dim;
}

/* Keys and values in tensors of their own, or in one tensor as k | v. */
static void set_keys(const ses_node *n, ses_attn *a)
{
    ses_tensor *const *in = n->in;
    int64_t C = a->heads * a->dim;
    bool head_major = attr_of(n)->head_major;
    a->k = in[K]->f, a->v = in[V] ? in[V]->f : ses_elem_at(n, in[K]->f, C);
    a->k_row = a->v_row = head_major ? a->dim : in[V] ? C : 2 * C;
    a->k_head = a->v_head = head_major ? ses_rows(in[K]) * a->dim : 0;
}

/* Parts of x that exist in int8 only: see ses_linear_fused. */
static void set_i8(const ses_attn *a, const ses_tensor *x, int n, ses_i8_rows *const part[])
{
    for (int i = 0; i < n; i++)
        *part[i] = ses_i8_rows_plane(x->i8_rows, i, ses_rows(x), a->heads, a->heads * a->dim);
}

static const ses_real *reals(const ses_tensor *x) { return x ? x->f : NULL; }
static const int32_t *ints(const ses_tensor *x) { return x ? x->i : NULL; }

static bool on_host(const ses_node *n) { return ses_tape_device(n->tape)->is_host; }

static ses_attn arguments(const ses_node *n)
{
    const ses_attention_options *o = &attr_of(n)->o;
    ses_tensor *const *in = n->in;
    ses_attn a = { .heads = o->heads,
                   .max_seqlen_q = o->max_seqlen_q,
                   .max_seqlen_k = o->max_seqlen_k,
                   .causal = o->causal,
                   .anticausal = o->anticausal,
                   .window = o->window,
                   .equal_keys = o->equal_keys };
    a.seqs = ses_count(in[CU_Q]) - 1;
    a.dim = head_size(n);
    a.scale = (ses_real)(o->scale ? o->scale : 1 / sqrt((double)a.dim));
    a.cu_seqlens_q = in[CU_Q]->i, a.cu_seqlens_k = in[CU_K]->i, a.len_k = ints(in[LEN_K]);
    a.q = in[Q]->f;
    a.q_row = a.k_row = a.v_row = a.out_row = a.heads * a.dim;
    if (in[Q]->i8_rows)
        set_i8(&a, in[Q], 3, (ses_i8_rows *const[]){ &a.q_i8, &a.k_i8, &a.v_i8 });
    else if (o->layout != SES_QKV_SEPARATE)
        set_fused(n, &a, o->layout, in[Q]->f);
    if (in[K] && in[K]->i8_rows)
        set_i8(&a, in[K], 2, (ses_i8_rows *const[]){ &a.k_i8, &a.v_i8 });
    else if (in[K])
        set_keys(n, &a);
    a.rel_bias = reals(in[DIST]), a.bias = reals(in[BIAS]), a.terms = in[BIAS] ? in[BIAS]->terms : NULL;
    a.out = n->out->f, a.lse = n->saved[0], a.probs = n->aux ? n->aux->f : NULL;
    if (a.lse && !on_host(n)) a.lse_lo = a.lse + a.heads * ses_rows(in[Q]);
    a.dropout = o->dropout, a.rng_key = attr_of(n)->key;
    return a;
}

/* Number of scores: [heads, queries, keys] of each sequence. On a GPU the size of the bias gives it; without
 * a bias the offsets are downloaded. */
static int64_t score_count(const ses_node *n)
{
    int64_t total = 0;
    if (n->in[BIAS] && !on_host(n)) return ses_count(n->in[BIAS]);
    const int32_t *cq = ses_node_ints(n, CU_Q), *ck = ses_node_ints(n, CU_K), *len = ses_node_ints(n, LEN_K);
    if (!cq || !ck) return -1;
    for (int64_t s = 0; s + 1 < ses_count(n->in[CU_Q]); s++)
        total += (int64_t)(cq[s + 1] - cq[s]) * (len ? len[s] : ck[s + 1] - ck[s]);
    return total * attr_of(n)->o.heads;
}

static bool fits(const ses_node *n, ses_err *e)
{
    const ses_attention_options *o = &attr_of(n)->o;
    const ses_tensor *const *in = (const ses_tensor *const *)n->in;
    bool separate = o->layout == SES_QKV_SEPARATE;
    int64_t parts = separate ? o->heads : 3 * o->heads;
    if (o->heads < 1 || ses_cols(in[Q]) % parts)
        return ses_fail(e, SES_EARG, "%lld columns are not a multiple of the %lld heads",
                        (long long)ses_cols(in[Q]), (long long)o->heads);
    int64_t side = in[V] ? 1 : 2; /* parts in k: keys, or keys | values */
    if (in[K] &&
        (ses_cols(in[K]) != side * o->heads * head_size(n) || (in[V] && !ses_same_shape(in[K], in[V]))))
        return ses_fail(e, SES_EARG, "shapes of q, k and v do not match");
    if (ses_count(in[CU_Q]) != ses_count(in[CU_K]) ||
        (in[LEN_K] && ses_count(in[LEN_K]) != ses_count(in[CU_Q]) - 1))
        return ses_fail(e, SES_EARG, "offsets of queries and keys must have the same length");
    if (in[DIST] && ses_count(in[DIST]) != (2 * o->max_seqlen_k - 1) * o->heads)
        return ses_fail(e, SES_EARG, "the relative position bias must be [%lld, %lld]",
                        (long long)(2 * o->max_seqlen_k - 1), (long long)o->heads);
    if (in[BIAS] && ses_count(in[BIAS]) != score_count(n))
        return ses_fail(e, SES_EARG, "the bias must have %lld elements", (long long)score_count(n));
    return true;
}

/* Input i holds reals, or int8 rows if int8 is allowed and the tensor holds keys and values, too. */
static bool check_real_or_i8(ses_node *n, int i, bool i8_possible, const char *name, ses_err *e)
{
    bool has_i8 = n->in[i] && n->in[i]->i8_rows && i8_possible && attr_of(n)->allow_i8;
    return has_i8 || ses_check_input(n, i, name, e);
}

static bool infer(ses_node *n, ses_err *e)
{
    const attr *a = n->attr;
    bool separate = a->o.layout == SES_QKV_SEPARATE, own_v = n->in[V] != NULL;
    if (!check_real_or_i8(n, Q, !separate, "q", e) || !ses_check_ints(n, CU_Q, "cu_seqlens_q", e) ||
        !ses_check_ints(n, CU_K, "cu_seqlens_k", e) ||
        (separate && !check_real_or_i8(n, K, !own_v, "k", e)) || (own_v && !ses_check_input(n, V, "v", e)) ||
        !fits(n, e))
        return false;
    int64_t rows = ses_rows(n->in[Q]);
    if (!ses_node_out(n, SES_DIM(rows, a->o.heads * head_size(n)), e)) return false;
    if (a->want_probs) {
        int64_t count = score_count(n);
        ses_real *p = count > 0 && ses_node_save_elems(n, 1, count, e) ? n->saved[1] : NULL;
        n->aux = p ? ses_tensor_wrap(n->tape, p, n->dtype, SES_DIM(count), e) : NULL;
        if (!n->aux) return false;
    }
    return !ses_node_needs_backward(n) || ses_node_save(n, 0, (on_host(n) ? 1 : 2) * a->o.heads * rows, e);
}

static void forward(const ses_node *n)
{
    ses_attn a = arguments(n);
    if (attr_of(n)->allow_i8 && n->k->attention_i8)
        n->k->attention_i8(n->exec, &a, false);
    else
        n->k->attention(n->exec, &a);
}

/* Unused keys (spare capacity of a cache) get a zero gradient. */
static ses_dst key_grad(const ses_node *n, int i)
{
    return n->in[LEN_K] ? ses_grad_zeroed(n, i) : ses_grad(n, i);
}

/* The keys and values inside q get a zero gradient if separate ones are given. */
static ses_dst query_grad(const ses_node *n)
{
    bool part = n->in[K] && attr_of(n)->o.layout != SES_QKV_SEPARATE;
    return part ? ses_grad_zeroed(n, Q) : ses_grad(n, Q);
}

/* For very large scores exp(S - lse) is not a probability in float: recompute P as the forward pass does.
 * Skipped for sequences that are too long, and on a GPU, which stores the low part of lse. */
static void recompute_probs(const ses_node *n, ses_attn *a, ses_attn_grad *g)
{
    static const ses_real large = 500;
    static const int64_t max_scores = (int64_t)1 << 26;
    int64_t rows = a->heads * ses_rows(n->in[Q]), count;
    bool has_large = false;
    if (!on_host(n)) return;
    for (int64_t i = 0; i < rows && !has_large; i++)
        has_large = fabs((double)a->lse[i]) > large && isfinite((double)a->lse[i]);
    if (!has_large || (count = score_count(n)) > max_scores) return;
    if (!a->probs && !(a->probs = ses_scratch(n, count))) return;
    n->k->attention(n->exec, a);
    g->probs = a->probs;
}

static void backward(const ses_node *n)
{
    ses_attn a = arguments(n);
    ses_attn_grad g = { .dout = n->out->grad, .delta = ses_scratch(n, a.heads * ses_rows(n->in[Q])) };
    if (!g.delta) return;
    g.dq = query_grad(n), g.dk = key_grad(n, K), g.dv = key_grad(n, V);
    if (!n->in[K] && g.dq.data) { /* q, k and v share one tensor */
        int64_t part = part_stride(&a, attr_of(n)->o.layout);
        g.dk = ses_dst_at(n, g.dq, part), g.dv = ses_dst_at(n, g.dq, 2 * part);
    }
    /* k and v share one tensor */
    if (n->in[K] && !n->in[V] && g.dk.data) g.dv = ses_dst_at(n, g.dk, a.heads * a.dim);
    g.drel_bias = ses_grad(n, DIST), g.dbias = ses_grad(n, BIAS);
    recompute_probs(n, &a, &g);
    n->k->attention_bwd(n->exec, &a, &g);
}

static const int32_t three[] = { 0, 3, 4, 9 }, other[] = { 0, 2, 7, 11 }, one[] = { 0, 70 };
static const int32_t few[] = { 0, 3, 3, 5 }, many[] = { 0, 129, 131, 140 };
static const int32_t centers[] = { 0, 70, 71, 73 }, contexts[] = { 0, 138, 138, 140 };
static const int32_t spare[] = { 0, 5, 10, 16 }, lens[] = { 4, 3, 6 };
#define OFFSETS(q, k) .ints = { [CU_Q] = q, [CU_K] = k }
static const ses_case cases[] = {
    { .dim = { { 9, 8 }, { 9, 8 }, { 9, 8 }, { 4 }, { 4 } },
      OFFSETS(three, three),
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 5 } } },
    { .dim = { { 9, 15 }, { 11, 15 }, { 11, 15 }, { 4 }, { 4 } },
      OFFSETS(three, other), /* cross attention */
      .attr =
          &(const attr){ .o = { .heads = 3, .max_seqlen_q = 5, .max_seqlen_k = 5 }, .want_probs = true } },
    { .dim = { { 70, 34 }, { 70, 34 }, { 70, 34 }, { 2 }, { 2 } },
      OFFSETS(one, one),
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 70, .max_seqlen_k = 70, .causal = true } } },
    { .dim = { { 9, 3 }, { 9, 3 }, { 9, 3 }, { 4 }, { 4 } },
      OFFSETS(three, three), /* head size 1 */
      .attr = &(const attr){ .o = { .heads = 3, .max_seqlen_q = 5, .max_seqlen_k = 5, .scale = 0.7 },
                             .want_probs = true } },
    { .dim = { { 70, 32 }, { 70, 32 }, { 70, 32 }, { 2 }, { 2 } },
      OFFSETS(one, one),
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 70, .max_seqlen_k = 70, .dropout = 0.3 },
                             .key = { 7, 1, 2 } } },
    { .dim = { { 9, 8 }, { 9, 8 }, { 9, 8 }, { 4 }, { 4 } },
      OFFSETS(three, three),
      .scale = 1e4,
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 5, .scale = 1e-8 } } },
    { .dim = { { 9, 30 }, { 0 }, { 0 }, { 4 }, { 4 } },
      OFFSETS(three, three), /* fused: q | k | v */
      .attr = &(
          const attr){ .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 5, .layout = SES_QKV_FUSED } } },
    { .dim = { { 70, 54 }, { 0 }, { 0 }, { 2 }, { 2 } },
      OFFSETS(one, one), /* interleaved by head */
      .attr = &(const attr){ .o = { .heads = 2,
                                    .max_seqlen_q = 70,
                                    .max_seqlen_k = 70,
                                    .layout = SES_QKV_INTERLEAVED,
                                    .causal = true } } },
    { .dim = { { 70, 16 }, { 70, 16 }, { 70, 16 }, { 2 }, { 2 }, { 0 }, { 139, 2 } },
      OFFSETS(one, one), /* window */
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 70, .max_seqlen_k = 70, .window = 9 },
                             .want_probs = true } },
    { .dim = { { 9, 8 }, { 9, 8 }, { 9, 8 }, { 4 }, { 4 }, { 0 }, { 9, 2 }, { 70 } },
      OFFSETS(three, three),
      .attr =
          &(const attr){
              .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 5, .causal = true, .window = 3 } } },
    { .dim = { { 9, 8 },
               { 16, 8 },
               { 16, 8 },
               { 4 },
               { 4 },
               { 3 },
               { 11, 2 } }, /* a cache with spare capacity */
      .ints = { [CU_Q] = three, [CU_K] = spare, [LEN_K] = lens },
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 6, .causal = true },
                             .want_probs = true } },
    { .dim = { { 9, 15 }, { 11, 15 }, { 11, 15 }, { 4 }, { 4 } },
      OFFSETS(three, other), /* head-major keys and values */
      .attr =
          &(const attr){ .o = { .heads = 3, .max_seqlen_q = 5, .max_seqlen_k = 5 }, .head_major = true } },
    /* queries of an interleaved tensor, separate keys */
    { .dim = { { 9, 24 }, { 16, 8 }, { 16, 8 }, { 4 }, { 4 }, { 3 } },
      .ints = { [CU_Q] = three, [CU_K] = spare, [LEN_K] = lens },
      .attr = &(const attr){ .o = { .heads = 2,
                                    .max_seqlen_q = 5,
                                    .max_seqlen_k = 6,
                                    .causal = true,
                                    .layout = SES_QKV_INTERLEAVED } } },
    { .dim = { { 9, 10 }, { 11, 20 }, { 0 }, { 4 }, { 4 } }, /* k | v in one tensor */
      OFFSETS(three, other),
      .attr =
          &(const attr){ .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 5 }, .want_probs = true } },
    { .dim = { { 5, 128 }, { 140, 256 }, { 0 }, { 4 }, { 4 } }, /* few queries, one empty sequence */
      OFFSETS(few, many),
      .attr = &(const attr){ .o = { .heads = 2, .max_seqlen_q = 3, .max_seqlen_k = 129 } } },
    { .dim = { { 70, 32 }, { 70, 32 }, { 70, 32 }, { 2 }, { 2 } },
      OFFSETS(one, one), /* later tokens only */
      .attr =
          &(const attr){ .o = { .heads = 2, .max_seqlen_q = 70, .max_seqlen_k = 70, .anticausal = true } } },
    { .dim = { { 9, 8 }, { 9, 8 }, { 9, 8 }, { 4 }, { 4 } },
      OFFSETS(three, three),
      .attr =
          &(const attr){
              .o = { .heads = 2, .max_seqlen_q = 5, .max_seqlen_k = 5, .anticausal = true, .dropout = 0.3 },
              .want_probs = true,
              .key = { 7, 1, 2 } } },
    { .dim = { { 73, 32 }, { 140, 64 }, { 0 }, { 4 }, { 4 } }, /* 2 n - 2 keys of n queries: none of 1 */
      OFFSETS(centers, contexts),
      .attr = &(const attr){ .o = { .heads = 2,
                                    .max_seqlen_q = 70,
                                    .max_seqlen_k = 138,
                                    .causal = true,
                                    .equal_keys = true } } },
    { .dim = { { 73, 128 }, { 140, 256 }, { 0 }, { 4 }, { 4 } }, /* the same with a head size of 64 */
      OFFSETS(centers, contexts),
      .attr = &(const attr){ .o = { .heads = 2,
                                    .max_seqlen_q = 70,
                                    .max_seqlen_k = 138,
                                    .causal = true,
                                    .equal_keys = true,
                                    .dropout = 0.3 },
                             .key = { 7, 1, 2 } } },
};
const ses_op ses_op_attention = {
    .name = "attention",
    .attr_size = sizeof(attr),
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = infer,
    .forward = forward,
    .backward = backward,
};

ses_tensor *ses_attention(ses_tape *t, const ses_attention_inputs *in, const ses_attention_options *o,
                          ses_tensor **probs)
{
    attr a = {
        .o = *o, .want_probs = probs != NULL, .head_major = in->head_major, .key = ses_tape_rng_key(t)
    };
    a.allow_i8 = in->allow_i8 && !ses_tape_recording(t) && !ses_tape_training(t);
    if (!ses_tape_training(t)) a.o.dropout = 0;
    ses_tensor *const list[INPUTS] = { in->q,     in->k,        in->v,   in->cu_seqlens_q, in->cu_seqlens_k,
                                       in->len_k, in->rel_bias, in->bias };
    ses_node *n = ses_apply_node(t, &ses_op_attention, list, INPUTS, &a);
    if (probs) *probs = n ? n->aux : NULL;
    return n ? n->out : NULL;
}
