/* DeBERTa (He et al. 2020): disentangled attention. A score is the sum of content-to-content,
 * content-to-position (c2p) and position-to-content (p2c) terms, with a table of relative position vectors.
 * Version 1 has query, key and value in one matrix. Versions 2 and 3 have three matrices, may share them with
 * the positions, put large distances into buckets, and may add a convolution to the first layer. */
#include "model_desc.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "nn/layer_hooks.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEYS                                                                                               \
    SES_KEY_INTEGER("max_relative_positions", disentangled.max_relative_positions, -1, SES_MAX_POSITIONS), \
        SES_KEY_FLAG("relative_attention", disentangled.enabled),                                          \
        SES_KEY_ACTIVATION("pooler_hidden_act", summary.act),                                              \
        SES_KEY_RATE("pooler_dropout", dropout.summary_first), SES_KEY_RATE("cls_dropout", dropout.head)
static const ses_config_key keys_v1[] = { KEYS };
static const ses_config_key keys_v2[] = {
    KEYS,
    SES_KEY_INTEGER("position_buckets", disentangled.buckets, -1, SES_MAX_POSITIONS),
    SES_KEY_FLAG("share_att_key", disentangled.share_att_key),
    SES_KEY_INTEGER("conv_kernel_size", conv.kernel_size, 0, 255),
    SES_KEY_ACTIVATION("conv_act", conv.act),
};

enum { NAMES_MODERN = 3 }; /* index in the tensor tables below: head names if "legacy" is false */

/* ---- config ---- */

/* Enables the term named by the n bytes at s. */
static bool enable_term(ses_config *c, const char *s, size_t n, ses_err *e)
{
    while (n && isspace((unsigned char)*s)) s++, n--;
    while (n && isspace((unsigned char)s[n - 1])) n--;
    bool content = n == 3 && (s[0] | 32) == 'c' && s[1] == '2' && (s[2] | 32) == 'p';
    bool position = n == 3 && (s[0] | 32) == 'p' && s[1] == '2' && (s[2] | 32) == 'c';
    if (!content && !position)
        return ses_fail(e, SES_EUNSUPPORTED, "\"pos_att_type\" has \"%.*s\", expected p2c and c2p", (int)n,
                        s);
    if (content ? c->disentangled.c2p : c->disentangled.p2c)
        return ses_fail(e, SES_EFORMAT, "\"pos_att_type\" has \"%.*s\" twice", (int)n, s);
    *(content ? &c->disentangled.c2p : &c->disentangled.p2c) = true;
    return true;
}

/* An array of names, or names separated by |. */
static bool read_terms(ses_config *c, const ses_json *v, ses_err *e)
{
    const char *text = ses_json_string(v, NULL);
    if (ses_json_type_of(v) == SES_JSON_NULL || (text && !*text)) return true;
    if (!text && ses_json_type_of(v) != SES_JSON_ARRAY)
        return ses_json_wrong_type("pos_att_type", v, "an array or a string", e);
    while (text) {
        size_t n = strcspn(text, "|");
        if (!enable_term(c, text, n, e)) return false;
        text = text[n] ? text + n + 1 : NULL;
    }
    for (size_t i = 0; i < ses_json_len(v); i++) {
        const char *kind = ses_json_string(ses_json_at(v, i), NULL);
        if (!kind) return ses_fail(e, SES_EFORMAT, "\"pos_att_type\" must contain strings only");
        if (!enable_term(c, kind, strlen(kind), e)) return false;
    }
    return true;
}

