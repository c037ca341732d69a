/* A stack of layers over embeddings: attention and feed-forward, each with residual and norm. */
#include "nn.h"

#include "base/alloc.h"
#include "cache_impl.h"
#include "layer_hooks.h"
#include "nn/exit/exit_heads.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>
#include <stdio.h>

static ses_bias bias_of(const ses_config *c) { return c->ffn.no_bias ? SES_NO_BIAS : SES_BIAS; }

/* [out, in], or [in, out] if the model stores weights so. */
static ses_dense dense(ses_store *s, const ses_config *c, int64_t out, int64_t in, ses_bias bias,
                       const char *name)
{
    return ses_dense_add_layout(s, c->weights_in_out ? SES_IN_OUT : SES_OUT_IN, out, in, bias, name);
}

static ses_tensor *table(const ses_stack *k, ses_store *s, const char *name, int64_t rows, int64_t cols)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", k->prefix, name);
    return ses_store_add(s, full, SES_DIM(rows, cols), SES_INIT_NORMAL);
}

/* Are there experts instead of the feed-forward block of layer i? */
static bool has_experts(const ses_config *c, int i)
{
    return c->ffn.experts && (i + 1) % c->ffn.expert_every == 0;
}

static void feed_forward_add(ses_layer *l, ses_store *s, const ses_config *c, int64_t ffn, const char *name)
{
    char part[160];
    ses_bias bias = c->ffn.no_up_bias ? SES_NO_BIAS : bias_of(c);
    snprintf(part, sizeof part, "%s.gate", name);
    if (c->ffn.gated && !c->ffn.fused_gate) l->gate = dense(s, c, ffn, c->hidden, bias, part);
    snprintf(part, sizeof part, "%s.%s", name, l->gate.w ? "linear" : "up");
    l->up = dense(s, c, c->ffn.fused_gate ? 2 * ffn : ffn, c->hidden, bias, part);
    if (c->ffn.fused_gate) ses_store_set_parts(s, l->up.w, 2);
    snprintf(part, sizeof part, "%s.down", name);
    l->down = dense(s, c, c->hidden, ffn, bias_of(c), part);
}

static ses_layer layer_add(const ses_stack *k, ses_store *s, const ses_config *c, int i)
{
    char name[96], part[128];
    ses_layer l = { 0 };
    snprintf(name, sizeof name, "%slayer.%d", k->prefix, i);
    snprintf(part, sizeof part, "%s.attn", name);
    l.self = ses_attn_params_add(s, c, ses_stack_heads(k, i), part);
    if (!c->norm.no_first_attn_norm || i)
        l.self_norm = ses_norm_add(s, c->hidden, c->norm.kind, "%s.attn.norm", name);
    snprintf(part, sizeof part, "%s.cross", name);
    if (k->cross || k->cross_unused) l.cross = ses_cross_params_add(s, c, ses_stack_cross_heads(k, i), part);
    if (k->cross || k->cross_unused)
        l.cross_norm = ses_norm_add(s, c->hidden, c->norm.kind, "%s.cross.norm", name);
    snprintf(part, sizeof part, "%s.ffn", name);
    if (has_experts(c, i))
        l.experts = ses_experts_add(s, c, part);
    else
        feed_forward_add(&l, s, c, ses_stack_ffn(k, i), part);
    l.ffn_norm = ses_norm_add(s, c->hidden, c->norm.kind, "%s.ffn.norm", name);
    if (c->norm.sandwich || c->norm.second_attn_norm)
        l.self_norm2 = ses_norm_add(s, c->hidden, c->norm.kind, "%s.attn.norm2", name);
    if (c->norm.sandwich) l.ffn_norm2 = ses_norm_add(s, c->hidden, c->norm.kind, "%s.ffn.norm2", name);
    if (ses_config_scores_distances(c)) l.distance = ses_relative_key_add(k, s, c, i);
    snprintf(part, sizeof part, "layer.%d.attn.buckets", i);
    if (c->rel_bias.per_layer) l.buckets = table(k, s, part, c->rel_bias.buckets, k->heads);
    if (c->attention.local_layers[i / 64] >> (i % 64) & 1) l.window = c->attention.window;
    const ses_adapter_hook *a = ses_store_adapter_hook(s);
    if (a) a->layer(a->ctx, s, &l, name, c->hidden);
    if (i < 2 * c->attention.tower_layers)
        l.tower = i < c->attention.tower_layers ? SES_TOWER_FORWARD : SES_TOWER_BACKWARD;
    return l;
}

