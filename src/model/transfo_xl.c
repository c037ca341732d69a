/* Transformer-XL (Dai et al. 2019): a decoder with segment recurrence. The keys of each layer are its inputs
 * for earlier segments (mems), then the batch's tokens; scores depend on content and distance. Embeddings and
 * softmax are adaptive. A batch without mems starts as in transformers: with mem_len zero vectors per
 * sequence, which take part in attention. A batch with mem_cu_seqlens may give a sequence 0 mems, which then
 * attends to nothing before it. */
#include "model_desc.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"
#include "nn/xl_attention.h"

#include <stdio.h>

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("vocab_size_or_config_json_file", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("n_token", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("vocab_size", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("d_model", hidden, SES_MAX_WIDTH),
    SES_KEY_INTEGER("d_embed", embed.width, 1, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_layer", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("n_head", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("d_head", attention.head_size, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("d_inner", ffn.width, SES_MAX_FFN),
    SES_KEY_INTEGER("div_val", adaptive.div_val, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("mem_len", xl.mem_len, 0, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("clamp_len", xl.clamp_len, -1, SES_MAX_POSITIONS),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.eps, 0, 1),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("dropatt", dropout.attention),
    SES_KEY_NUMBER("init_std", init.range, 0, 100),
    SES_KEY_FLAG("same_length", xl.same_length),
    SES_KEY_FLAG("tie_weight", embed.tied),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

static bool fail_list(const char *key, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "\"%s\" is invalid, expected %s", key,
                    key[0] == 'c' ? "rising token ids, at most 7, below the vocabulary's size"
                                  : "true or false for every cluster");
}

static bool read_clusters(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *list = ses_json_get(config, "cutoffs");
    size_t n = ses_json_len(list);
    if (list && ses_json_type_of(list) != SES_JSON_ARRAY) return fail_list("cutoffs", e);
    if (n >= SES_MAX_CLUSTERS) return fail_list("cutoffs", e);
    for (size_t i = 0; i < n; i++)
        if (!ses_json_int(ses_json_at(list, i), &c->adaptive.cutoffs[i + 1]) ||
            c->adaptive.cutoffs[i + 1] <= c->adaptive.cutoffs[i] || c->adaptive.cutoffs[i + 1] >= c->vocab)
            return fail_list("cutoffs", e);
    c->adaptive.clusters = (int64_t)n + 1;
    c->adaptive.cutoffs[n + 1] = c->vocab;
    int64_t width = c->embed.width ? c->embed.width : c->hidden;
    for (size_t i = 0; i < n && c->adaptive.div_val > 1; i++) width /= c->adaptive.div_val;
    return width > 0 || ses_fail(e, SES_EARG, "\"div_val\" %lld leaves no columns for the last cluster",
                                 (long long)c->adaptive.div_val);
}

static bool read_ties(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *list = ses_json_get(config, "tie_projs");
    bool tied = true;
    if (ses_json_type_of(list) == SES_JSON_NULL) {
        if (!ses_config_bool(config, "proj_share_all_but_first", &tied, e)) return false;
        c->adaptive.tie_projs = tied ? ~1u : 0;
        return true;
    }
    if (ses_json_type_of(list) != SES_JSON_ARRAY || (int64_t)ses_json_len(list) > c->adaptive.clusters)
        return fail_list("tie_projs", e);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!ses_json_bool(ses_json_at(list, i), &tied)) return fail_list("tie_projs", e);
        if (tied) c->adaptive.tie_projs |= 1u << i;
    }
    return true;
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    int64_t kind = 0;
    bool before = false, untied = true;
    if (!ses_config_int(config, "attn_type", &kind, e) || !ses_config_bool(config, "pre_lnorm", &before, e) ||
        !ses_config_bool(config, "untie_r", &untied, e))
        return false;
    if (kind)
        return ses_fail(e, SES_EUNSUPPORTED, "\"attn_type\" is %lld: only 0 is supported", (long long)kind);
    if (!c->vocab) return ses_fail(e, SES_EFORMAT, "\"vocab_size\" is missing");
    if (c->hidden % 2)
        return ses_fail(e, SES_EARG, "\"d_model\" %lld is odd: sinusoidal positions need pairs of columns",
                        (long long)c->hidden);
    if (!read_clusters(c, config, e) || !read_ties(c, config, e)) return false;
    if (c->xl.clamp_len < 0) c->xl.clamp_len = 0;
    c->norm.placement = before ? SES_PRE_NORM : SES_POST_NORM;
    c->xl.shared_biases = !untied;
    c->dropout.act = c->dropout.hidden;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

/* ---- parameters ---- */

typedef struct relative { /* parameters of a layer */
    ses_dense distance;   /* projects the sinusoidal embeddings of the distances */
    ses_tensor *bias[2];  /* [heads, D], added to queries: for content, for distance */
} relative;

typedef struct xl_params {
    ses_adaptive_softmax clusters;
    relative layer[];
} xl_params;

static void add_biases(ses_tensor *bias[2], ses_store *s, const ses_config *c, const char *where)
{
    static const char *const what[] = { "content_bias", "distance_bias" };
    char name[96];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%sattn.%s", where, what[i]);
        bias[i] =
            ses_store_add(s, name, SES_DIM(c->attention.heads, c->attention.head_size), SES_INIT_NORMAL);
    }
}

static void add_layer(ses_layer *l, relative *r, ses_store *s, const ses_config *c, int i)
{
    int64_t inner = c->attention.heads * c->attention.head_size;
    char name[64];
    snprintf(name, sizeof name, "layer.%d.", i);
    l->self.query = ses_dense_add(s, 3 * inner, c->hidden, SES_NO_BIAS, "%sattn.qkv", name);
    l->self.out = ses_dense_add(s, c->hidden, inner, SES_NO_BIAS, "%sattn.out", name);
    r->distance = ses_dense_add(s, inner, c->hidden, SES_NO_BIAS, "%sattn.distance", name);
    if (!c->xl.shared_biases) add_biases(r->bias, s, c, name);
    l->self_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "%sattn.norm", name);
    l->up = ses_dense_add(s, c->ffn.width, c->hidden, SES_BIAS, "%sffn.up", name);
    l->down = ses_dense_add(s, c->hidden, c->ffn.width, SES_BIAS, "%sffn.down", name);
    l->ffn_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "%sffn.norm", name);
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    xl_params *o = ses_alloc(sizeof *o + (size_t)k->depth * sizeof *o->layer, e);
    ses_tensor *bias[2] = { NULL };
    k->priv = o;
    k->n_unique = k->depth;
    k->layer = o ? ses_alloc_array((size_t)k->depth, sizeof *k->layer, e) : NULL;
    if (!k->layer) return false;
    ses_adaptive_softmax_add(&o->clusters, s, c);
    if (c->xl.shared_biases) add_biases(bias, s, c, "");
    for (int i = 0; i < (int)k->depth; i++) {
        o->layer[i].bias[0] = bias[0], o->layer[i].bias[1] = bias[1];
        add_layer(&k->layer[i], &o->layer[i], s, c, i);
    }
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

typedef struct pass_state {
    const ses_stack *k;
    ses_forward_ctx *p;
    const ses_seqs *seqs;
    ses_xl_keys keys;
    ses_tensor *mask;
    int64_t pairs;
} pass_state;

/* Causal mask over mems and tokens; with same_length all tokens attend to equally many keys. */
static bool set_mask(pass_state *v)
{
    static const ses_real mask_value = -1e30f;
    const ses_config *c = v->p->c;
    const int32_t *cu = v->seqs->host_cu_seqlens, *cu_seqlens_k = v->keys.host_cu_seqlens;
    for (int64_t s = 0; s < v->seqs->seqs; s++)
        v->pairs += (int64_t)(cu[s + 1] - cu[s]) * (cu_seqlens_k[s + 1] - cu_seqlens_k[s]);
    ses_real *mask = ses_tape_host_alloc(v->p->tape, (size_t)v->pairs, sizeof *mask), *at = mask;
    for (int64_t s = 0; mask && s < v->seqs->seqs; s++) {
        int64_t len = cu[s + 1] - cu[s], all = cu_seqlens_k[s + 1] - cu_seqlens_k[s];
        /* The keys of token i start at i - first. */
        int64_t first = all > c->xl.mem_len ? c->xl.mem_len - (all - len) : len;
        for (int64_t i = 0; i < len; i++)
            for (int64_t j = 0; j < all; j++, at++)
                if (j > i + all - len || (c->xl.same_length && j <= i - first)) *at = mask_value;
    }
    if (mask) v->mask = ses_tape_input(v->p->tape, mask, SES_DIM(v->pairs));
    return mask != NULL;
}

static ses_tensor *attend(const pass_state *v, ses_tensor *all, int i)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_layer *l = &v->k->layer[i];
    const relative *r = &((const xl_params *)v->k->priv)->layer[i];
    int64_t inner = c->attention.heads * c->attention.head_size;
    bool wants_probs = v->p->request->attentions, has_mems = v->keys.tokens > v->seqs->tokens;
    ses_tensor *qkv = ses_dense_run(t, l->self.query, all, SES_ACT_NONE), *probs;
    ses_xl_attention_inputs in = { .seqs = v->seqs, .mask = v->mask, .pairs = v->pairs };
    in.query = ses_columns(t, qkv, 0, inner);
    in.key = ses_columns(t, qkv, inner, inner);
    in.value = ses_columns(t, qkv, 2 * inner, inner);
    if (has_mems) { /* queries are the batch's tokens only */
        int32_t *row = ses_tape_host_alloc(t, (size_t)v->seqs->tokens, sizeof *row);
        int64_t n = 0;
        for (int64_t s = 0; row && s < v->seqs->seqs; s++)
            for (int32_t j = v->keys.host_cu_seqlens[s] + (int32_t)ses_xl_mem_len(&v->keys, s);
                 j < v->keys.host_cu_seqlens[s + 1]; j++)
                row[n++] = j;
        in.query = row ? ses_gather(t, in.query, ses_tape_ints(t, row, n)) : NULL;
    }
    in.site = ses_layer_site_of(v->k, i);
    in.distance = ses_dense_run(t, r->distance, v->keys.sines, SES_ACT_NONE);
    in.content_bias = r->bias[0], in.distance_bias = r->bias[1];
    ses_tensor *y = ses_xl_attention(&v->keys, &in, wants_probs ? &probs : NULL);
    if (wants_probs) ses_forward_output(v->p, SES_PER_QUERY_KEY, probs, "attentions.%d", i);
    return ses_dropout(t, ses_dense_run(t, l->self.out, y, SES_ACT_NONE), c->dropout.hidden);
}

