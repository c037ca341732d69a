/* Transformer-XL (Dai et al. 2019): a decoder that remembers. Each layer's keys are what it saw of earlier
 * segments and then the batch's tokens; scores are by content and by distance. The vocabulary is in clusters.
 *
 * A batch without a memory starts as the reference starts it: with "mem_len" zeros for each sequence, which
 * take their part of the attention. A batch whose mem_cu says 0 for a sequence starts it with nothing. */
#include "model_desc.h"

#include "base/alloc.h"
#include "nn/xl_attention.h"

#include <stdio.h>

static const ses_config_key keys[] = {
    SES_INT("vocab_size_or_config_json_file", vocab, 1, SES_MOST_TOKENS),
    SES_INT("n_token", vocab, 1, SES_MOST_TOKENS),
    SES_INT("vocab_size", vocab, 1, SES_MOST_TOKENS),
    SES_NEED("d_model", hidden, SES_MOST_WIDTH),
    SES_INT("d_embed", embed, 1, SES_MOST_WIDTH),
    SES_NEED("n_layer", layers, SES_MAX_LAYERS),
    SES_NEED("n_head", heads, SES_MOST_WIDTH),
    SES_NEED("d_head", head_size, SES_MOST_WIDTH),
    SES_NEED("d_inner", ffn, SES_MOST_FFN),
    SES_INT("div_val", narrower, 1, SES_MOST_WIDTH),
    SES_INT("mem_len", mem_len, 0, SES_MOST_POSITIONS),
    SES_INT("clamp_len", clamp, -1, SES_MOST_POSITIONS),
    SES_NUMBER("layer_norm_epsilon", norm_eps, 0, 1),
    SES_RATE("dropout", drop),
    SES_RATE("dropatt", drop_attention),
    SES_NUMBER("init_std", init_range, 0, 100),
    SES_SWITCH("same_length", same_length),
    SES_SWITCH("tie_weight", tied),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool wrong(const char *key, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "\"%s\" is not as expected: %s", key,
                    key[0] == 'c' ? "rising token ids, at most 7, below the vocabulary's size"
                                  : "true or false for every cluster");
}

static bool read_clusters(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *list = ses_json_get(config, "cutoffs");
    size_t n = ses_json_len(list);
    if (list && ses_json_type_of(list) != SES_JSON_ARRAY) return wrong("cutoffs", e);
    if (n >= SES_MOST_CLUSTERS) return wrong("cutoffs", e);
    for (size_t i = 0; i < n; i++)
        if (!ses_json_int(ses_json_at(list, i), &c->cut[i + 1]) || c->cut[i + 1] <= c->cut[i] ||
            c->cut[i + 1] >= c->vocab)
            return wrong("cutoffs", e);
    c->clusters = (int64_t)n + 1;
    c->cut[n + 1] = c->vocab;
    int64_t width = c->embed ? c->embed : c->hidden;
    for (size_t i = 0; i < n && c->narrower > 1; i++) width /= c->narrower;
    return width > 0 ||
           ses_fail(e, SES_EARG, "\"div_val\" %lld leaves the last cluster no width", (long long)c->narrower);
}

static bool read_ties(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *list = ses_json_get(config, "tie_projs");
    bool share = true;
    if (ses_json_type_of(list) == SES_JSON_NULL) {
        if (!ses_config_bool(config, "proj_share_all_but_first", &share, e)) return false;
        c->tied_projects = share ? ~1u : 0;
        return true;
    }
    if (ses_json_type_of(list) != SES_JSON_ARRAY || (int64_t)ses_json_len(list) > c->clusters)
        return wrong("tie_projs", e);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!ses_json_bool(ses_json_at(list, i), &share)) return wrong("tie_projs", e);
        if (share) c->tied_projects |= 1u << i;
    }
    return true;
}

static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    int64_t kind = 0;
    bool before = false, apart = true;
    if (!ses_config_int(config, "attn_type", &kind, e) || !ses_config_bool(config, "pre_lnorm", &before, e) ||
        !ses_config_bool(config, "untie_r", &apart, e))
        return false;
    if (kind)
        return ses_fail(e, SES_EUNSUPPORTED, "\"attn_type\" is %lld: only 0 is supported", (long long)kind);
    if (!c->vocab) return ses_fail(e, SES_EFORMAT, "\"vocab_size\" is missing");
    if (c->hidden % 2)
        return ses_fail(e, SES_EARG, "\"d_model\" %lld is odd: sines need pairs", (long long)c->hidden);
    if (!read_clusters(c, config, e) || !read_ties(c, config, e)) return false;
    if (c->clamp < 0) c->clamp = 0;
    c->place = before ? SES_PRE_NORM : SES_POST_NORM;
    c->shared_biases = !apart;
    c->drop_act = c->drop;
    c->positions = SES_MOST_POSITIONS; /* no table: any length */
    return true;
}