static void embeddings_add(ses_stack *k, ses_store *s, const ses_config *c)
{
    int64_t E = c->embed.width ? c->embed.width : c->hidden,
            width = c->embed.project_before_positions ? c->hidden : E;
    if (c->embed.low_rank) {
        k->token = table(k, s, "embed.token_b", c->vocab, c->embed.low_rank);
        k->token_up = table(k, s, "embed.token_a", c->embed.low_rank, E);
    }
    if (!k->token) k->token = table(k, s, "embed.token", c->vocab, E);
    ses_store_set_embedding(s, k->token);
    if (c->position.kind <= SES_POS_FAIRSEQ)
        k->position = table(k, s, "embed.position", c->position.max + c->position.extra_rows, width);
    if (c->position.kind > SES_POS_LEARNED && c->position.kind <= SES_POS_FAIRSEQ)
        ses_store_set_role(s, k->position, SES_PARAM_BUFFER);
    if (ses_config_scores_distances(c)) /* not read, but part of the checkpoint */
        ses_store_set_role(s, table(k, s, "embed.position", c->position.max + c->position.extra_rows, width),
                           SES_PARAM_BUFFER);
    if (c->embed.segments) k->segment = table(k, s, "embed.segment", c->embed.segments, width);
    ses_store_set_embedding(s, k->position);
    ses_store_set_embedding(s, k->segment);
    if (c->embed.tasks) k->task = table(k, s, "embed.task", c->embed.tasks, width);
    if (c->embed.norm) k->embed_norm = ses_norm_add(s, width, c->norm.kind, "%sembed.norm", k->prefix);
    if (c->embed.modal_width)
        k->modal = ses_dense_add(s, E, c->embed.modal_width, SES_BIAS, "%sembed.modal", k->prefix);
    if (E == c->hidden && !c->embed.always_project) return;
    k->project = ses_dense_add(s, c->hidden, E, c->embed.project_before_positions ? SES_NO_BIAS : SES_BIAS,
                               "%sembed.project", k->prefix);
    if (c->embed.project_before_positions)
        k->project_out = ses_dense_add(s, E, c->hidden, SES_NO_BIAS, "%sproject_out", k->prefix);
}

bool ses_stack_add_default(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    if (c->attention.pruned && !ses_stack_heads_read(k, c->attention.pruned, e)) return false;
    if (c->ffn.widths && !ses_stack_widths_read(k, c->ffn.widths, e)) return false;
    k->n_unique = c->layer_groups ? c->layer_groups * c->layers_per_group : k->depth;
    k->layer = ses_alloc_array((size_t)k->n_unique, sizeof *k->layer, e);
    if (!k->layer) return false;
    embeddings_add(k, s, c);
    for (int i = 0; i < (int)k->n_unique; i++) k->layer[i] = layer_add(k, s, c, i);
    if (c->rel_bias.buckets && !c->rel_bias.per_layer)
        k->rel_bias_table = table(
            k, s, "buckets", c->rel_bias.table_rows ? c->rel_bias.table_rows : c->rel_bias.buckets, k->heads);
    if (c->norm.after_last_layer)
        k->final_norm = ses_norm_add(s, c->hidden, c->norm.kind, "%sfinal_norm", k->prefix);
    return ses_store_ok(s, e);
}

bool ses_stack_add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    k->c = c;
    return k->vtable && k->vtable->add ? k->vtable->add(k, s, c, e) : ses_stack_add_default(k, s, c, e);
}

bool ses_stack_loaded(ses_stack *k, ses_store *s, bool random, ses_err *e)
{
    return !k->vtable || !k->vtable->loaded || k->vtable->loaded(k, s, random, e);
}

void ses_stack_free(ses_stack *k)
{
    ses_stack_heads_free(k);
    for (int64_t i = 0; k->layer && i < k->n_unique; i++) ses_experts_free(k->layer[i].experts);
    ses_free(k->ffn_widths);
    ses_free(k->layer);
    ses_free(k->priv);
}