static ses_tensor *layer(const pass_state *v, ses_tensor *x, int i)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_layer *l = &v->k->layer[i];
    ses_layer_site at = ses_layer_site_of(v->k, i);
    ses_tensor *all = ses_xl_concat_mems(&v->keys, x, i);
    if (c->xl.mem_len) ses_xl_output_mems(&v->keys, all, i);
    if (c->norm.placement == SES_PRE_NORM) {
        ses_tensor *y = attend(v, ses_norm_run(t, l->self_norm, all, NULL, c->norm.eps), i);
        return ses_layer_ffn(l, v->p, &at, ses_add(t, y, x));
    }
    return ses_layer_ffn(l, v->p, &at, ses_norm_run(t, l->self_norm, attend(v, all, i), x, c->norm.eps));
}

static ses_tensor *output_hidden(const pass_state *v, ses_tensor *x, int i)
{
    if (v->p->hooked) {
        ses_layer_site at = ses_layer_site_of(v->k, i);
        x = ses_hook_hidden(v->p, &at, x);
    }
    if (v->p->request->hidden_states) ses_forward_output(v->p, SES_PER_TOKEN, x, "hidden_states.%d", i);
    return x;
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs)
{
    ses_tape *t = p->tape;
    const xl_params *o = k->priv;
    pass_state v = { .k = k, .p = p, .seqs = seqs, .keys = { .p = p, .zero_mem_len = p->c->xl.mem_len } };
    if (!ses_xl_keys_begin(&v.keys, false) || !set_mask(&v)) return NULL;
    bool rewinds = !p->captures && !p->request->hidden_states && !p->request->attentions && !p->request->mems;
    ses_tape_mark start = ses_tape_get_mark(t);
    ses_tensor *x = ses_adaptive_softmax_embed(&o->clusters, p, seqs);
    if (p->hooks_embeds) x = ses_hook_embeds(p, seqs, x);
    x = ses_dropout(t, x, p->c->dropout.hidden);
    for (int i = 0; i < (int)k->depth; i++) {
        x = output_hidden(&v, x, i);
        x = layer(&v, x, i);
        if (rewinds) x = ses_tape_rewind(t, start, x);
        ses_tape_wrap_error(t, "layer %d", i);
    }
    x = ses_dropout(t, x, p->c->dropout.hidden);
    return output_hidden(&v, x, (int)k->depth);
}