/* ---- parameters ---- */

typedef struct relative { /* of a layer */
    ses_dense distance;   /* projects the sines */
    ses_tensor *bias[2];  /* [heads, D], of queries: for contents, for distances */
} relative;

typedef struct own {
    ses_clusters clusters;
    relative layer[];
} own;

static void add_biases(ses_tensor *bias[2], ses_store *s, const ses_config *c, const char *where)
{
    static const char *const what[] = { "content_bias", "distance_bias" };
    char name[96];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%sattn.%s", where, what[i]);
        bias[i] = ses_store_add(s, name, SES_DIM(c->heads, c->head_size), SES_INIT_NORMAL);
    }
}

static void add_layer(ses_layer *l, relative *r, ses_store *s, const ses_config *c, int i)
{
    int64_t inner = c->heads * c->head_size;
    char name[64];
    snprintf(name, sizeof name, "layer.%d.", i);
    l->self.query = ses_dense_add(s, 3 * inner, c->hidden, SES_NO_BIAS, "%sattn.qkv", name);
    l->self.out = ses_dense_add(s, c->hidden, inner, SES_NO_BIAS, "%sattn.out", name);
    r->distance = ses_dense_add(s, inner, c->hidden, SES_NO_BIAS, "%sattn.distance", name);
    if (!c->shared_biases) add_biases(r->bias, s, c, name);
    l->self_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "%sattn.norm", name);
    l->up = ses_dense_add(s, c->ffn, c->hidden, SES_BIAS, "%sffn.up", name);
    l->down = ses_dense_add(s, c->hidden, c->ffn, SES_BIAS, "%sffn.down", name);
    l->ffn_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "%sffn.norm", name);
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    own *o = ses_alloc(sizeof *o + (size_t)k->depth * sizeof *o->layer, e);
    ses_tensor *bias[2] = { NULL };
    k->own = o;
    k->distinct = k->depth;
    k->layer = o ? ses_alloc_array((size_t)k->depth, sizeof *k->layer, e) : NULL;
    if (!k->layer) return false;
    ses_clusters_add(&o->clusters, s, c);
    if (c->shared_biases) add_biases(bias, s, c, "");
    for (int i = 0; i < (int)k->depth; i++) {
        o->layer[i].bias[0] = bias[0], o->layer[i].bias[1] = bias[1];
        add_layer(&k->layer[i], &o->layer[i], s, c, i);
    }
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

typedef struct scene {
    const ses_stack *k;
    ses_pass *p;
    const ses_seqs *seqs;
    ses_recall keys;
    ses_tensor *mask;
    int64_t pairs;
} scene;

/* Token i of a sequence sees its memory and the tokens before it; with same_length all see as many. */
static bool lay_mask(scene *v)
{
    static const ses_real hidden = -1e30f;
    const ses_config *c = v->p->c;
    const int32_t *cu = v->seqs->host_cu, *cu_k = v->keys.host_cu;
    for (int64_t s = 0; s < v->seqs->seqs; s++)
        v->pairs += (int64_t)(cu[s + 1] - cu[s]) * (cu_k[s + 1] - cu_k[s]);
    ses_real *mask = ses_tape_host(v->p->tape, (size_t)v->pairs, sizeof *mask), *at = mask;
    for (int64_t s = 0; mask && s < v->seqs->seqs; s++) {
        int64_t len = cu[s + 1] - cu[s], all = cu_k[s + 1] - cu_k[s];
        /* Keys of token i: from i - first. */
        int64_t first = all > c->mem_len ? c->mem_len - (all - len) : len;
        for (int64_t i = 0; i < len; i++)
            for (int64_t j = 0; j < all; j++, at++)
                if (j > i + all - len || (c->same_length && j <= i - first)) *at = hidden;
    }
    if (mask) v->mask = ses_tape_input(v->p->tape, mask, SES_DIM(v->pairs));
    return mask != NULL;
}