/* ---- forward ---- */

/* The parameters of layer i. Parameter sharing repeats each group's layers; groups follow each other. */
static const ses_layer *layer_at(const ses_stack *k, const ses_config *c, int64_t i)
{
    if (!c->layer_groups) return &k->layer[i];
    int64_t group = i / c->layers_per_group * c->layer_groups / (k->depth / c->layers_per_group);
    return &k->layer[group * c->layers_per_group + i % c->layers_per_group];
}

/* Attention of the queries of q_seqs to the keys of k_seqs. prefix: keys and values of virtual tokens before
 * them; NULL: none. */
static ses_tensor *run_attention(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q_seqs,
                                 const ses_seqs *k_seqs, ses_tensor *prefix, ses_attention_inputs in,
                                 ses_qkv_layout layout, int64_t window, int i)
{
    const ses_config *c = p->c;
    bool cross = k_seqs == &p->source || (q_seqs == &p->target && k_seqs == &p->in);
    bool wanted = p->request->attentions;
    ses_tower tower = layer_at(k, c, i)->tower;
    ses_attention_options o = { .heads = cross ? ses_stack_cross_heads(k, i) : ses_stack_heads(k, i),
                                .max_seqlen_q = q_seqs->max_seqlen,
                                .max_seqlen_k = k_seqs->max_seqlen,
                                .scale = c->attention.scale,
                                .dropout = c->dropout.attention,
                                .causal = (k->causal && !cross) || tower == SES_TOWER_FORWARD,
                                .anticausal = tower == SES_TOWER_BACKWARD,
                                .window = window,
                                .layout = layout };
    if (c->attention.scale_by_layer) {
        double width = (double)(c->attention.head_size ? c->attention.head_size : c->hidden / k->heads);
        o.scale = (o.scale > 0 ? o.scale : 1 / sqrt(width)) / (double)(i + 1);
    }
    if (p->attn_mask != SES_ATTN_MASK_DEFAULT && q_seqs == &p->in && k_seqs == &p->in) {
        o.causal = p->attn_mask == SES_ATTN_MASK_CAUSAL;
        o.anticausal |= p->attn_mask == SES_ATTN_MASK_RIGHT_TO_LEFT;
        in.bias = in.bias && p->mask_bias ? ses_add(p->tape, in.bias, p->mask_bias)
                  : p->mask_bias          ? p->mask_bias
                                          : in.bias;
    }
    ses_layer_site at = ses_layer_site_of(k, i);
    if (cross) at.prefix = "cross_", at.part = SES_PART_CROSS, at.keys = SES_PER_TOKEN, at.heads = o.heads;
    if (p->hooked) ses_hook_qkv(p, &at, &in, &o.layout);
    if (prefix) {
        ses_hook_split(p, &in, &o.layout, o.heads);
        ses_virtual_prepend(&k->virt, p, prefix, i, &in);
        k_seqs = &p->prefixed, o.max_seqlen_k = p->prefixed.max_seqlen;
    }
    in.cu_seqlens_q = q_seqs->cu_seqlens, in.cu_seqlens_k = k_seqs->cu_seqlens, in.len_k = k_seqs->key_lens;
    if (p->request->attention_scores && q_seqs == k_seqs)
        ses_forward_output(
            p, k->cross ? SES_PER_TARGET_QUERY_KEY : SES_PER_QUERY_KEY,
            ses_attention_scores(p->tape, in.q, in.k, q_seqs->host_cu_seqlens, q_seqs->seqs, &o),
            "%sattention_scores.%d", k->outputs, i);
    ses_tensor *probs, *y = ses_attention(p->tape, &in, &o, wanted ? &probs : NULL);
    if (wanted && cross) ses_forward_output(p, SES_PER_CROSS_QUERY_KEY, probs, "cross_attentions.%d", i);
    if (wanted && !cross)
        ses_forward_output(p, k->cross ? SES_PER_TARGET_QUERY_KEY : SES_PER_QUERY_KEY, probs,
                           "%sattentions.%d", k->outputs, i);
    return p->hooked && y ? ses_hook_head_outputs(p, &at, y) : y;
}

