/* GPT-Neo (Black et al. 2021): GPT-2 with separate projections, unscaled scores, and local attention in
 * alternate layers. */
#include "base/json/json_helpers.h"
#include "model_desc.h"

#include <string.h>

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("num_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("intermediate_size", ffn.width, 1, SES_MAX_FFN),
    SES_KEY_INTEGER("window_size", attention.window, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.eps, 0, 1),
    SES_KEY_RATE("resid_dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("embed_dropout", dropout.embed),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation_function", ffn.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

/* The kinds of layers, from one of the keys that list them. */
typedef struct layer_list {
    const char *key;
    int64_t n;
    uint64_t local[SES_MAX_LAYERS / 64];
} layer_list;

static bool mark(layer_list *list, int64_t layers, const ses_json *kind, ses_err *e)
{
    const char *name = ses_json_string(kind, NULL);
    if (!name || (strcmp(name, "global") && strcmp(name, "local")))
        return ses_fail(e, SES_EFORMAT, "\"%s\": attention of layer %lld is not \"global\" or \"local\"",
                        list->key, (long long)list->n);
    if (list->n >= layers)
        return ses_fail(e, SES_EFORMAT, "\"%s\" speaks of more layers than \"num_layers\" %lld", list->key,
                        (long long)layers);
    if (!strcmp(name, "local")) list->local[list->n / 64] |= (uint64_t)1 << list->n % 64;
    list->n++;
    return true;
}

static bool mark_all(layer_list *list, int64_t layers, const ses_json *kinds, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(kinds); i++)
        if (!mark(list, layers, ses_json_at(kinds, i), e)) return false;
    return true;
}

/* An array of pairs: a list of kinds, and how often it is repeated. */
static bool mark_types(layer_list *list, int64_t layers, const ses_json *types, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(types); i++) {
        const ses_json *kinds = ses_json_at(ses_json_at(types, i), 0);
        int64_t times = 0;
        ses_json_int(ses_json_at(ses_json_at(types, i), 1), &times);
        for (int64_t k = 0; ses_json_len(kinds) && k < times; k++)
            if (!mark_all(list, layers, kinds, e)) return false;
    }
    return true;
}

/* Reads a key if there is one; *given: there is. */
static bool read_list(layer_list *list, const ses_json *config, int64_t layers, bool *given, ses_err *e)
{
    bool types = !strcmp(list->key, "attention_types");
    const ses_json *v = ses_json_get(config, list->key);
    *given = ses_json_type_of(v) != SES_JSON_NULL;
    if (!*given) return true;
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_json_wrong_type(list->key, v, "an array", e);
    if (!(types ? mark_types : mark_all)(list, layers, v, e)) return false;
    return list->n == layers ||
           ses_fail(e, SES_EFORMAT, "\"%s\" speaks of %lld layers, \"num_layers\" is %lld", list->key,
                    (long long)list->n, (long long)layers);
}

/* "attention_layers" lists each layer; "attention_types" repeats lists: [[["global", "local"], 12]]. */
static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    layer_list types = { .key = "attention_types" }, each = { .key = "attention_layers" };
    bool has_types, has_each;
    if (!c->ffn.width) c->ffn.width = 4 * c->hidden;
    if (!read_list(&types, config, c->layers, &has_types, e) ||
        !read_list(&each, config, c->layers, &has_each, e))
        return false;
    if (!has_types && !has_each) return ses_fail(e, SES_EFORMAT, "\"attention_types\" is missing");
    if (has_types && has_each && memcmp(types.local, each.local, sizeof each.local) != 0)
        return ses_fail(e, SES_EFORMAT, "\"attention_types\" and \"attention_layers\" differ");
    memcpy(c->attention.local_layers, has_each ? each.local : types.local, sizeof each.local);
    return true;
}

static const ses_tensor_name tensors[] = {
    { "embed.token", "wte.weight" },
    { "embed.position", "wpe.weight" },
    { "layer.#.attn.norm.*", "h.#.ln_1.*" },
    { "layer.#.attn.query.*", "h.#.attn.attention.q_proj.*" },
    { "layer.#.attn.key.*", "h.#.attn.attention.k_proj.*" },
    { "layer.#.attn.value.*", "h.#.attn.attention.v_proj.*" },
    { "layer.#.attn.out.*", "h.#.attn.attention.out_proj.*" },
    { "layer.#.ffn.norm.*", "h.#.ln_2.*" },
    { "layer.#.ffn.up.*", "h.#.mlp.c_fc.*" },
    { "layer.#.ffn.down.*", "h.#.mlp.c_proj.*" },
    { "final_norm.*", "ln_f.*" },
    { "lm.out.weight", "/lm_head.weight" },
    { "classify.out.*", "/score.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_class classes[] = {
    { .name = "GPTNeoModel" },
    SES_CLASS("GPTNeoForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("GPTNeoForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("GPTNeoForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("GPTNeoForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
};

static const char *const reads[] = { "attention_layers", "attention_types", NULL };

const ses_model_desc ses_model_gpt_neo = {
    .name = "gpt_neo",
    .prefix = "transformer.",
    .defaults = { .pad_id = -1,
                  .attention.window = 256,
                  .norm.eps = 1e-5,
                  .dropout.head = 0.1,
                  .init.range = 0.02,
                  .attention.scale = 1,
                  .ffn.act = SES_ACT_GELU_TANH,
                  .norm.placement = SES_PRE_NORM,
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD,
                  .norm.after_last_layer = true,
                  .attention.no_qkv_bias = true,
                  .head.no_classifier_bias = true,
                  .attention.causal = true,
                  .lm.no_transform = true,
                  .embed.tied = true,
                  .embed.train_pad = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
    .layer_kinds = { .key = "attention_layers", .local = "local", .global = "global" },
};
