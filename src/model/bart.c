/* BART (Lewis et al. 2019) and its kin: encoder and decoder with one token table. mBART puts norms first
 * and starts the target with its language's code; Marian and Pegasus have sinusoids. MASS (Song et al. 2019)
 * is the same network, trained to fill in a span: only its decoder sees what stood there before. */
#include "model_desc.h"

enum { APART_NAMES = 1 }; /* of the tables below */

const ses_config_key ses_bart_keys[SES_BART_KEYS] = {
    SES_NEED("vocab_size", vocab, SES_MOST_TOKENS),
    SES_NEED("d_model", hidden, SES_MOST_WIDTH),
    SES_NEED("encoder_layers", layers, SES_MAX_LAYERS),
    SES_NEED("encoder_attention_heads", heads, SES_MOST_WIDTH),
    SES_NEED("encoder_ffn_dim", ffn, SES_MOST_FFN),
    SES_NEED("decoder_layers", decoder_layers, SES_MAX_LAYERS),
    SES_NEED("decoder_attention_heads", decoder_heads, SES_MOST_WIDTH),
    SES_NEED("decoder_ffn_dim", decoder_ffn, SES_MOST_FFN),
    SES_NEED("max_position_embeddings", positions, SES_MOST_POSITIONS),
    SES_INT("pad_token_id", pad, -1, SES_MOST_TOKENS),
    SES_INT("eos_token_id", eos, -1, SES_MOST_TOKENS),
    SES_INT("decoder_start_token_id", start, -1, SES_MOST_TOKENS),
    SES_RATE("dropout", drop),
    SES_RATE("attention_dropout", drop_attention),
    SES_RATE("activation_dropout", drop_act),
    SES_RATE("classifier_dropout", drop_head),
    SES_RATE("classif_dropout", drop_head),
    SES_NUMBER("init_std", init_range, 0, 100),
    SES_ACTIVATION("activation_function", act),
    SES_SWITCH("scale_embedding", scale_embed),
    SES_SWITCH("tie_word_embeddings", tied),
};

/* One table for both, unless nothing is tied; Marian may say it of the two alone. */
static bool finish(ses_config *c, const ses_json *config, ses_err *e)
{
    bool shared = true;
    int64_t targets = c->vocab;
    if (!ses_config_bool(config, "share_encoder_decoder_embeddings", &shared, e) ||
        !ses_config_int(config, "decoder_vocab_size", &targets, e))
        return false;
    if (!shared && targets != c->vocab)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"decoder_vocab_size\" %lld other than \"vocab_size\" %lld is not supported",
                        (long long)targets, (long long)c->vocab);
    c->tables_apart = !c->tied || !shared;
    if (c->tables_apart) c->first_names = APART_NAMES;
    return true;
}

#define STACK(ours, theirs)                                                           \
    { ours "embed.position", theirs "embed_positions.weight" },                       \
        { ours "embed.norm.*", theirs "layernorm_embedding.*" },                      \
        { ours "layer.#.attn.norm.*", theirs "layers.#.self_attn_layer_norm.*" },     \
        { ours "layer.#.attn.query.*", theirs "layers.#.self_attn.q_proj.*" },        \
        { ours "layer.#.attn.key.*", theirs "layers.#.self_attn.k_proj.*" },          \
        { ours "layer.#.attn.value.*", theirs "layers.#.self_attn.v_proj.*" },        \
        { ours "layer.#.attn.out.*", theirs "layers.#.self_attn.out_proj.*" },        \
        { ours "layer.#.cross.norm.*", theirs "layers.#.encoder_attn_layer_norm.*" }, \
        { ours "layer.#.cross.query.*", theirs "layers.#.encoder_attn.q_proj.*" },    \
        { ours "layer.#.cross.key.*", theirs "layers.#.encoder_attn.k_proj.*" },      \
        { ours "layer.#.cross.value.*", theirs "layers.#.encoder_attn.v_proj.*" },    \
        { ours "layer.#.cross.out.*", theirs "layers.#.encoder_attn.out_proj.*" },    \
        { ours "layer.#.ffn.norm.*", theirs "layers.#.final_layer_norm.*" },          \
        { ours "layer.#.ffn.up.*", theirs "layers.#.fc1.*" },                         \
        { ours "layer.#.ffn.down.*", theirs "layers.#.fc2.*" },                       \
    {                                                                                 \
        ours "final_norm.*", theirs "layer_norm.*"                                    \
    }

const ses_name ses_bart_tensors[SES_BART_TENSORS] = {
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

static const ses_name apart[] = { { "embed.token", "encoder.embed_tokens.weight" } };

#define CLASSES(stem, generation)                                                                    \
    { .name = stem "Model", .echo = true }, SES_CLASS(stem generation, SES_ON(target_lm, "logits")), \
    {                                                                                                \
        .name = stem "ForCausalLM", .decoder_only = true, .head = { SES_ON(masked_lm, "logits") }    \
    }
#define READING(stem)                                                                                   \
    { .name = stem "ForSequenceClassification", .echo = true, .head = { SES_ON(classify, "logits") } }, \
    {                                                                                                   \
        .name = stem "ForQuestionAnswering", .echo = true, .head = { SES_ON(span, "") }                 \
    }
static const ses_class bart[] = { CLASSES("Bart", "ForConditionalGeneration"), READING("Bart") };
static const ses_class mbart[] = { CLASSES("MBart", "ForConditionalGeneration"), READING("MBart") };
static const ses_class marian[] = { CLASSES("Marian", "MTModel") };
static const ses_class pegasus[] = { CLASSES("Pegasus", "ForConditionalGeneration") };
static const ses_class mass[] = { CLASSES("Mass", "ForConditionalGeneration") };

/* What all share; `more` says what is special. */
#define BART(id, more)                                                \
    const ses_model_desc ses_model_##id = {                           \
        .name = #id,                                                  \
        .prefix = "model.",                                           \
        .pair = true,                                                 \
        .arch = { .pad = 1,                                           \
                  .eos = 2,                                           \
                  .start = 2,                                         \
                  .norm_eps = 1e-5,                                   \
                  .drop = 0.1,                                        \
                  .drop_embed = -1,                                   \
                  .init_range = 0.02,                                 \
                  .act = SES_ACT_GELU,                                \
                  .summary = SES_SUMMARY_EOS,                         \
                  .summary_act = SES_ACT_TANH,                        \
                  .drop_summary_in = true,                            \
                  .tied = true,                                       \
                  .lm_plain = true,                                   \
                  .lm_fixed_bias = true,                              \
                  more },                                             \
        .keys = { SES_TABLE(ses_bart_keys) },                         \
        .finish = finish,                                             \
        .tensors = { SES_TABLE(ses_bart_tensors), SES_TABLE(apart) }, \
        .class = id,                                                  \
        .n_classes = SES_LEN(id),                                     \
    };
#define AND ,

BART(bart, .embed_norm = true AND.pos_offset = 2 AND.pos_extra = 2)
BART(mbart, .embed_norm = true AND.pos_offset = 2 AND.pos_extra = 2 AND.place = SES_PRE_NORM AND.final_norm =
                true AND.shift = SES_SHIFT_LAST)
BART(marian, .pos = SES_POS_SINUSOID)
BART(pegasus, .pos = SES_POS_SINUSOID AND.place = SES_PRE_NORM AND.final_norm = true)
BART(mass, .embed_norm = true AND.pos_offset = 2 AND.pos_extra = 2)