ses_tensor *ses_self_attention(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                               ses_attention_inputs in, int64_t window, int i)
{
    ses_qkv_layout layout = in.k                                             ? SES_QKV_SEPARATE
                            : p->c->attention.qkv_layout == SES_QKV_SEPARATE ? SES_QKV_FUSED
                                                                             : p->c->attention.qkv_layout;
    bool cached = p->batch->cache && k->causal;
    if (cached) ses_cache_extend(p, &k->virt, ctx->prefix, i, ses_stack_heads(k, i), &in);
    return run_attention(k, p, ctx->seqs, cached ? &p->past : ctx->seqs, cached ? NULL : ctx->prefix, in,
                         layout, window, i);
}

/* Full bidirectional attention without position bias, no attention outputs requested, no hooks? */
static bool is_full_attention(const ses_stack *k, const ses_layer *l, const ses_forward_ctx *p,
                              const ses_stack_ctx *ctx)
{
    return !k->causal && !l->tower && !l->window && !ctx->rel_bias && !l->distance && !l->buckets &&
           p->attn_mask == SES_ATTN_MASK_DEFAULT && !p->request->attentions &&
           !p->request->attention_scores && !p->hooked;
}

static int64_t head_size_of(const ses_stack *k, const ses_config *c)
{
    return c->attention.head_size ? c->attention.head_size : c->hidden / k->heads;
}

/* Number of heads if int8 attention can read the int8 output of the projections; 0: it cannot. */
static int64_t i8_heads(const ses_stack *k, const ses_layer *l, const ses_forward_ctx *p,
                        const ses_stack_ctx *ctx, int i)
{
    int64_t dim = head_size_of(k, p->c);
    bool supported = is_full_attention(k, l, p, ctx) && !ctx->prefix && !ses_tape_training(p->tape) &&
                     dim <= SES_ATTN_I8_MAX_DIM;
    return supported && ctx->seqs->max_seqlen <= SES_ATTN_I8_MAX_KEYS ? ses_stack_heads(k, i) : 0;
}

/* Does the last layer compute only the rows that heads use? */
static bool computes_used_rows_only(const ses_stack *k, const ses_layer *l, const ses_forward_ctx *p,
                                    const ses_stack_ctx *ctx, int i)
{
    bool custom = k->vtable && k->vtable->project;
    return i + 1 == k->depth && ses_used_rows_active(p, ctx->seqs) && is_full_attention(k, l, p, ctx) &&
           !k->cross && !custom && p->c->attention.qkv_layout == SES_QKV_SEPARATE &&
           p->c->position.kind != SES_POS_ROTARY && !ctx->kv_rows && !l->self.query_norm.gain;
}

/* Does int8 inference quantize queries, keys and values? */
static bool rounds_attention(const ses_stack *k, const ses_layer *l, const ses_forward_ctx *p,
                             const ses_stack_ctx *ctx)
{
    return l->self.query.w && l->self.query.w->rounds_i8 && !k->causal && !l->tower && !l->window &&
           !l->distance && !l->buckets && !ctx->rel_bias && !ctx->prefix &&
           p->attn_mask == SES_ATTN_MASK_DEFAULT;
}

/* query_rows: the rows of x whose queries are computed. */
static ses_tensor *self_attention(const ses_stack *k, const ses_layer *l, ses_forward_ctx *p,
                                  const ses_stack_ctx *ctx, ses_tensor *x, ses_tensor *query_rows, int i)
{
    ses_tensor *bias = l->buckets ? ses_gather(p->tape, l->buckets, ctx->rel_bucket) : ctx->rel_bias;
    ses_attention_inputs in = { .rel_bias = ses_stack_layer_bias(k, p->tape, bias, i) };
    in.allow_i8 =
        l->self.query.w && (ses_pack_dtype(l->self.query.w) == SES_I8 || l->self.query.w->rounds_i8);
    if (k->vtable && k->vtable->project)
        k->vtable->project(k, p, ctx, x, &in, i);
    else
        ses_attn_project(&l->self, p, ctx, l->window > 0, query_rows, x, i8_heads(k, l, p, ctx, i), &in);
    if (l->distance) ses_relative_key_scores(k, p, ctx, l, &in, i);
    if (rounds_attention(k, l, p, ctx))
        ses_round_attention(p->tape, &in, head_size_of(k, p->c), ctx->seqs->max_seqlen);
    if (query_rows == x) return ses_self_attention(k, p, ctx, in, l->window, i);
    return run_attention(k, p, &p->used.seqs, ctx->seqs, ctx->prefix, in, SES_QKV_SEPARATE, 0, i);
}

