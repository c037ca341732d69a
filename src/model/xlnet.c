/* XLNet (Yang et al. 2019): permutation language model. Attention is Transformer-XL's: scores of content,
 * distance (projected sinusoids) and segment, with mems. To predict positions, a second stream of queries
 * knows the position but not the token (two-stream attention). */
#include "model_desc.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"
#include "nn/xl_attention.h"

#include <stdio.h>
#include <string.h>

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("n_token", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("vocab_size", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("d_model", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("n_layer", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("n_head", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("d_inner", ffn.width, SES_MAX_FFN),
    SES_KEY_INTEGER("d_head", attention.head_size, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("mem_len", xl.mem_len, 0, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("reuse_len", xl.reuse_len, 0, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("clamp_len", xl.clamp_len, -1, SES_MAX_POSITIONS),
    SES_KEY_NUMBER("layer_norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("summary_first_dropout", dropout.summary_first),
    SES_KEY_RATE("summary_last_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("ff_activation", ffn.act),
    SES_KEY_ACTIVATION("summary_activation", summary.act),
    SES_KEY_FLAG("bi_data", xl.bi_data),
    SES_KEY_FLAG("same_length", xl.same_length),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_INTEGER("start_n_top", head.start_n_top, 1, SES_MAX_BEAM),
    SES_KEY_INTEGER("end_n_top", head.end_n_top, 1, SES_MAX_BEAM),
};

/* Is the key present and null? */
static bool is_null(const ses_json *config, const char *key)
{
    const ses_json *v = ses_json_get(config, key);
    return v && ses_json_type_of(v) == SES_JSON_NULL;
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const directions[] = { "bi", "uni" };
    static const char *const summaries[] = { "last", "first", "mean", "cls_index" };
    static const ses_summary summary[] = { SES_SUMMARY_LAST_TOKEN, SES_SUMMARY_FIRST, SES_SUMMARY_MEAN,
                                           SES_SUMMARY_LAST_TOKEN };
    size_t direction, kind;
    bool project = true;
    if (!ses_config_name(config, "attn_type", directions, SES_LEN(directions), &direction, e) ||
        !ses_config_name(config, "summary_type", summaries, SES_LEN(summaries), &kind, e) ||
        !ses_config_bool(config, "summary_use_proj", &project, e))
        return false;
    if (!c->vocab) return ses_fail(e, SES_EFORMAT, "\"vocab_size\" is missing");
    if (c->hidden % c->attention.heads ||
        (c->attention.head_size && c->attention.head_size != c->hidden / c->attention.heads))
        return ses_fail(e, SES_EARG, "\"d_head\" must be \"d_model\" / \"n_head\"");
    if (c->hidden % 2)
        return ses_fail(e, SES_EARG, "\"d_model\" %lld is odd: sinusoidal positions need pairs of columns",
                        (long long)c->hidden);
    if (is_null(config, "mem_len")) c->xl.mem_len = 0;
    if (is_null(config, "summary_activation")) c->summary.act = SES_ACT_NONE;
    if (c->xl.clamp_len < 0) c->xl.clamp_len = 0;
    c->attention.causal = direction == 1;
    c->summary.kind = summary[kind];
    c->summary.no_proj = !project;
    c->dropout.attention = c->dropout.act = c->dropout.hidden;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

/* ---- parameters ---- */

typedef struct relative {                                    /* parameters of a layer */
    ses_dense position;                                      /* projects the sinusoidal embeddings */
    ses_tensor *content_bias, *position_bias, *segment_bias; /* [heads, D], added to queries */
    ses_tensor *segment;                                     /* [2, heads, D]: same segment, other segment */
} relative;

typedef struct xlnet_params {
    ses_tensor *mask; /* [1, 1, C]: initial state of the query stream */
    relative layer[];
} xlnet_params;

/* [C, heads, D], as transformers stores the attention projections. */
static ses_dense attn_projection(ses_store *s, const ses_config *c, ses_weight_layout layout, int i,
                                 const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "layer.%d.attn.%s", i, what);
    ses_dense d = { .layout = layout };
    d.w = ses_store_add(s, name, SES_DIM(c->hidden, c->attention.heads, c->hidden / c->attention.heads),
                        SES_INIT_NORMAL);
    ses_store_set_dense(s, d.w, layout);
    return d;
}

static ses_tensor *attn_bias(ses_store *s, const ses_config *c, int i, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "layer.%d.attn.%s", i, what);
    return ses_store_add(s, name, SES_DIM(c->attention.heads, c->hidden / c->attention.heads),
                         SES_INIT_NORMAL);
}

static void add_layer(ses_layer *l, relative *r, ses_store *s, const ses_config *c, int i)
{
    char name[64];
    l->self.query = attn_projection(s, c, SES_IN_OUT, i, "query");
    l->self.key = attn_projection(s, c, SES_IN_OUT, i, "key");
    l->self.value = attn_projection(s, c, SES_IN_OUT, i, "value");
    l->self.out = attn_projection(s, c, SES_OUT_IN, i, "out");
    r->position = attn_projection(s, c, SES_IN_OUT, i, "place");
    r->content_bias = attn_bias(s, c, i, "content_bias");
    r->position_bias = attn_bias(s, c, i, "place_bias");
    r->segment_bias = attn_bias(s, c, i, "segment_bias");
    snprintf(name, sizeof name, "layer.%d.attn.segment", i);
    r->segment = ses_store_add(s, name, SES_DIM(2, c->attention.heads, c->hidden / c->attention.heads),
                               SES_INIT_NORMAL);
    l->self_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "layer.%d.attn.norm", i);
    l->up = ses_dense_add(s, c->ffn.width, c->hidden, SES_BIAS, "layer.%d.ffn.up", i);
    l->down = ses_dense_add(s, c->hidden, c->ffn.width, SES_BIAS, "layer.%d.ffn.down", i);
    l->ffn_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "layer.%d.ffn.norm", i);
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    xlnet_params *o = ses_alloc(sizeof *o + (size_t)k->depth * sizeof *o->layer, e);
    k->priv = o;
    k->n_unique = k->depth;
    k->layer = o ? ses_alloc_array((size_t)k->depth, sizeof *k->layer, e) : NULL;
    if (!k->layer) return false;
    k->token = ses_store_add(s, "embed.token", SES_DIM(c->vocab, c->hidden), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->token);
    o->mask = ses_store_add(s, "embed.mask", SES_DIM(1, 1, c->hidden), SES_INIT_NORMAL);
    for (int i = 0; i < (int)k->depth; i++) add_layer(&k->layer[i], &o->layer[i], s, c, i);
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

/* Queries of one stream: all tokens (content), or the predicted positions (query). */
typedef struct stream {
    const ses_seqs *seqs;
    ses_tensor *position; /* positions among the keys; NULL: queries are the last keys */
    ses_tensor *mask;     /* NULL: no mask */
    int64_t pairs;
    ses_axis state, pair;
    const char *prefix; /* start of output names */
} stream;

/* State shared by all layers. */
typedef struct pass_state {
    const ses_stack *k;
    ses_forward_ctx *p;
    stream content, query; /* query.seqs NULL: no positions to predict */
    ses_xl_keys keys;
} pass_state;

/* May query i of sequence s attend to key j? In the content stream a token always attends to itself. */
static bool may_attend(const pass_state *v, const stream *q, int64_t s, int64_t i, int64_t j,
                       const uint8_t *perm, int64_t len)
{
    const ses_config *c = v->p->c;
    int64_t mem = ses_xl_mem_len(&v->keys, s);
    if (q == &v->content && j == mem + i) return true;
    if (c->attention.causal && (j > mem + i || (c->xl.same_length && j < i))) return false;
    return !(perm && j >= mem && perm[i * len + j - mem]);
}

/* The additive mask of the stream's queries over the keys. */
static void set_stream(pass_state *v, stream *q, const ses_seqs *seqs, const int32_t *positions)
{
    /* transformers' value: if all keys are masked, all get the same weight */
    static const ses_real mask_value = -1e30f;
    const ses_batch *b = v->p->batch;
    ses_tape *t = v->p->tape;
    bool masked = b->perm_mask || v->p->c->attention.causal;
    int64_t n = 0, perm = 0;
    q->seqs = seqs;
    for (int64_t s = 0; s < b->seqs; s++)
        q->pairs += (int64_t)(seqs->host_cu_seqlens[s + 1] - seqs->host_cu_seqlens[s]) *
                    (v->keys.host_cu_seqlens[s + 1] - v->keys.host_cu_seqlens[s]);
    ses_real *mask = masked ? ses_tape_host_alloc(t, (size_t)q->pairs, sizeof *mask) : NULL;
    int32_t *position = positions ? ses_tape_host_alloc(t, (size_t)seqs->tokens, sizeof *position) : NULL;
    for (int64_t s = 0; (mask || position) && s < b->seqs; s++) {
        int64_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        for (int32_t r = seqs->host_cu_seqlens[s]; r < seqs->host_cu_seqlens[s + 1]; r++) {
            int64_t i = positions ? positions[r] : r - seqs->host_cu_seqlens[s];
            if (position) position[r] = (int32_t)(i + ses_xl_mem_len(&v->keys, s));
            for (int64_t j = 0; mask && j < v->keys.host_cu_seqlens[s + 1] - v->keys.host_cu_seqlens[s];
                 j++, n++)
                if (!may_attend(v, q, s, i, j, b->perm_mask ? b->perm_mask + perm : NULL, len))
                    mask[n] = mask_value;
        }
        perm += len * len;
    }
    if (mask) q->mask = ses_tape_input(t, mask, SES_DIM(q->pairs));
    if (position) q->position = ses_tape_ints(t, position, seqs->tokens);
}

typedef struct keys_of { /* keys and values of a layer, for both streams */
    ses_tensor *key, *value, *position;
} keys_of;

static ses_tensor *attend(const pass_state *v, const stream *q, const keys_of *keyed, ses_tensor *x, int i)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_layer *l = &v->k->layer[i];
    const relative *r = &((const xlnet_params *)v->k->priv)->layer[i];
    bool wants_probs = v->p->request->attentions;
    ses_xl_attention_inputs in = {
        .seqs = q->seqs, .q_pos = q->position, .mask = q->mask, .pairs = q->pairs
    };
    in.query = ses_dense_run(t, l->self.query, x, SES_ACT_NONE);
    in.key = keyed->key, in.value = keyed->value, in.distance = keyed->position;
    in.content_bias = r->content_bias, in.distance_bias = r->position_bias, in.segment_bias = r->segment_bias;
    if (v->keys.label) in.segment = ses_reshape(t, r->segment, SES_DIM(2, c->hidden));
    in.site = ses_layer_site_of(v->k, i);
    in.site.prefix = q->prefix;
    if (q == &v->query) in.site.queries = SES_PER_TARGET;
    in.reversed_from = c->xl.bi_data ? v->p->batch->seqs / 2 : 0;
    ses_tensor *probs, *y = ses_xl_attention(&v->keys, &in, wants_probs ? &probs : NULL);
    if (wants_probs) ses_forward_output(v->p, q->pair, probs, "%sattentions.%d", q->prefix, i);
    y = ses_dropout(t, ses_dense_run(t, l->self.out, y, SES_ACT_NONE), c->dropout.hidden);
    return ses_layer_ffn(l, v->p, &in.site, ses_norm_run(t, l->self_norm, y, x, c->norm.eps));
}

/* Runs layer i on both streams: both attend to the content stream h. */
static void layer(const pass_state *v, ses_tensor **h, ses_tensor **g, int i)
{
    ses_tape *t = v->p->tape;
    const ses_layer *l = &v->k->layer[i];
    const relative *r = &((const xlnet_params *)v->k->priv)->layer[i];
    ses_tensor *all = ses_xl_concat_mems(&v->keys, *h, i);
    ses_xl_output_mems(&v->keys, all, i);
    keys_of keyed = { .key = ses_dense_run(t, l->self.key, all, SES_ACT_NONE),
                      .value = ses_dense_run(t, l->self.value, all, SES_ACT_NONE),
                      .position = ses_dense_run(t, r->position, v->keys.sines, SES_ACT_NONE) };
    *h = attend(v, &v->content, &keyed, *h, i);
    if (*g) *g = attend(v, &v->query, &keyed, *g, i);
}

/* hidden_states.N: with two streams, content and query states alternate. */
static void output_hidden(const pass_state *v, ses_tensor *h, ses_tensor *g, int i)
{
    if (!v->p->request->hidden_states) return;
    ses_forward_output(v->p, SES_PER_TOKEN, h, "hidden_states.%d", g ? 2 * i : i);
    if (g) ses_forward_output(v->p, SES_PER_TARGET, g, "hidden_states.%d", 2 * i + 1);
}

static ses_tensor *hook_hidden(const pass_state *v, ses_tensor *h, int i)
{
    ses_layer_site at = ses_layer_site_of(v->k, i);
    return ses_hook_hidden(v->p, &at, h);
}

static pass_state scene_of(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs)
{
    pass_state v = { .k = k, .p = p, .keys = { .p = p } };
    v.content = (stream){ .pair = SES_PER_QUERY_KEY, .prefix = "" };
    v.query = (stream){ .pair = SES_PER_CROSS_QUERY_KEY, .prefix = "query_" };
    if (p->c->xl.bi_data && p->batch->seqs % 2)
        ses_tape_fail(p->tape, SES_EARG,
                      "\"bi_data\" is true: the second half of a batch is reversed, but "
                      "%lld sequences are an odd number",
                      (long long)p->batch->seqs);
    if (!ses_xl_keys_begin(&v.keys, true)) return v;
    set_stream(&v, &v.content, seqs, NULL);
    if (p->batch->predict_positions) set_stream(&v, &v.query, &p->target, p->batch->predict_positions);
    return v;
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs)
{
    ses_tape *t = p->tape;
    const xlnet_params *o = k->priv;
    pass_state v = scene_of(k, p, seqs);
    if (!ses_tape_ok(t, NULL)) return NULL; /* keys or queries may be NULL */
    bool rewinds = !p->captures && !p->request->hidden_states && !p->request->attentions &&
                   !p->request->mems && !v.query.seqs;
    ses_tape_mark start = ses_tape_get_mark(t);
    ses_tensor *g = NULL, *h = ses_embed(t, 1, &k->token, &seqs->ids, -1);
    if (p->hooks_embeds) h = ses_hook_embeds(p, seqs, h);
    h = ses_dropout(t, h, p->c->dropout.hidden);
    if (v.query.seqs) { /* all positions start with the same state */
        const int32_t *zero = ses_tape_host_alloc(t, (size_t)p->target.tokens, sizeof *zero);
        ses_tensor *mask = ses_reshape(t, o->mask, SES_DIM(1, p->c->hidden));
        g = zero ? ses_gather(t, mask, ses_tape_ints(t, zero, p->target.tokens)) : NULL;
        g = ses_dropout(t, g, p->c->dropout.hidden);
    }
    for (int i = 0; i < (int)k->depth; i++) {
        if (p->hooked) h = hook_hidden(&v, h, i);
        output_hidden(&v, h, g, i);
        layer(&v, &h, &g, i);
        if (rewinds) h = ses_tape_rewind(t, start, h);
        ses_tape_wrap_error(t, "layer %d", i);
    }
    if (p->hooked) h = hook_hidden(&v, h, (int)k->depth);
    output_hidden(&v, h, g, (int)k->depth);
    return ses_dropout(t, g ? g : h, p->c->dropout.hidden);
}

static const ses_stack_vtable directions = { .add = add, .run = run };

/* ---- tables ---- */

static const ses_tensor_name tensors[] = {
    { "embed.token", "word_embedding.weight" },
    { "embed.mask", "mask_emb" },
    { "layer.#.attn.query", "layer.#.rel_attn.q" },
    { "layer.#.attn.key", "layer.#.rel_attn.k" },
    { "layer.#.attn.value", "layer.#.rel_attn.v" },
    { "layer.#.attn.out", "layer.#.rel_attn.o" },
    { "layer.#.attn.place", "layer.#.rel_attn.r" },
    { "layer.#.attn.content_bias", "layer.#.rel_attn.r_w_bias" },
    { "layer.#.attn.place_bias", "layer.#.rel_attn.r_r_bias" },
    { "layer.#.attn.segment_bias", "layer.#.rel_attn.r_s_bias" },
    { "layer.#.attn.segment", "layer.#.rel_attn.seg_embed" },
    { "layer.#.attn.norm.*", "layer.#.rel_attn.layer_norm.*" },
    { "layer.#.ffn.up.*", "layer.#.ff.layer_1.*" },
    { "layer.#.ffn.down.*", "layer.#.ff.layer_2.*" },
    { "layer.#.ffn.norm.*", "layer.#.ff.layer_norm.*" },
    { "lm.out.weight", "/lm_loss.weight" },
    { "lm.out.bias", "/lm_loss.bias" },
    { "classify.dense.*", "/sequence_summary.summary.*" },
    { "classify.out.*", "/logits_proj.*" },
    { "choice.dense.*", "/sequence_summary.summary.*" },
    { "choice.out.*", "/logits_proj.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
    { "beam.start.*", "/start_logits.dense.*" },
    { "beam.end.dense.*", "/end_logits.dense_0.*" },
    { "beam.end.norm.*", "/end_logits.LayerNorm.*" },
    { "beam.end.out.*", "/end_logits.dense_1.*" },
    { "beam.none.dense.*", "/answer_class.dense_0.*" },
    { "beam.none.out.*", "/answer_class.dense_1.*" },
};

static const ses_class classes[] = {
    { .name = "XLNetModel" },
    SES_CLASS("XLNetLMHeadModel", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("XLNetForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("XLNetForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("XLNetForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("XLNetForQuestionAnsweringSimple", SES_USE_HEAD(question_answering, "")),
    { .name = "XLNetForQuestionAnswering",
      .passage_first = true,
      .head = { SES_USE_PAIR_HEAD(answer_beam, "") } },
};

static const char *const reads[] = { "summary_type", NULL };

const ses_model_desc ses_model_xlnet = {
    .name = "xlnet",
    .prefix = "transformer.",
    .vtable = &directions,
    .defaults = { .pad_id = 5,
                  .xl.mem_len = 512,
                  .norm.eps = 1e-12,
                  .dropout.hidden = 0.1,
                  .dropout.head = 0.1,
                  .dropout.token_classification = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_GELU,
                  .summary.act = SES_ACT_TANH,
                  .position.kind = SES_POS_NONE,
                  .embed.tied = true,
                  .head.start_n_top = 5,
                  .head.end_n_top = 5,
                  .lm.no_transform = true,
                  .lm.bias = true,
                  .xl.relative_segments = true,
                  .embed.train_pad = true,
                  .xl.permutation_lm = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