/* "norm_rel_ebd": words separated by |; "layer_norm": the table of relative positions is normalized. */
static bool read_table_norm(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *text = NULL, *word;
    size_t n;
    if (!ses_config_text(config, "norm_rel_ebd", &text, e)) return false;
    for (size_t i = 0; ses_list_at(text, i, &word, &n); i++) {
        ses_string w = ses_trim((ses_string){ word, n });
        bool norm = ses_equal(w.p, w.n, "layer_norm");
        c->disentangled.norm_table |= norm;
        if (!norm && !ses_equal(w.p, w.n, "none"))
            return ses_fail(e, SES_EUNSUPPORTED, "\"norm_rel_ebd\" is \"%s\", expected none or layer_norm",
                            ses_quoted_of(text, strlen(text)).s);
    }
    return true;
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool legacy = true, biased = true, talking_head = false;
    int64_t width = c->hidden, pooled = c->hidden;
    if (!ses_config_bool(config, "legacy", &legacy, e) ||
        !ses_config_bool(config, "position_biased_input", &biased, e) ||
        !ses_config_bool(config, "talking_head", &talking_head, e) ||
        !ses_config_int(config, "embedding_size", &width, e) ||
        !ses_config_int(config, "pooler_hidden_size", &pooled, e))
        return false;
    if (width != c->hidden || pooled != c->hidden)
        return ses_fail(e, SES_EUNSUPPORTED, "\"%s\" other than \"hidden_size\" is not supported",
                        width != c->hidden ? "embedding_size" : "pooler_hidden_size");
    if (talking_head) return ses_fail(e, SES_EUNSUPPORTED, "\"talking_head\" is not supported");
    if (!read_terms(c, ses_json_get(config, "pos_att_type"), e)) return false;
    if (!c->disentangled.enabled &&
        (c->disentangled.c2p || c->disentangled.p2c || c->disentangled.buckets > 0))
        return ses_fail(e, SES_EARG, "\"relative_attention\" is false, but \"%s\" needs it",
                        c->disentangled.buckets > 0 ? "position_buckets" : "pos_att_type");
    if (c->disentangled.max_relative_positions < 1) c->disentangled.max_relative_positions = c->position.max;
    if (c->disentangled.buckets == 1 ||
        (c->disentangled.buckets > 1 &&
         c->disentangled.max_relative_positions <= c->disentangled.buckets / 2 + 1))
        return ses_fail(
            e, SES_EARG, "distances up to %lld (\"max_relative_positions\") cannot fill %lld buckets",
            (long long)c->disentangled.max_relative_positions, (long long)c->disentangled.buckets);
    if (!biased) /* no position table: any length */
        c->position.kind = SES_POS_NONE, c->position.max = SES_MAX_POSITIONS;
    c->attention.scale = 1 / sqrt((double)(c->hidden / c->attention.heads) *
                                  (1 + (c->disentangled.c2p ? 1 : 0) + (c->disentangled.p2c ? 1 : 0)));
    c->name_table = legacy ? 0 : NAMES_MODERN;
    if (!legacy) c->embed.tied = true; /* such a head has no projection of its own */
    c->dropout.token_classification = c->dropout.hidden > 0 ? c->dropout.hidden : -1;
    return ses_bert_post_read(c, config, e);
}

static bool post_read_v2(ses_config *c, const ses_json *config, ses_err *e)
{
    int64_t groups = 1;
    if (!ses_config_int(config, "conv_groups", &groups, e) || !read_table_norm(c, config, e)) return false;
    if (c->conv.kernel_size && groups != 1)
        return ses_fail(e, SES_EUNSUPPORTED, "\"conv_groups\" is %lld: only 1 is supported",
                        (long long)groups);
    if (c->conv.kernel_size && c->conv.kernel_size % 2 == 0)
        return ses_fail(e, SES_EARG, "\"conv_kernel_size\" is %lld, expected an odd number",
                        (long long)c->conv.kernel_size);
    return post_read(c, config, e);
}

/* ---- parameters ---- */

typedef struct rel_params { /* projections of the relative position table, per layer */
    ses_dense key, query;
    ses_tensor *q_bias, *v_bias; /* version 1: its fused matrix has no bias */
} rel_params;

typedef struct deberta_params {
    ses_tensor *table;
    ses_norm norm;
    ses_tensor *conv, *conv_bias; /* [C, C, kernel size], [C] */
    ses_norm conv_norm;
    rel_params layer[];
} deberta_params;