static ses_tensor *cross_attention(const ses_stack *k, const ses_layer *l, ses_forward_ctx *p,
                                   const ses_stack_ctx *ctx, ses_tensor *x, int i)
{
    ses_attention_inputs in = { 0 };
    if (p->c->attention.qkv_layout == SES_QKV_SEPARATE) {
        ses_attn_project(&l->cross, p, ctx, false, x, ctx->encoder_states, 0, &in);
    } else {
        in.q = ses_dense_run(p->tape, l->cross.query, x, SES_ACT_NONE);
        if (ctx->encoder_states) /* keys | values */
            in.k = ses_dense_run(p->tape, l->cross.key, ctx->encoder_states, SES_ACT_NONE);
    }
    if (p->batch->cache) ses_cache_cross(p, i, ses_stack_cross_heads(k, i), &in);
    const ses_seqs *from = p->batch->cache ? &p->source : &p->in;
    return run_attention(k, p, ctx->seqs, from, NULL, in, SES_QKV_SEPARATE, l->window, i);
}

/* The activations as the last projection reads them, in reals. */
static ses_tensor *feed_forward_hooked(const ses_layer *l, ses_forward_ctx *p, const ses_layer_site *at,
                                       ses_tensor *x)
{
    const ses_config *c = p->c;
    ses_tensor *h = ses_dense_run(p->tape, l->up, x, c->ffn.gated ? SES_ACT_NONE : c->ffn.act);
    if (c->ffn.fused_gate) h = ses_glu(p->tape, h, c->ffn.act);
    if (l->gate.w) h = ses_mul(p->tape, ses_dense_run(p->tape, l->gate, x, c->ffn.act), h);
    h = ses_dropout(p->tape, h, c->dropout.act);
    return h ? ses_hook_ffn(p, at, h) : NULL;
}

static ses_tensor *feed_forward(const ses_layer *l, ses_forward_ctx *p, const ses_layer_site *at,
                                ses_tensor *x)
{
    const ses_config *c = p->c;
    if (p->hooked) return feed_forward_hooked(l, p, at, x);
    ses_tensor *h = c->ffn.fused_gate ? ses_dense_run_gated(p->tape, l->up, x, c->ffn.act, &l->down)
                    : c->ffn.gated    ? ses_dense_run(p->tape, l->up, x, SES_ACT_NONE)
                                      : ses_dense_run_i8_out(p->tape, l->up, x, c->ffn.act, &l->down);
    if (l->gate.w) h = ses_mul(p->tape, ses_dense_run(p->tape, l->gate, x, c->ffn.act), h);
    return ses_dropout(p->tape, h, c->dropout.act);
}

/* The whole feed-forward block as one op; NULL: not possible. */
static ses_tensor *feed_forward_fused(const ses_layer *l, ses_forward_ctx *p, ses_tensor *x)
{
    const ses_config *c = p->c;
    bool separate_ops = c->ffn.gated || p->hooked || (c->dropout.act > 0 && ses_tape_training(p->tape));
    return separate_ops ? NULL : ses_dense_run_ffn(p->tape, l->up, x, c->ffn.act, l->down);
}

/* Sublayers: x + dropout(f(norm(x))) in pre-norm, norm(x + dropout(f(x))) in post-norm. d is the last dense
 * layer of f; d NULL: y includes it. b: adapters of the sublayer; NULL: none. n2: a second norm, of f's
 * output in pre-norm, of the sum of x and the result in post-norm; gain NULL: none. */
static ses_tensor *norm_before(ses_forward_ctx *p, ses_norm n, ses_tensor *x)
{
    return p->c->norm.placement == SES_PRE_NORM && n.gain ? ses_norm_run(p->tape, n, x, NULL, p->c->norm.eps)
                                                          : x;
}

