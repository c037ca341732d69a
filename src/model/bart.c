/* BART (Lewis et al. 2019) and its variants: encoder-decoders with a shared token table. mBART is pre-norm
 * and starts the target with its language code; Marian, Pegasus and M2M-100 use sinusoidal positions. MASS
 * (Song et al. 2019) is the same network, pretrained to predict a span that the encoder does not contain. */
#include "model_desc.h"

enum { SEPARATE_NAMES = 1 }; /* index in the tensor tables below */

const ses_config_key ses_bart_keys[SES_BART_KEYS] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("d_model", hidden, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("encoder_layers", layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("encoder_attention_heads", attention.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("encoder_ffn_dim", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("decoder_layers", decoder.layers, SES_MAX_LAYERS),
    SES_KEY_REQUIRED("decoder_attention_heads", decoder.heads, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("decoder_ffn_dim", decoder.ffn_width, SES_MAX_FFN),
    SES_KEY_REQUIRED("max_position_embeddings", position.max, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("eos_token_id", eos_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("decoder_start_token_id", decoder.start_id, -1, SES_MAX_VOCAB),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("attention_dropout", dropout.attention),
    SES_KEY_RATE("activation_dropout", dropout.act),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_RATE("classif_dropout", dropout.head),
    SES_KEY_NUMBER("init_std", init.range, 0, 100),
    SES_KEY_ACTIVATION("activation_function", ffn.act),
    SES_KEY_FLAG("scale_embedding", embed.scale_by_sqrt_hidden),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
};

/* The token table is shared unless config.json ties nothing; Marian has a key for the two tables alone. */
static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    bool shared = true;
    int64_t targets = c->vocab;
    if (!ses_config_bool(config, "share_encoder_decoder_embeddings", &shared, e) ||
        !ses_config_int(config, "decoder_vocab_size", &targets, e))
        return false;
    if (!shared && (targets < 1 || targets > SES_MAX_VOCAB || c->pad_id >= targets))
        return ses_fail(e, SES_EARG, "\"decoder_vocab_size\" is %lld, expected %lld to %d",
                        (long long)targets, (long long)(c->pad_id < 0 ? 1 : c->pad_id + 1), SES_MAX_VOCAB);
    if (!shared) c->decoder.vocab = targets;
    c->decoder.separate_embeddings = !c->embed.tied || !shared;
    if (c->decoder.separate_embeddings) c->name_table = SEPARATE_NAMES;
    return true;
}

#define STACK(name, hf_name)                                                           \
    { name "embed.position", hf_name "embed_positions.weight" },                       \
        { name "embed.norm.*", hf_name "layernorm_embedding.*" },                      \
        { name "layer.#.attn.norm.*", hf_name "layers.#.self_attn_layer_norm.*" },     \
        { name "layer.#.attn.query.*", hf_name "layers.#.self_attn.q_proj.*" },        \
        { name "layer.#.attn.key.*", hf_name "layers.#.self_attn.k_proj.*" },          \
        { name "layer.#.attn.value.*", hf_name "layers.#.self_attn.v_proj.*" },        \
        { name "layer.#.attn.out.*", hf_name "layers.#.self_attn.out_proj.*" },        \
        { name "layer.#.cross.norm.*", hf_name "layers.#.encoder_attn_layer_norm.*" }, \
        { name "layer.#.cross.query.*", hf_name "layers.#.encoder_attn.q_proj.*" },    \
        { name "layer.#.cross.key.*", hf_name "layers.#.encoder_attn.k_proj.*" },      \
        { name "layer.#.cross.value.*", hf_name "layers.#.encoder_attn.v_proj.*" },    \
        { name "layer.#.cross.out.*", hf_name "layers.#.encoder_attn.out_proj.*" },    \
        { name "layer.#.ffn.norm.*", hf_name "layers.#.final_layer_norm.*" },          \
        { name "layer.#.ffn.up.*", hf_name "layers.#.fc1.*" },                         \
        { name "layer.#.ffn.down.*", hf_name "layers.#.fc2.*" },                       \
    {                                                                                  \
        name "final_norm.*", hf_name "layer_norm.*"                                    \
    }

const ses_tensor_name ses_bart_tensors[SES_BART_TENSORS] = {
    { "embed.token", "shared.weight" },
    { "embed.token", "encoder.embed_tokens.weight" },
    { "embed.token", "decoder.embed_tokens.weight" },
    { "decoder.embed.token", "decoder.embed_tokens.weight" },
    { "decoder.embed.token", "shared.weight" },
    STACK("", "encoder."),
    STACK("decoder.", "decoder."),
    { "lm.out.weight", "/lm_head.weight" },
    { "lm.out.bias", "/final_logits_bias" },
    { "classify.dense.*", "/classification_head.dense.*" },
    { "classify.out.*", "/classification_head.out_proj.*" },
    { "span.*", "/qa_outputs.*" },
};

static const ses_tensor_name apart[] = { { "embed.token", "encoder.embed_tokens.weight" } };

#define CLASSES(stem, generation)                                                                       \
    { .name = stem "Model", .decoder_input_from_source = true },                                        \
        { .name = stem "Encoder", .encoder_only = true },                                               \
        SES_CLASS(stem generation, SES_USE_HEAD(seq2seq_lm, "logits")),                                 \
    {                                                                                                   \
        .name = stem "ForCausalLM", .decoder_only = true, .head = { SES_USE_HEAD(masked_lm, "logits") } \
    }
#define READING(stem)                                                                     \
    { .name = stem "ForSequenceClassification",                                           \
      .decoder_input_from_source = true,                                                  \
      .head = { SES_USE_HEAD(sequence_classification, "logits") } },                      \
    {                                                                                     \
        .name = stem "ForQuestionAnswering", .decoder_input_from_source = true, .head = { \
            SES_USE_HEAD(question_answering, "")                                          \
        }                                                                                 \
    }
static const ses_class bart[] = { CLASSES("Bart", "ForConditionalGeneration"), READING("Bart") };
static const ses_class mbart[] = { CLASSES("MBart", "ForConditionalGeneration"), READING("MBart") };
static const ses_class marian[] = { CLASSES("Marian", "MTModel") };
static const ses_class pegasus[] = { CLASSES("Pegasus", "ForConditionalGeneration") };
static const ses_class m2m_100[] = {
    { .name = "M2M100Model" },
    SES_CLASS("M2M100ForConditionalGeneration", SES_USE_HEAD(seq2seq_lm, "logits")),
};
static const ses_class mass[] = { CLASSES("Mass", "ForConditionalGeneration") };

/* Settings of all variants; `more` adds the settings of one. */
#define BART(id, more)                                                \
    const ses_model_desc ses_model_##id = {                           \
        .name = #id,                                                  \
        .prefix = "model.",                                           \
        .encoder_decoder = true,                                      \
        .defaults = { .pad_id = 1,                                    \
                      .eos_id = 2,                                    \
                      .decoder.start_id = 2,                          \
                      .norm.eps = 1e-5,                               \
                      .dropout.hidden = 0.1,                          \
                      .dropout.embed = -1,                            \
                      .init.range = 0.02,                             \
                      .ffn.act = SES_ACT_GELU,                        \
                      .summary.kind = SES_SUMMARY_EOS,                \
                      .summary.act = SES_ACT_TANH,                    \
                      .dropout.head_on_summary_input = true,          \
                      .embed.tied = true,                             \
                      .lm.no_transform = true,                        \
                      more },                                         \
        .keys = { SES_TABLE(ses_bart_keys) },                         \
        .post_read = finish,                                          \
        .tensors = { SES_TABLE(ses_bart_tensors), SES_TABLE(apart) }, \
        .class = id,                                                  \
        .n_classes = SES_LEN(id),                                     \
    };
#define AND ,
#define LEARNED \
    .lm.final_logits_bias = true, .embed.norm = true, .position.offset = 2, .position.extra_rows = 2
#define PRE_NORM .norm.placement = SES_PRE_NORM, .norm.after_last_layer = true

BART(bart, LEARNED)
BART(mbart, LEARNED AND PRE_NORM AND.decoder.label_shift = SES_SHIFT_WRAP_LAST)
BART(marian, .lm.final_logits_bias = true AND.position.kind = SES_POS_SINUSOID)
BART(pegasus, PRE_NORM AND.lm.final_logits_bias = true AND.position.kind = SES_POS_SINUSOID)
BART(mass, LEARNED)
/* Fan et al. 2020; NLLB (NLLB team 2022) is the same network. */
BART(m2m_100, PRE_NORM AND.position.kind = SES_POS_FAIRSEQ AND.position.skips_pad = true AND.position.offset =
                  2 AND.position.extra_rows = 2)