static const ses_stack_vtable vtable = { .add = add, .run = run };

/* ---- tables ---- */

static const ses_tensor_name tensors[] = {
    { "embed.cluster.#.table", "word_emb.emb_layers.#.weight" },
    { "embed.cluster.#.project", "word_emb.emb_projs.#" },
    { "layer.#.attn.qkv.*", "layers.#.dec_attn.qkv_net.*" },
    { "layer.#.attn.out.*", "layers.#.dec_attn.o_net.*" },
    { "layer.#.attn.distance.*", "layers.#.dec_attn.r_net.*" },
    { "layer.#.attn.content_bias", "layers.#.dec_attn.r_w_bias" },
    { "layer.#.attn.distance_bias", "layers.#.dec_attn.r_r_bias" },
    { "attn.content_bias", "r_w_bias" },
    { "attn.content_bias", "layers.0.dec_attn.r_w_bias" },
    { "attn.distance_bias", "r_r_bias" },
    { "attn.distance_bias", "layers.0.dec_attn.r_r_bias" },
    { "layer.#.attn.norm.*", "layers.#.dec_attn.layer_norm.*" },
    { "layer.#.ffn.up.*", "layers.#.pos_ff.CoreNet.0.*" },
    { "layer.#.ffn.down.*", "layers.#.pos_ff.CoreNet.3.*" },
    { "layer.#.ffn.norm.*", "layers.#.pos_ff.layer_norm.*" },
    { "lm.cluster.#.*", "/crit.out_layers.#.*" },
    { "lm.project.#", "/crit.out_projs.#" },
    { "lm.clusters.weight", "/crit.cluster_weight" },
    { "lm.clusters.bias", "/crit.cluster_bias" },
    { "classify.out.*", "/score.*" },
};

static const ses_class classes[] = {
    { .name = "TransfoXLModel" },
    SES_CLASS("TransfoXLLMHeadModel", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("TransfoXLForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

const ses_model_desc ses_model_transfo_xl = {
    .name = "transfo-xl",
    .prefix = "transformer.",
    .vtable = &vtable,
    .defaults = { .pad_id = -1,
                  .eos_id = -1,
                  .decoder.start_id = -1,
                  .xl.mem_len = 1600,
                  .xl.clamp_len = 1000,
                  .adaptive.div_val = 4,
                  .norm.eps = 1e-5,
                  .dropout.hidden = 0.1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_RELU,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .position.kind = SES_POS_NONE,
                  .embed.tied = true,
                  .attention.causal = true,
                  .xl.same_length = true,
                  .xl.segment_recurrence = true,
                  .head.no_classifier_bias = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