static ses_tensor *residual_after(ses_forward_ctx *p, const ses_dense *d, ses_norm n, ses_norm n2,
                                  const ses_bottlenecks *b, ses_tensor *y, double rate, ses_tensor *x)
{
    ses_tape *t = p->tape;
    if (n2.gain) {
        y = d ? ses_dense_run(t, *d, y, SES_ACT_NONE) : y, d = NULL;
        if (p->c->norm.sandwich) y = ses_norm_run(t, n2, y, NULL, p->c->norm.eps);
    }
    if (b && b->n) {
        y = ses_dropout(t, d ? ses_dense_run(t, *d, y, SES_ACT_NONE) : y, rate);
        y = ses_bottlenecks_run(b, p, n, y, x);
        d = NULL, rate = 0;
    }
    if (p->c->norm.placement == SES_PRE_NORM)
        return ses_add(t, x, ses_dropout(t, d ? ses_dense_run(t, *d, y, SES_ACT_NONE) : y, rate));
    if (!d) y = ses_norm_run_dropout(t, n, y, rate, x, p->c->norm.eps);
    if (n2.gain) y = ses_norm_run(t, n2, y, x, p->c->norm.eps);
    if (!d) return y;
    return ses_dense_run_normed(t, *d, y, n, rate, x, p->c->norm.eps);
}

static ses_tensor *experts(const ses_layer *l, ses_forward_ctx *p, ses_tensor *x)
{
    const ses_edits *edits = p->request->edits;
    if (p->hooked && (p->request->ffn_activations || (edits && edits->n_neurons))) {
        ses_tape_fail(p->tape, SES_EUNSUPPORTED,
                      "activations of a mixture of experts cannot be captured or edited");
        return NULL;
    }
    return ses_experts_run(l->experts, p, x);
}

ses_tensor *ses_layer_ffn(const ses_layer *l, ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x)
{
    const ses_config *c = p->c;
    ses_tensor *in = norm_before(p, l->ffn_norm, x), *residual = c->norm.residual_post_norm ? in : x;
    ses_tensor *whole = l->experts ? experts(l, p, in) : feed_forward_fused(l, p, in);
    double rate = c->dropout.ffn < 0 ? c->dropout.hidden : c->dropout.ffn;
    if (l->experts || whole)
        return residual_after(p, NULL, l->ffn_norm, l->ffn_norm2, &l->after_ffn, whole, rate, residual);
    return residual_after(p, &l->down, l->ffn_norm, l->ffn_norm2, &l->after_ffn, feed_forward(l, p, at, in),
                          rate, residual);
}

ses_tensor *ses_stack_output_hidden(const ses_stack *k, ses_forward_ctx *p, ses_tensor *x, int64_t i)
{
    if (p->hooked) {
        ses_layer_site at = ses_layer_site_of(k, (int)i);
        x = ses_hook_hidden(p, &at, x);
    }
    if (p->layer) p->layer[i] = x;
    if (p->request->hidden_states)
        ses_forward_output(p, k->cross ? SES_PER_TARGET : SES_PER_TOKEN, x, "%shidden_states.%d", k->outputs,
                           (int)i);
    return x;
}

ses_tensor *ses_layer_used_rows(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                                ses_tensor *x, int i)
{
    return i + 1 == k->depth ? ses_used_rows_gather(p, ctx->seqs, x) : x;
}

ses_tensor *ses_layer_run(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                          int i)
{
    const ses_config *c = p->c;
    const ses_layer *l = layer_at(k, c, i);
    ses_tensor *in = norm_before(p, l->self_norm, x), *residual = c->norm.residual_post_norm ? in : x,
               *query_rows = in;
    bool same = residual == in;
    if (!k->cross) residual = ses_layer_used_rows(k, p, ctx, residual, i);
    if (computes_used_rows_only(k, l, p, ctx, i))
        query_rows = same ? residual : ses_used_rows_gather(p, ctx->seqs, in);
    ses_tensor *y = self_attention(k, l, p, ctx, in, query_rows, i);
    if (!k->cross) y = ses_layer_used_rows(k, p, ctx, y, i);
    x = residual_after(p, &l->self.out, l->self_norm, l->self_norm2, &l->after_attn, y, c->dropout.hidden,
                       residual);
    if (k->cross) {
        y = cross_attention(k, l, p, ctx, norm_before(p, l->cross_norm, x), i);
        y = ses_layer_used_rows(k, p, ctx, y, i), x = ses_layer_used_rows(k, p, ctx, x, i);
        x = residual_after(p, &l->cross.out, l->cross_norm, (ses_norm){ 0 }, NULL, y, c->dropout.hidden, x);
    }
    ses_layer_site at = ses_layer_site_of(k, i);
    return ses_layer_ffn(l, p, &at, x);
}