static void add_rel_params(rel_params *d, const ses_stack *k, ses_store *s, const ses_config *c, int i)
{
    char name[64];
    bool one = c->attention.qkv_layout != SES_QKV_SEPARATE;
    if (one) {
        snprintf(name, sizeof name, "layer.%d.attn.q_bias", i);
        d->q_bias = ses_store_add(s, name, SES_DIM(c->hidden), SES_INIT_ZERO);
        snprintf(name, sizeof name, "layer.%d.attn.v_bias", i);
        d->v_bias = ses_store_add(s, name, SES_DIM(c->hidden), SES_INIT_ZERO);
    }
    if (c->disentangled.share_att_key) { /* shared with the content projections */
        d->key = k->layer[i].self.key, d->query = k->layer[i].self.query;
        return;
    }
    ses_bias bias = one ? SES_NO_BIAS : SES_BIAS;
    if (c->disentangled.enabled && c->disentangled.c2p)
        d->key = ses_dense_add(s, c->hidden, c->hidden, bias, "layer.%d.rel.key", i);
    if (c->disentangled.enabled && c->disentangled.p2c)
        d->query = ses_dense_add(s, c->hidden, c->hidden, SES_BIAS, "layer.%d.rel.query", i);
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    deberta_params *o = ses_alloc(sizeof *o + (size_t)k->depth * sizeof *o->layer, e);
    k->priv = o;
    if (!o || !ses_stack_add_default(k, s, c, e)) return false;
    int64_t rows = 2 * (c->disentangled.buckets > 0 ? c->disentangled.buckets
                                                    : c->disentangled.max_relative_positions),
            C = c->hidden;
    if (c->disentangled.enabled) o->table = ses_store_add(s, "rel.table", SES_DIM(rows, C), SES_INIT_NORMAL);
    if (c->disentangled.norm_table) o->norm = ses_norm_add(s, C, SES_NORM_LAYER, "rel.norm");
    if (c->conv.kernel_size) {
        o->conv = ses_store_add(s, "conv.weight", SES_DIM(C, C, c->conv.kernel_size), SES_INIT_NORMAL);
        o->conv_bias = ses_store_add(s, "conv.bias", SES_DIM(C), SES_INIT_ZERO);
        o->conv_norm = ses_norm_add(s, C, SES_NORM_LAYER, "conv.norm");
    }
    for (int i = 0; i < (int)k->depth; i++) add_rel_params(&o->layer[i], k, s, c, i);
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

/* Small distances unchanged, large ones logarithmic. */
static int64_t bucket(int64_t distance, int64_t buckets, int64_t last_row)
{
    int64_t mid = buckets / 2, d = distance < 0 ? -distance : distance;
    if (buckets < 1 || d <= mid) return distance;
    /* In float, as transformers computes it. */
    float ratio = logf((float)d / (float)mid) / logf((float)((double)(last_row - 1) / (double)mid));
    d = (int64_t)ceilf(ratio * (float)(mid - 1)) + mid;
    return distance < 0 ? -d : d;
}

/* The table rows for distances within the batch, and the row of each distance. */
static void begin(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx)
{
    const deberta_params *o = k->priv;
    const ses_config *c = p->c;
    int64_t half = ses_rows(o->table) / 2, n = 2 * ctx->seqs->max_seqlen - 1, first_row = 2 * half,
            last_row = 0;
    int32_t *dist_to_row = o->table ? ses_tape_host_alloc(p->tape, (size_t)n, sizeof *dist_to_row) : NULL;
    for (int64_t i = 0; dist_to_row && i < n; i++) { /* query minus key */
        int64_t row = bucket(ctx->seqs->max_seqlen - 1 - i, c->disentangled.buckets,
                             c->disentangled.max_relative_positions) +
                      half;
        row = row < 0 ? 0 : row >= 2 * half ? 2 * half - 1 : row;
        dist_to_row[i] = (int32_t)row;
        if (row < first_row) first_row = row;
        if (row > last_row) last_row = row;
    }
    int32_t *used =
        dist_to_row ? ses_tape_host_alloc(p->tape, (size_t)(last_row - first_row + 1), sizeof *used) : NULL;
    if (!used) return;
    for (int64_t i = 0; i < n; i++) dist_to_row[i] -= (int32_t)first_row;
    for (int64_t i = 0; i <= last_row - first_row; i++) used[i] = (int32_t)(first_row + i);
    ctx->rel_dist_to_row = ses_tape_ints(p->tape, dist_to_row, n);
    ctx->rel = ses_gather(p->tape, o->table, ses_tape_ints(p->tape, used, last_row - first_row + 1));
    if (c->disentangled.norm_table) ctx->rel = ses_norm_run(p->tape, o->norm, ctx->rel, NULL, c->norm.eps);
}

/* Version 1's bias [3 C], interleaved by head: query bias, zeros, value bias. */
static ses_tensor *fused_bias(ses_tape *t, const rel_params *d, int64_t heads)
{
    int64_t C = ses_count(d->q_bias), dim = C / heads;
    ses_real *zero = ses_tape_host_alloc(t, (size_t)C, sizeof *zero);
    ses_tensor *part[] = { ses_reshape(t, d->q_bias, SES_DIM(heads, dim)),
                           zero ? ses_tape_input(t, zero, SES_DIM(heads, dim)) : NULL,
                           ses_reshape(t, d->v_bias, SES_DIM(heads, dim)) };
    return ses_reshape(t, ses_concat(t, 3, part), SES_DIM(3 * C));
}

static void project(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                    ses_attention_inputs *in, int i)
{
    const ses_config *c = p->c;
    const rel_params *d = &((const deberta_params *)k->priv)->layer[i];
    const ses_attn_params *a = &k->layer[i].self;
    ses_tape *t = p->tape;
    if (d->q_bias) {
        ses_dense all_three = a->query;
        all_three.b = fused_bias(t, d, k->heads);
        in->q = ses_dense_run(t, all_three, x, SES_ACT_NONE);
    } else {
        in->q = ses_dense_run(t, a->query, x, SES_ACT_NONE);
        in->k = ses_dense_run(t, a->key, x, SES_ACT_NONE);
        in->v = ses_dense_run(t, a->value, x, SES_ACT_NONE);
    }
    ses_qkv_layout layout = c->attention.qkv_layout;
    if (p->hooked) ses_hook_split(p, in, &layout, k->heads); /* position scores read captured tensors, too */
    if (!ctx->rel || !(c->disentangled.c2p || c->disentangled.p2c)) return;
    ses_tensor *rel = ses_dropout(t, ctx->rel, c->dropout.hidden);
    ses_relative_inputs r = { .cu_seqlens_q = ctx->seqs->cu_seqlens,
                              .cu_seqlens_k = ctx->seqs->cu_seqlens,
                              .dist_to_row = ctx->rel_dist_to_row };
    int n = 0;
    if (c->disentangled.c2p)
        r.term[n++] = (ses_relative_term){ .x = in->q, .r = ses_dense_run(t, d->key, rel, SES_ACT_NONE) };
    if (c->disentangled.p2c)
        r.term[n++] = (ses_relative_term){ .x = in->k ? in->k : in->q,
                                           .r = ses_dense_run(t, d->query, rel, SES_ACT_NONE),
                                           .side = SES_BY_KEY };
    for (int j = 0; j < n; j++) r.term[j].layout = layout;
    in->bias = ses_relative_scores(t, &r,
                                   &(ses_relative_options){ .heads = k->heads,
                                                            .max_seqlen_k = ctx->seqs->max_seqlen,
                                                            .pairs = ctx->seqs->token_pairs,
                                                            .scale = c->attention.scale,
                                                            .for_attention = !p->hooked });
}

/* norm(y + act(conv(x))); the convolution is one product per neighbor. */
static ses_tensor *convolve(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                            ses_tensor *y)
{
    const deberta_params *o = k->priv;
    ses_tape *t = p->tape;
    int64_t C = p->c->hidden, width = p->c->conv.kernel_size;
    ses_tensor *w = ses_reshape(t, o->conv, SES_DIM(C * C, width)), *sum = NULL;
    for (int64_t i = 0; i < width; i++) {
        ses_tensor *part = ses_linear(t, ses_seqs_shift(p, ctx->seqs, x, i - width / 2),
                                      ses_reshape(t, ses_columns(t, w, i, 1), SES_DIM(C, C)),
                                      i ? NULL : o->conv_bias, SES_ACT_NONE, SES_OUT_IN);
        sum = sum ? ses_add(t, sum, part) : part;
    }
    sum = ses_activate(t, ses_dropout(t, sum, p->c->dropout.hidden), p->c->conv.act);
    return ses_norm_run(t, o->conv_norm, ses_layer_used_rows(k, p, ctx, sum, 0), y, p->c->norm.eps);
}

static ses_tensor *layer(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *x,
                         int i)
{
    const deberta_params *o = k->priv;
    ses_tensor *y = ses_layer_run(k, p, ctx, x, i);
    return i == 0 && o->conv ? convolve(k, p, ctx, x, y) : y;
}

static const ses_stack_vtable vtable = { .add = add, .begin = begin, .project = project, .layer = layer };

/* ---- tables ---- */

#define SELF "encoder.layer.#.attention.self."
static const ses_tensor_name v1[] = {
    { "layer.#.attn.qkv.*", SELF "in_proj.*" },     { "layer.#.attn.q_bias", SELF "q_bias" },
    { "layer.#.attn.v_bias", SELF "v_bias" },       { "layer.#.rel.key.*", SELF "pos_proj.*" },
    { "layer.#.rel.query.*", SELF "pos_q_proj.*" },
};

static const ses_tensor_name v2[] = {
    { "layer.#.attn.query.*", SELF "query_proj.*" },    { "layer.#.attn.key.*", SELF "key_proj.*" },
    { "layer.#.attn.value.*", SELF "value_proj.*" },    { "layer.#.rel.key.*", SELF "pos_key_proj.*" },
    { "layer.#.rel.query.*", SELF "pos_query_proj.*" }, { "rel.norm.*", "encoder.LayerNorm.*" },
    { "conv.norm.*", "encoder.conv.LayerNorm.*" },      { "conv.*", "encoder.conv.conv.*" },
};

static const ses_tensor_name heads[] = {
    { "rel.table", "encoder.rel_embeddings.weight" },
    { "lm.dense.*", "/cls.predictions.transform.dense.*" },
    { "lm.norm.*", "/cls.predictions.transform.LayerNorm.*" },
    { "lm.out.weight", "/cls.predictions.decoder.weight" },
    { "lm.out.bias", "~/cls.predictions.decoder.bias" },
    { "lm.out.bias", "/cls.predictions.bias" },
    { "lm.out.bias", "/cls.predictions.decoder.bias" },
    { "classify.dense.*", "/pooler.dense.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.dense.*", "/pooler.dense.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_tensor_name modern[] = {
    { "lm.dense.*", "/lm_predictions.lm_head.dense.*" },
    { "lm.norm.*", "/lm_predictions.lm_head.LayerNorm.*" },
    { "lm.out.weight", "/lm_predictions.lm_head.weight" },
    { "lm.out.bias", "/lm_predictions.lm_head.bias" },
};

static const ses_class classes_v1[] = {
    { .name = "DebertaModel" },
    SES_CLASS("DebertaForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("DebertaForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("DebertaForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("DebertaForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

static const ses_class classes_v2[] = {
    { .name = "DebertaV2Model" },
    SES_CLASS("DebertaV2ForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("DebertaV2ForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("DebertaV2ForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
    SES_CLASS("DebertaV2ForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("DebertaV2ForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

static const char *const reads_v1[] = { "position_biased_input", "talking_head", "pos_att_type", NULL };
static const char *const reads_v2[] = { "position_biased_input", "talking_head", "pos_att_type",
                                        "norm_rel_ebd", NULL };

#define DEBERTA(id, type, v, layout, post_read_)                                                             \
    const ses_model_desc ses_model_##id = {                                                                  \
        .name = type,                                                                                        \
        .prefix = "deberta.",                                                                                \
        .tokenizer_sets_segments = true,                                                                     \
        .vtable = &vtable,                                                                                   \
        .defaults = { .norm.eps = 1e-7,                                                                      \
                      .disentangled.max_relative_positions = -1,                                             \
                      .dropout.hidden = 0.1,                                                                 \
                      .dropout.attention = 0.1,                                                              \
                      .dropout.embed = -1,                                                                   \
                      .dropout.head = -1,                                                                    \
                      .init.range = 0.02,                                                                    \
                      .ffn.act = SES_ACT_GELU,                                                               \
                      .summary.act = SES_ACT_GELU,                                                           \
                      .conv.act = SES_ACT_TANH,                                                              \
                      .attention.qkv_layout = layout,                                                        \
                      .attention.no_qkv_bias = layout != SES_QKV_SEPARATE,                                   \
                      .embed.norm = true,                                                                    \
                      .embed.tied = true,                                                                    \
                      .lm.bias = true },                                                                     \
        .keys = { SES_TABLE(ses_bert_keys), SES_TABLE(keys_##v) },                                           \
        .post_read = post_read_,                                                                             \
        .reads = reads_##v,                                                                                  \
        .tensors = { SES_TABLE(v), SES_TABLE(heads), SES_TABLE(ses_bert_tensors), SES_TABLE(ses_bert_norms), \
                     SES_TABLE(modern) },                                                                    \
        .class = classes_##v,                                                                                \
        .n_classes = SES_LEN(classes_##v),                                                                   \
    };

DEBERTA(deberta, "deberta", v1, SES_QKV_INTERLEAVED, post_read)
DEBERTA(deberta_v2, "deberta-v2", v2, SES_QKV_SEPARATE, post_read_v2)
