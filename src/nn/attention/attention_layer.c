/* Attention parameters of a layer, and position biases on the scores (T5 buckets, ALiBi). */
#include "nn/nn.h"

#include "kernel/attention_chunking.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>

static ses_dense out_add(ses_store *s, const ses_config *c, int64_t inner, const char *name)
{
    char part[160];
    snprintf(part, sizeof part, "%s.out", name);
    return ses_dense_add_layout(s, c->weights_in_out ? SES_IN_OUT : SES_OUT_IN, c->hidden, inner,
                                c->attention.no_bias ? SES_NO_BIAS : SES_BIAS, part);
}

int64_t ses_attn_head_size(const ses_config *c)
{
    return c->attention.head_size ? c->attention.head_size : c->hidden / c->attention.heads;
}

static void qk_norms_add(ses_attn_params *a, ses_store *s, const ses_config *c, int64_t heads,
                         const char *name)
{
    int64_t dim = ses_attn_head_size(c), kv = c->attention.kv_heads ? c->attention.kv_heads : heads;
    bool all = c->attention.qk_norm == SES_QK_NORM_ALL;
    ses_norm_kind kind = all ? SES_NORM_LAYER : c->norm.kind;
    if (c->attention.qk_norm == SES_QK_NORM_NONE) return;
    a->query_norm = ses_norm_add(s, all ? heads * dim : dim, kind, "%s.query_norm", name);
    a->key_norm = ses_norm_add(s, all ? kv * dim : dim, kind, "%s.key_norm", name);
}

/* Three matrices; fewer heads of keys and values: two as high as they are. */
static void separate_add(ses_attn_params *a, ses_store *s, const ses_config *c, int64_t inner, ses_bias bias,
                         const char *name)
{
    static const char *const of[] = { "query", "key", "value" };
    int64_t kv = c->attention.kv_heads ? c->attention.kv_heads * ses_attn_head_size(c) : inner;
    char names[3][160];
    for (int i = 0; i < 3; i++) snprintf(names[i], sizeof names[i], "%s.%s", name, of[i]);
    if (kv == inner) {
        ses_dense_add_fused(s, (ses_dense *const[]){ &a->query, &a->key, &a->value }, 3, inner, c->hidden,
                            bias, (const char *const[]){ names[0], names[1], names[2] });
        return;
    }
    a->query = ses_dense_add_layout(s, SES_OUT_IN, inner, c->hidden, bias, names[0]);
    ses_dense_add_fused(s, (ses_dense *const[]){ &a->key, &a->value }, 2, kv, c->hidden, bias,
                        (const char *const[]){ names[1], names[2] });
}

ses_attn_params ses_attn_params_add(ses_store *s, const ses_config *c, int64_t heads, const char *name)
{
    int64_t C = c->hidden, inner = c->attention.head_size ? c->attention.head_size * heads : C;
    ses_bias qkv = c->attention.no_bias || c->attention.no_qkv_bias ? SES_NO_BIAS : SES_BIAS;
    ses_weight_layout layout = c->weights_in_out ? SES_IN_OUT : SES_OUT_IN;
    ses_attn_params a = { 0 };
    char part[160];
    snprintf(part, sizeof part, "%s.qkv", name);
    if (c->attention.qkv_layout != SES_QKV_SEPARATE) {
        a.query = ses_dense_add_layout(s, layout, 3 * inner, C, qkv, part);
        if (c->attention.qkv_layout == SES_QKV_FUSED) ses_store_set_parts(s, a.query.w, 3);
    } else {
        separate_add(&a, s, c, inner, qkv, name);
    }
    qk_norms_add(&a, s, c, heads, name);
    a.out = out_add(s, c, inner, name);
    return a;
}

