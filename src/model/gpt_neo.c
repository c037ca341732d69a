/* GPT-Neo (Black et al. 2021): GPT-2 with separate projections, unscaled scores, and local attention in
 * alternate layers. */
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

static bool mark(ses_config *c, int64_t layer, const ses_json *kind, ses_err *e)
{
    const char *name = ses_json_string(kind, NULL);
    if (!name || (strcmp(name, "global") && strcmp(name, "local")))
        return ses_fail(e, SES_EFORMAT, "attention of layer %lld is not \"global\" or \"local\"",
                        (long long)layer);
    if (!strcmp(name, "local")) c->attention.local_layers[layer / 64] |= (uint64_t)1 << layer % 64;
    return true;
}

/* "attention_layers" lists each layer; the older "attention_types" repeats lists: [[["global", "local"],
 * 12]]. */
static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *each = ses_json_get(config, "attention_layers"),
                   *types = ses_json_get(config, "attention_types");
    int64_t n = 0;
    if (!c->ffn.width) c->ffn.width = 4 * c->hidden;
    for (; n < c->layers && n < (int64_t)ses_json_len(each); n++)
        if (!mark(c, n, ses_json_at(each, (size_t)n), e)) return false;
    for (size_t i = 0; !each && i < ses_json_len(types); i++) {
        const ses_json *list = ses_json_at(ses_json_at(types, i), 0);
        int64_t times = 0;
        ses_json_int(ses_json_at(ses_json_at(types, i), 1), &times);
        for (int64_t j = 0; ses_json_len(list) && j < times * (int64_t)ses_json_len(list) && n < c->layers;
             j++, n++)
            if (!mark(c, n, ses_json_at(list, (size_t)j % ses_json_len(list)), e)) return false;
    }
    if (n == c->layers) return true;
    return ses_fail(e, SES_EFORMAT, "\"attention_types\" speaks of %lld layers, \"num_layers\" is %lld",
                    (long long)n, (long long)c->layers);
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
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
    .layer_kinds = { .key = "attention_layers", .local = "local", .global = "global" },
};
