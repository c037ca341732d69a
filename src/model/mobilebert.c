/* MobileBERT (Sun et al. 2020): a deep, thin BERT. Each layer has an input and an output bottleneck and
 * several feed-forward blocks; norms may be NoNorm (scale and shift without statistics); the input of a token
 * is its vector and both neighbors'. */
#include "model_desc.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"

#include <string.h>

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("embedding_size", embed.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("intra_bottleneck_size", bottleneck.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("num_feedforward_networks", bottleneck.ffns, 1, 64),
    SES_KEY_FLAG("trigram_input", embed.trigram),
    SES_KEY_FLAG("use_bottleneck_attention", bottleneck.for_attention),
    SES_KEY_FLAG("key_query_shared_bottleneck", bottleneck.key_query_shared),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *norm = NULL;
    bool has_bottleneck = true, activate = true;
    if (!ses_config_text(config, "normalization_type", &norm, e) ||
        !ses_config_bool(config, "use_bottleneck", &has_bottleneck, e) ||
        !ses_config_bool(config, "classifier_activation", &activate, e))
        return false;
    if (norm && strcmp(norm, "no_norm") && strcmp(norm, "layer_norm"))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"normalization_type\" is \"%s\", expected no_norm or layer_norm", norm);
    if (c->embed.segments < 1) return ses_fail(e, SES_EARG, "\"type_vocab_size\" is 0, expected 1 or more");
    if (!has_bottleneck) c->bottleneck.width = 0;
    int64_t width = has_bottleneck ? c->bottleneck.width : c->hidden;
    if (width % c->attention.heads)
        return ses_fail(e, SES_EARG, "a width of %lld is not a multiple of %lld heads", (long long)width,
                        (long long)c->attention.heads);
    if (has_bottleneck && !c->bottleneck.for_attention && !c->bottleneck.key_query_shared &&
        width != c->hidden)
        return ses_fail(e, SES_EARG,
                        "attention is %lld wide (\"intra_bottleneck_size\") but its input %lld: "
                        "\"key_query_shared_bottleneck\" or \"use_bottleneck_attention\" must be true",
                        (long long)width, (long long)c->hidden);
    if (c->embed.width > c->hidden)
        return ses_fail(e, SES_EARG, "\"embedding_size\" %lld is above \"hidden_size\" %lld",
                        (long long)c->embed.width, (long long)c->hidden);
    c->attention.head_size = width / c->attention.heads;
    c->norm.affine_only = !norm || !strcmp(norm, "no_norm");
    c->pooler.no_dense = !activate;
    return ses_bert_post_read(c, config, e);
}

/* ---- parameters ---- */

static const double norm_eps = 1e-5; /* for norms without an epsilon in config.json */

typedef struct bottleneck { /* into or out of a bottleneck */
    ses_dense dense;
    ses_norm norm;
} bottleneck;

typedef struct block { /* a feed-forward block */
    ses_dense up, down;
    ses_norm norm;
} block;

typedef struct layer_params {
    bottleneck in, attention, back; /* residual and feed-forward; queries and keys; back to full width */
    block *more;                    /* [ffns - 1]: all blocks but the last */
} layer_params;

typedef struct mobilebert_params {
    ses_dense embed; /* from a token and its neighbors */
    layer_params layer[];
} mobilebert_params;

static bottleneck bottleneck_add(ses_store *s, int64_t out, int64_t in, int i, const char *what)
{
    return (bottleneck){ .dense = ses_dense_add(s, out, in, SES_BIAS, "layer.%d.%s.dense", i, what),
                         .norm = ses_norm_add(s, out, SES_NORM_LAYER, "layer.%d.%s.norm", i, what) };
}