static ses_tensor *attend(const scene *v, ses_tensor *all, int i)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_layer *l = &v->k->layer[i];
    const relative *r = &((const own *)v->k->own)->layer[i];
    int64_t inner = c->heads * c->head_size;
    bool want = v->p->want->attentions, remembers = v->keys.tokens > v->seqs->tokens;
    ses_tensor *qkv = ses_dense_run(t, l->self.query, all, SES_ACT_NONE), *probs;
    ses_recall_attend in = { .seqs = v->seqs, .mask = v->mask, .pairs = v->pairs };
    in.query = ses_columns(t, qkv, 0, inner);
    in.key = ses_columns(t, qkv, inner, inner);
    in.value = ses_columns(t, qkv, 2 * inner, inner);
    if (remembers) { /* queries are the batch's tokens only */
        int32_t *row = ses_tape_host(t, (size_t)v->seqs->tokens, sizeof *row);
        int64_t n = 0;
        for (int64_t s = 0; row && s < v->seqs->seqs; s++)
            for (int32_t j = v->keys.host_cu[s] + (int32_t)ses_recall_length(&v->keys, s);
                 j < v->keys.host_cu[s + 1]; j++)
                row[n++] = j;
        in.query = row ? ses_take(t, in.query, ses_tape_ints(t, row, n)) : NULL;
    }
    in.distance = ses_dense_run(t, r->distance, v->keys.sines, SES_ACT_NONE);
    in.content_bias = r->bias[0], in.distance_bias = r->bias[1];
    ses_tensor *y = ses_recall_run(&v->keys, &in, want ? &probs : NULL);
    if (want) ses_pass_output(v->p, SES_PER_PAIR, probs, "attentions.%d", i);
    return ses_dropout(t, ses_dense_run(t, l->self.out, y, SES_ACT_NONE), c->drop);
}

static ses_tensor *layer(const scene *v, ses_tensor *x, int i)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_layer *l = &v->k->layer[i];
    ses_tensor *all = ses_recall_with(&v->keys, x, i);
    if (c->mem_len) ses_recall_note(&v->keys, all, i);
    if (c->place == SES_PRE_NORM) {
        ses_tensor *y = attend(v, ses_norm_run(t, l->self_norm, all, NULL, c->norm_eps), i);
        return ses_layer_end(l, v->p, ses_add(t, y, x));
    }
    return ses_layer_end(l, v->p, ses_norm_run(t, l->self_norm, attend(v, all, i), x, c->norm_eps));
}

static ses_tensor *run(const ses_stack *k, ses_pass *p, const ses_seqs *seqs)
{
    ses_tape *t = p->tape;
    const own *o = k->own;
    scene v = { .k = k, .p = p, .seqs = seqs, .keys = { .p = p, .blank = p->c->mem_len } };
    if (!ses_recall_begin(&v.keys, false) || !lay_mask(&v)) return NULL;
    bool lean = !p->want->hidden_states && !p->want->attentions && !p->want->mems;
    ses_tape_mark start = ses_tape_now(t);
    ses_tensor *x = ses_dropout(t, ses_clusters_embed(&o->clusters, p, seqs), p->c->drop);
    for (int i = 0; i < (int)k->depth; i++) {
        if (p->want->hidden_states) ses_pass_output(p, SES_PER_TOKEN, x, "hidden_states.%d", i);
        x = layer(&v, x, i);
        if (lean) x = ses_tape_rewind(t, start, x);
        ses_tape_where(t, "layer %d", i);
    }
    x = ses_dropout(t, x, p->c->drop);
    if (p->want->hidden_states) ses_pass_output(p, SES_PER_TOKEN, x, "hidden_states.%d", (int)k->depth);
    return x;
}

static const ses_ways ways = { .add = add, .run = run };

/* ---- tables ---- */

static const ses_name tensors[] = {
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
    SES_CLASS("TransfoXLLMHeadModel", SES_ON(causal_lm, "logits")),
    SES_CLASS("TransfoXLForSequenceClassification", SES_ON(classify, "logits")),
};

const ses_model_desc ses_model_transfo_xl = {
    .name = "transfo-xl",
    .prefix = "transformer.",
    .ways = &ways,
    .arch = { .pad = -1,
              .eos = -1,
              .start = -1,
              .mem_len = 1600,
              .clamp = 1000,
              .narrower = 4,
              .norm_eps = 1e-5,
              .drop = 0.1,
              .init_range = 0.02,
              .act = SES_ACT_RELU,
              .summary = SES_SUMMARY_LAST,
              .pos = SES_POS_NONE,
              .tied = true,
              .causal = true,
              .same_length = true,
              .remembers = true,
              .no_summary_bias = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