static ses_tensor *layer_run(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                             int i)
{
    return k->vtable && k->vtable->layer ? k->vtable->layer(k, p, ctx, x, i) : ses_layer_run(k, p, ctx, x, i);
}

/* A layer and everything it reads. Lives until the tape is reset, because backward runs it again after
 * ses_model_forward has returned. */
typedef struct recomputed_layer {
    const ses_stack *k;
    ses_forward_ctx p;
    ses_stack_ctx ctx;
    ses_batch batch;
    ses_output_request request;
    int i;
} recomputed_layer;

static ses_tensor *rerun_layer(void *ctx, ses_tensor *x)
{
    recomputed_layer *l = ctx;
    return layer_run(l->k, &l->p, &l->ctx, x, l->i);
}

static ses_tensor *layer_recompute(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                                   ses_tensor *x, int i)
{
    recomputed_layer *l = ses_tape_host_alloc(p->tape, 1, sizeof *l);
    if (!l) return NULL;
    *l = (recomputed_layer){ k, *p, *ctx, *p->batch, *p->request, i };
    l->p.batch = &l->batch, l->p.request = &l->request;
    l->ctx.seqs = ctx->seqs == &p->target ? &l->p.target : &l->p.in;
    return ses_recompute(p->tape, rerun_layer, l, x);
}

typedef struct layers {
    const ses_stack *k;
    ses_forward_ctx *p;
    ses_stack_ctx *ctx;
    ses_tape_mark start;
    bool rewinds, recompute;
} layers;

static ses_tensor *run_layers(void *ctx, ses_tensor *x)
{
    layers *l = ctx;
    ses_tape *t = l->p->tape;
    for (int64_t i = 0; x && i < l->k->depth; i++) {
        x = ses_stack_output_hidden(l->k, l->p, x, i);
        x = l->recompute ? layer_recompute(l->k, l->p, l->ctx, x, (int)i)
                         : layer_run(l->k, l->p, l->ctx, x, (int)i);
        if (l->rewinds) x = ses_tape_rewind(t, l->start, x);
        if (l->p->leaving) x = ses_exits_after_layer(l->k, l->p, l->ctx, x, i + 1, &l->start);
        ses_tape_wrap_error(t, "%slayer %d", l->k->prefix, (int)i);
    }
    return x;
}

/* Everything besides the hidden state that determines the work of all layers. */
typedef struct graph_key {
    const ses_stack *k;
    const ses_config *c;
    const void *cu, *positions, *dist, *rows, *rows_cu;
    int64_t seqs, tokens, longest, used, kept_longest;
} graph_key;

/* Replays the layers as a CUDA graph: launching the kernels of a short pass takes longer than running
 * them. */
static ses_tensor *run_layers_as_graph(layers *l, const ses_seqs *seqs, ses_tensor *x)
{
    enum { MAX_ELEMS = 64 << 20 }; /* elements of the hidden state; larger ones gain nothing */
    const ses_forward_ctx *p = l->p;
    bool default_layers = !l->k->vtable && !l->k->cross && !l->ctx->rel_dist_to_row &&
                          !p->c->rel_bias.per_layer && !l->ctx->kv_rows && !p->c->ffn.experts &&
                          !p->batch->cache && !(l->k->pruned.left && l->ctx->rel_bias) && !p->hooked &&
                          !l->ctx->prefix && !p->leaving && p->attn_mask == SES_ATTN_MASK_DEFAULT;
    if (!l->rewinds || !default_layers || seqs->tokens * p->c->hidden > MAX_ELEMS || !seqs->cu_seqlens)
        return run_layers(l, x);
    const ses_used_rows *used = &p->used;
    graph_key key = { l->k,
                      p->c,
                      seqs->cu_seqlens->data,
                      seqs->positions ? seqs->positions->data : NULL,
                      l->ctx->rel_bias ? l->ctx->rel_bias->data : NULL,
                      used->rows ? used->rows->data : NULL,
                      used->rows ? used->seqs.cu_seqlens->data : NULL,
                      seqs->seqs,
                      seqs->tokens,
                      seqs->max_seqlen,
                      used->seqs.tokens,
                      used->seqs.max_seqlen };
    return ses_graph_replay(p->tape, run_layers, l, x, &key, sizeof key);
}