static void add_layer(ses_layer *l, layer_params *b, ses_store *s, const ses_config *c, int i)
{
    int64_t C = c->hidden, W = c->attention.head_size * c->attention.heads,
            V = c->bottleneck.width && c->bottleneck.for_attention ? W : C;
    l->self.query = ses_dense_add(s, W, W, SES_BIAS, "layer.%d.attn.query", i);
    l->self.key = ses_dense_add(s, W, W, SES_BIAS, "layer.%d.attn.key", i);
    l->self.value = ses_dense_add(s, W, V, SES_BIAS, "layer.%d.attn.value", i);
    l->self.out = ses_dense_add(s, W, W, SES_BIAS, "layer.%d.attn.out", i);
    l->self_norm = ses_norm_add(s, W, SES_NORM_LAYER, "layer.%d.attn.norm", i);
    l->up = ses_dense_add(s, c->ffn.width, W, SES_BIAS, "layer.%d.ffn.up", i);
    l->down = ses_dense_add(s, W, c->ffn.width, SES_BIAS, "layer.%d.ffn.down", i);
    l->ffn_norm = ses_norm_add(s, W, SES_NORM_LAYER, "layer.%d.ffn.norm", i);
    if (c->bottleneck.width) {
        b->in = bottleneck_add(s, W, C, i, "narrow.input");
        if (c->bottleneck.key_query_shared) b->attention = bottleneck_add(s, W, C, i, "narrow.attention");
        b->back = bottleneck_add(s, C, W, i, "back");
    }
    for (int j = 0; j < (int)c->bottleneck.ffns - 1; j++) { /* numbered as in transformers */
        b->more[j].up =
            ses_dense_add(s, c->ffn.width, W, SES_BIAS, "layer.%d.stack.%d.intermediate.dense", i, j);
        b->more[j].down = ses_dense_add(s, W, c->ffn.width, SES_BIAS, "layer.%d.stack.%d.output.dense", i, j);
        b->more[j].norm = ses_norm_add(s, W, SES_NORM_LAYER, "layer.%d.stack.%d.output.LayerNorm", i, j);
    }
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    size_t n = (size_t)k->depth, more = (size_t)c->bottleneck.ffns - 1;
    mobilebert_params *o = ses_alloc(sizeof *o + n * (sizeof *o->layer + more * sizeof(block)), e);
    k->priv = o;
    k->n_unique = k->depth;
    k->layer = o ? ses_alloc_array(n, sizeof *k->layer, e) : NULL;
    if (!k->layer) return false;
    for (size_t i = 0; i < n; i++) o->layer[i].more = (block *)(void *)(o->layer + n) + i * more;
    k->token = ses_store_add(s, "embed.token", SES_DIM(c->vocab, c->embed.width), SES_INIT_NORMAL);
    k->position = ses_store_add(s, "embed.position", SES_DIM(c->position.max, c->hidden), SES_INIT_NORMAL);
    k->segment = ses_store_add(s, "embed.segment", SES_DIM(c->embed.segments, c->hidden), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->token);
    ses_store_set_embedding(s, k->position);
    ses_store_set_embedding(s, k->segment);
    o->embed =
        ses_dense_add(s, c->hidden, c->embed.width * (c->embed.trigram ? 3 : 1), SES_BIAS, "embed.project");
    k->embed_norm = ses_norm_add(s, c->hidden, SES_NORM_LAYER, "embed.norm");
    for (int i = 0; i < (int)n; i++) add_layer(&k->layer[i], &o->layer[i], s, c, i);
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

/* norm(x + residual), or scale and shift only (NoNorm). */
static ses_tensor *norm(ses_forward_ctx *p, ses_norm n, ses_tensor *x, ses_tensor *residual, double eps)
{
    if (!p->c->norm.affine_only) return ses_norm_run(p->tape, n, x, residual, eps);
    return ses_affine(p->tape, residual ? ses_add(p->tape, x, residual) : x, n.gain, n.bias);
}

static ses_tensor *embed(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    ses_tensor *x = ses_embed(t, 1, &k->token, &q->ids, (int32_t)c->pad_id);
    if (p->hooks_embeds) x = ses_hook_embeds(p, q, x);
    if (c->embed.trigram)
        x = ses_concat(t, 3,
                       (ses_tensor *const[]){ ses_seqs_shift(p, q, x, 1), x, ses_seqs_shift(p, q, x, -1) });
    if (c->embed.trigram || c->embed.width != c->hidden)
        x = ses_dense_run(t, ((const mobilebert_params *)k->priv)->embed, x, SES_ACT_NONE);
    x = ses_add(t, x, ses_embed(t, 1, &k->position, &q->positions, -1));
    x = norm(p, k->embed_norm, x, ses_embed(t, 1, &k->segment, &q->segments, -1), norm_eps);
    return ses_dropout(t, x, c->dropout.hidden);
}

/* The feed-forward blocks of a layer in a pass with captures or edits; act NULL: none. */
typedef struct hooked_blocks {
    ses_layer_site at;
    ses_tensor **act; /* [ffns] activations */
} hooked_blocks;

/* Block j of the layer, without its norm. */
static ses_tensor *feed_forward(ses_forward_ctx *p, hooked_blocks *h, int64_t j, ses_dense up, ses_dense down,
                                ses_tensor *x)
{
    ses_tensor *y = ses_dense_run(p->tape, up, x, p->c->ffn.act);
    if (h->act && y) y = h->act[j] = ses_hook_ffn_block(p, &h->at, j, y);
    return ses_dense_run(p->tape, down, y, SES_ACT_NONE);
}

/* All blocks; the last one is followed by dropout. */
static ses_tensor *feed_forwards(const ses_stack *k, ses_forward_ctx *p, ses_tensor *y, double dropout, int i)
{
    const ses_config *c = p->c;
    const ses_layer *l = &k->layer[i];
    const block *more = ((const mobilebert_params *)k->priv)->layer[i].more;
    int64_t last = c->bottleneck.ffns - 1;
    hooked_blocks h = { .at = ses_layer_site_of(k, i) };
    if (p->hooked) h.act = ses_tape_host_alloc(p->tape, (size_t)last + 1, sizeof(ses_tensor *));
    for (int64_t j = 0; j < last; j++)
        y = norm(p, more[j].norm, feed_forward(p, &h, j, more[j].up, more[j].down, y), y, c->norm.eps);
    ses_tensor *z = ses_dropout(p->tape, feed_forward(p, &h, last, l->up, l->down, y), dropout);
    if (h.act) ses_hook_ffn_blocks(p, &h.at, last + 1, h.act);
    return norm(p, l->ffn_norm, z, y, norm_eps);
}

static ses_tensor *into(ses_forward_ctx *p, const bottleneck *n, ses_tensor *x)
{
    return norm(p, n->norm, ses_dense_run(p->tape, n->dense, x, SES_ACT_NONE), NULL, p->c->norm.eps);
}

static ses_tensor *layer(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                         int i)
{
    const ses_config *c = p->c;
    const ses_layer *l = &k->layer[i];
    const layer_params *b = &((const mobilebert_params *)k->priv)->layer[i];
    ses_tape *t = p->tape;
    bool has_bottleneck = c->bottleneck.width > 0;
    /* with bottlenecks, dropout follows the output bottleneck */
    double dropout = has_bottleneck ? 0 : c->dropout.hidden;
    ses_tensor *in = has_bottleneck ? into(p, &b->in, x) : x, *qk_in = x;
    if (has_bottleneck && c->bottleneck.for_attention)
        qk_in = in;
    else if (has_bottleneck && c->bottleneck.key_query_shared)
        qk_in = into(p, &b->attention, x);
    ses_attention_inputs a = { .q = ses_dense_run(t, l->self.query, qk_in, SES_ACT_NONE),
                               .k = ses_dense_run(t, l->self.key, qk_in, SES_ACT_NONE),
                               .v = ses_dense_run(t, l->self.value,
                                                  has_bottleneck && c->bottleneck.for_attention ? in : x,
                                                  SES_ACT_NONE) };
    ses_tensor *y = ses_dense_run(t, l->self.out, ses_self_attention(k, p, ctx, a, 0, i), SES_ACT_NONE);
    y = norm(p, l->self_norm, ses_dropout(t, y, dropout), in, c->norm.eps);
    y = feed_forwards(k, p, y, dropout, i);
    if (!has_bottleneck) return y;
    y = ses_dropout(t, ses_dense_run(t, b->back.dense, y, SES_ACT_NONE), c->dropout.hidden);
    return norm(p, b->back.norm, y, x, c->norm.eps);
}

static const ses_stack_vtable vtable = { .add = add, .embed = embed, .layer = layer };

/* ---- tables ---- */

static const ses_tensor_name tensors[] = {
    { "embed.project.*", "embeddings.embedding_transformation.*" },
    { "layer.#.narrow.input.dense.*", "encoder.layer.#.bottleneck.input.dense.*" },
    { "layer.#.narrow.input.norm.*", "encoder.layer.#.bottleneck.input.LayerNorm.*" },
    { "layer.#.narrow.attention.dense.*", "encoder.layer.#.bottleneck.attention.dense.*" },
    { "layer.#.narrow.attention.norm.*", "encoder.layer.#.bottleneck.attention.LayerNorm.*" },
    { "layer.#.back.dense.*", "encoder.layer.#.output.bottleneck.dense.*" },
    { "layer.#.back.norm.*", "encoder.layer.#.output.bottleneck.LayerNorm.*" },
    { "layer.#.stack.*", "encoder.layer.#.ffn.*" },
    { "lm.rest", "/cls.predictions.dense.weight" },
};

static const ses_class classes[] = {
    { .name = "MobileBertModel", .pooler = true },
    SES_POOLED_CLASS("MobileBertForPreTraining", SES_USE_HEAD(masked_lm, "prediction_logits"),
                     SES_USE_PAIR_HEAD(next_sentence, "seq_relationship_logits")),
    SES_CLASS("MobileBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_POOLED_CLASS("MobileBertForNextSentencePrediction", SES_USE_HEAD(next_sentence, "logits")),
    SES_POOLED_CLASS("MobileBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_POOLED_CLASS("MobileBertForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("MobileBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("MobileBertForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

const ses_model_desc ses_model_mobilebert = {
    .name = "mobilebert",
    .prefix = "mobilebert.",
    .tokenizer_sets_segments = true,
    .vtable = &vtable,
    .defaults = { .embed.segments = 2,
                  .pad_id = 0,
                  .embed.width = 128,
                  .bottleneck.width = 128,
                  .bottleneck.ffns = 4,
                  .norm.eps = 1e-12,
                  .dropout.attention = 0.1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_RELU,
                  .pooler.act = SES_ACT_TANH,
                  .embed.trigram = true,
                  .bottleneck.key_query_shared = true,
                  .embed.tied = true,
                  .lm.bias = true,
                  .lm.extra_cols = true },
    .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_bert_heads), SES_TABLE(ses_bert_tensors),
                 SES_TABLE(ses_bert_norms) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