ses_attn_params ses_cross_params_add(ses_store *s, const ses_config *c, int64_t heads, const char *name)
{
    int64_t C = c->hidden, inner = c->attention.head_size ? c->attention.head_size * heads : C;
    ses_bias bias = c->attention.no_bias || c->attention.no_qkv_bias ? SES_NO_BIAS : SES_BIAS;
    ses_weight_layout layout = c->weights_in_out ? SES_IN_OUT : SES_OUT_IN;
    ses_attn_params a = { 0 };
    char part[160];
    if (c->attention.qkv_layout == SES_QKV_SEPARATE) return ses_attn_params_add(s, c, heads, name);
    snprintf(part, sizeof part, "%s.query", name);
    a.query = ses_dense_add_layout(s, layout, inner, C, bias, part);
    snprintf(part, sizeof part, "%s.kv", name);
    a.key = ses_dense_add_layout(s, layout, 2 * inner, C, bias, part);
    if (c->attention.qkv_layout == SES_QKV_FUSED) ses_store_set_parts(s, a.key.w, 2);
    a.out = out_add(s, c, inner, name);
    return a;
}

/* T5's buckets: one per distance up to a point, then logarithmic; distances beyond max_distance share the
 * last. */
static int32_t bucket(const ses_config *c, int64_t distance, bool bidirectional)
{
    int64_t n = c->rel_bias.buckets, from = 0, d = -distance;
    if (bidirectional) {
        n /= 2;
        if (distance > 0) from = n;
        d = distance < 0 ? -distance : distance;
    } else if (d < 0) {
        d = 0;
    }
    int64_t exact = n / 2;
    if (d < exact) return (int32_t)(from + d);
    /* In float, as transformers computes it. */
    float far = logf((float)d / (float)exact) / (float)log((double)c->rel_bias.max_distance / (double)exact);
    int64_t b = exact + (int64_t)(far * (float)(n - exact));
    return (int32_t)(from + (b < n ? b : n - 1));
}

/* ALiBi slope of a head: powers of 2^(-8/n), where n is the largest power of two <= heads; the remaining
 * heads use the interleaved powers of 2^(-4/n). */
static double slope(int64_t head, int64_t heads)
{
    int64_t n = 1;
    while (2 * n <= heads) n *= 2;
    if (head < n) return pow(2, -8.0 / (double)n * (double)(head + 1));
    return pow(2, -4.0 / (double)n * (double)(2 * (head - n) + 1));
}

void ses_attn_begin(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs, ses_stack_ctx *ctx)
{
    int64_t rows = 2 * seqs->max_seqlen - 1, zero = seqs->max_seqlen - 1;
    ctx->kv_rows = ses_attn_kv_rows(p, ctx->seqs->tokens);
    if (p->c->rel_bias.buckets) {
        int32_t *id = ses_tape_host_alloc(p->tape, (size_t)rows, sizeof *id);
        for (int64_t r = 0; id && r < rows; r++) id[r] = bucket(p->c, r - zero, !k->causal);
        ctx->rel_bucket = id ? ses_tape_ints(p->tape, id, rows) : NULL;
        if (k->rel_bias_table) ctx->rel_bias = ses_gather(p->tape, k->rel_bias_table, ctx->rel_bucket);
    } else if (p->c->position.kind == SES_POS_ALIBI) {
        ses_real *x = ses_tape_host_alloc(p->tape, (size_t)(rows * k->heads), sizeof *x);
        for (int64_t i = 0; x && i < rows * k->heads; i++)
            x[i] = (ses_real)(-slope(i % k->heads, k->heads) * fabs((double)(i / k->heads - zero)));
        ctx->rel_bias = x ? ses_tape_input(p->tape, x, SES_DIM(rows, k->heads)) : NULL;
    }
}

/* ---- quantization-aware training ---- */

/* Rounds the columns of each head with a scale of their own. */
static ses_tensor *by_head(ses_tape *t, ses_tensor *x, int64_t dim)
{
    if (!x) return NULL;
    ses_tensor *heads = ses_reshape(t, x, SES_DIM(ses_count(x) / dim, dim));
    return ses_reshape(t, ses_fake_quantize(t, heads, false), x->dim);
}

void ses_round_attention(ses_tape *t, ses_attention_inputs *in, int64_t dim, int64_t max_keys)
{
    if (in->bias || in->rel_bias || in->head_major || dim > SES_ATTN_I8_MAX_DIM ||
        !ses_attn_i8_fits(max_keys))
        return;
    in->q = by_head(t, in->q, dim);
    in->k = by_head(t, in->k, dim);
    in->v = by_head(t, in->v, dim);
}
