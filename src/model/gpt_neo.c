/* GPT-Neo (Black et al. 2021): GPT-2 with plain weights, unscaled scores, and every other layer looking
 * back only so far. */
#include "model_desc.h"

#include <string.h>

static const ses_config_key keys[] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("hidden_size", hidden, SES_MOST_WIDTH),
    SES_NEED("num_layers", layers, SES_MAX_LAYERS),
    SES_NEED("num_heads", heads, SES_MOST_WIDTH),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("intermediate_size", ffn, 1, SES_MOST_FFN),
    SES_INT("window_size", window, 1, SES_MOST_POSITIONS),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_NUMBER("layer_norm_epsilon", norm_eps, 0, 1),
    SES_RATE("resid_dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_RATE("embed_dropout", drop_embed),
    SES_RATE("classifier_dropout", drop_head),
    SES_NUMBER("initializer_range", init_range, 0, 100),
    SES_ACTIVATION("activation_function", act),
    SES_SWITCH("tie_word_embeddings", tied),
};

static bool mark(ses_config *c, int64_t layer, const ses_json *kind, ses_err *e)
{
    const char *name = ses_json_string(kind, NULL);
    if (!name || (strcmp(name, "global") && strcmp(name, "local")))
        return ses_fail(e, SES_EFORMAT, "attention of layer %lld is not \"global\" or \"local\"",
                        (long long)layer);
    if (!strcmp(name, "local")) c->local[layer / 64] |= (uint64_t)1 << layer % 64;
    return true;
}

/* "attention_layers" names each layer; the older "attention_types" repeats lists: [[["global", "local"],
 * 12]]. */
static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    const ses_json *each = ses_json_get(config, "attention_layers"),
                   *types = ses_json_get(config, "attention_types");
    int64_t n = 0;
    if (!c->ffn) c->ffn = 4 * c->hidden;
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

static const ses_name tensors[] = {
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
    SES_CLASS("GPTNeoForCausalLM", SES_ON(causal_lm, "logits")),
    SES_CLASS("GPTNeoForSequenceClassification", SES_ON(classify, "logits")),
    SES_CLASS("GPTNeoForTokenClassification", SES_ON(tag, "logits")),
    SES_CLASS("GPTNeoForQuestionAnswering", SES_ON(span, "")),
};

const ses_model_desc ses_model_gpt_neo = {
    .name = "gpt_neo",
    .prefix = "transformer.",
    .arch = { .pad = -1,
              .window = 256,
              .norm_eps = 1e-5,
              .drop_head = 0.1,
              .init_range = 0.02,
              .attention_scale = 1,
              .act = SES_ACT_GELU_TANH,
              .place = SES_PRE_NORM,
              .summary = SES_SUMMARY_LAST,
              .final_norm = true,
              .no_qkv_bias = true,
              .no_summary_bias = true,
              .causal = true,
              .lm_plain = true,
              .tied = true,
              .pad_learns = true },
    .keys = { SES_TABLE(keys) },
    .finish = finish,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