ses_tensor *ses_stack_finish(const ses_stack *k, ses_forward_ctx *p, ses_tensor *x)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    if (p->leaving && !x) return NULL; /* all texts have left */
    if (k->final_norm.gain)
        x = ses_dropout(
            t,
            ses_norm_run(t, k->final_norm, x, NULL, c->norm.final_eps > 0 ? c->norm.final_eps : c->norm.eps),
            c->dropout.final);
    if (k->project_out.w) x = ses_dense_run(t, k->project_out, x, SES_ACT_NONE);
    return ses_stack_output_hidden(k, p, x, k->depth);
}

static ses_tensor *run_stack(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs, ses_tensor *memory)
{
    static const ses_stack_vtable none = { 0 };
    const ses_stack_vtable *vtable = k->vtable ? k->vtable : &none;
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    bool rewinds = !p->captures && !p->request->hidden_states && !p->request->attentions &&
                   !p->request->attention_scores && !p->layer;
    bool recompute =
        ses_tape_recomputing(t) && !p->hooked && !p->request->attentions && !p->request->attention_scores;
    if (vtable->run && recompute)
        ses_tape_fail(t, SES_EUNSUPPORTED,
                      "this model cannot recompute its layers: turn off gradient checkpointing (recompute)");
    if (vtable->run) return ses_used_rows_gather(p, seqs, vtable->run(k, p, seqs));
    bool cached = p->batch->cache && k->causal;
    ses_stack_ctx ctx = { .seqs = seqs, .encoder_states = memory };
    if (k->virt.keys) ctx.prefix = ses_virtual_values(&k->virt, t, k->virt.keys);
    if (ctx.prefix && !cached) ses_virtual_begin(&k->virt, p, seqs);
    ses_attn_begin(k, p, cached ? &p->past : ctx.prefix ? &p->prefixed : seqs, &ctx);
    if (k->virt.n_dense && ctx.prefix && recompute)
        ses_tape_fail(t, SES_EUNSUPPORTED,
                      "a projected prefix cannot be recomputed: turn off gradient checkpointing (recompute)");
    if (vtable->begin) vtable->begin(k, p, &ctx);
    if (ses_config_scores_distances(c)) ses_relative_key_begin(k, p, &ctx);
    if (seqs == &p->in) ses_forward_set_mask(p, k->heads);
    if (k->pruned.left && p->mask_bias)
        ses_tape_fail(t, SES_EUNSUPPORTED, "a prefix mask needs all heads: the model has pruned heads");
    if (ctx.prefix && p->mask_bias)
        ses_tape_fail(t, SES_EUNSUPPORTED,
                      "a model with a tuned prefix cannot have a prefix mask (prefix_len)");
    ses_tape_mark start = ses_tape_get_mark(t);
    ses_tensor *x = vtable->embed ? vtable->embed(k, p, seqs) : ses_stack_embed(k, p, seqs);
    if (rewinds) x = ses_tape_rewind(t, start, x);
    x = ses_used_rows_gather(
        p, seqs, run_layers_as_graph(&(layers){ k, p, &ctx, start, rewinds, recompute }, seqs, x));
    return ses_stack_finish(k, p, x);
}

ses_tensor *ses_stack_run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs, ses_tensor *memory)
{
    const ses_config *c = p->c;
    p->c = k->c;
    ses_tensor *x = run_stack(k, p, seqs, memory);
    p->c = c;
    return x;
}
