/* Queries, keys and values of attention: projections, norms of heads, rotary positions, grouped heads. */
#include "nn/nn.h"

#include "op/op.h"

/* Columns of x as rows of one head. */
static ses_tensor *by_head(ses_tape *t, ses_tensor *x, int64_t dim)
{
    return x ? ses_reshape(t, x, SES_DIM(ses_count(x) / dim, dim)) : NULL;
}

static ses_tensor *norm_run(const ses_config *c, ses_tape *t, ses_norm n, ses_tensor *x)
{
    if (!n.gain || !x) return x;
    if (c->attention.qk_norm == SES_QK_NORM_ALL) return ses_norm_run(t, n, x, NULL, c->norm.eps);
    ses_tensor *y = ses_norm_run(t, n, by_head(t, x, ses_attn_head_size(c)), NULL, c->norm.eps);
    return y ? ses_reshape(t, y, x->dim) : NULL;
}

/* Rotates the heads in the first `cols` columns of x, which is overwritten. */
static ses_tensor *rotate(ses_forward_ctx *p, const ses_seqs *q, bool local, ses_tensor *x, int64_t cols)
{
    const ses_config *c = p->c;
    double fraction = c->position.rotary_fraction;
    if (c->position.kind != SES_POS_ROTARY || !x) return x;
    ses_rotary_options o = { .cols = cols,
                             .dim = ses_attn_head_size(c),
                             .adjacent = c->position.rotary_adjacent,
                             .inplace = true,
                             .rope = local ? c->position.local_rope : c->position.rope,
                             .cu_seqlens = q->host_cu_seqlens,
                             .seqs = q->seqs };
    if (fraction > 0) o.pairs = (int64_t)(fraction * (double)o.dim) / 2;
    return ses_rotary_scaled(p->tape, x, q->positions, &o);
}

ses_tensor *ses_attn_kv_rows(ses_forward_ctx *p, int64_t tokens)
{
    int64_t heads = p->c->attention.heads, kv = p->c->attention.kv_heads;
    if (!kv || kv == heads) return NULL;
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)(tokens * heads), sizeof *row);
    for (int64_t i = 0; row && i < tokens * heads; i++)
        row[i] = (int32_t)(i / heads * kv + i % heads / (heads / kv));
    return row ? ses_tape_ints(p->tape, row, tokens * heads) : NULL;
}

/* The keys or values x of grouped heads, repeated for each head of queries. */
static ses_tensor *spread(ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x)
{
    int64_t dim = ses_attn_head_size(p->c);
    if (!ctx->kv_rows || !x) return x;
    ses_tensor *y = ses_gather(p->tape, by_head(p->tape, x, dim), ctx->kv_rows);
    return y ? ses_reshape(p->tape, y, SES_DIM(ses_rows(x), p->c->attention.heads * dim)) : NULL;
}

/* Projections with a matrix each, of the heads of x. */
static void project_apart(const ses_attn_params *a, ses_forward_ctx *p, const ses_stack_ctx *ctx, bool local,
                          ses_tensor *x, ses_attention_inputs *in)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    in->q = norm_run(c, t, a->query_norm, ses_dense_run(t, a->query, x, SES_ACT_NONE));
    in->k = norm_run(c, t, a->key_norm, ses_dense_run(t, a->key, x, SES_ACT_NONE));
    in->v = ses_dense_run(t, a->value, x, SES_ACT_NONE);
    if (!in->q || !in->k || !in->v) return;
    in->q = rotate(p, ctx->seqs, local, in->q, ses_cols(in->q));
    in->k = rotate(p, ctx->seqs, local, in->k, ses_cols(in->k));
    in->k = spread(p, ctx, in->k), in->v = spread(p, ctx, in->v);
}

void ses_attn_project(const ses_attn_params *a, ses_forward_ctx *p, const ses_stack_ctx *ctx, bool local,
                      ses_tensor *x, ses_tensor *from, int64_t heads, ses_attention_inputs *in)
{
    const ses_config *c = p->c;
    bool separate = c->attention.qkv_layout == SES_QKV_SEPARATE, rotary = c->position.kind == SES_POS_ROTARY;
    bool apart = a->query_norm.gain || (c->attention.kv_heads && c->attention.kv_heads != c->attention.heads);
    if (separate && from == x && !p->batch->cache && !apart) /* one fused product, if the weights allow it */
        in->q = ses_dense_run_fused(p->tape, (const ses_dense[]){ a->query, a->key, a->value }, 3, x,
                                    rotary ? 0 : heads);
    if (in->q) {
        if (rotary) in->q = rotate(p, ctx->seqs, local, in->q, ses_cols(in->q) / 3 * 2);
        return;
    }
    if (separate && (rotary || apart)) {
        project_apart(a, p, ctx, local, x, in);
        return;
    }
    in->q = ses_dense_run(p->tape, a->query, x, SES_ACT_NONE);
    if (rotary && in->q) /* queries and keys, which precede the values */
        in->q = rotate(p, ctx->seqs, local, in->q, ses_cols(in->q) / 3 * 2);
    if (!separate || !from) return;
    /* a cache and attention scores need separate keys */
    if (!p->batch->cache && !p->request->attention_scores)
        in->k = ses_dense_run_fused(p->tape, (const ses_dense[]){ a->key, a->value }, 2, from, heads);
    if (in->k) return;
    in->k = ses_dense_run(p->tape, a->key, from, SES_ACT_NONE);
    in->v = ses_dense_run(p->tape, a->value, from, SES_ACT_NONE);
}
