/* nomic-embed (Nussbaum et al. 2024) and arctic-embed-m-long: post-norm encoders with rotary positions and
 * gated feed-forward blocks without biases; v2 (Nussbaum and Duderstadt 2025): plain ones, a mixture of
 * experts in every other layer. config.json has keys of transformers 5 or of the publisher, or both; tensors
 * have names of either. */
#include "model/encoder/rotary_tables.h"

#include "base/json/json_helpers.h"

#include <string.h>

enum { EXPERTS_READ = 8 };

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_INTEGER("n_embd", hidden, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("hidden_size", hidden, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("n_layer", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("num_hidden_layers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("n_head", attention.heads, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("num_attention_heads", attention.heads, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("n_inner", ffn.width, 1, SES_MAX_FFN),
    SES_KEY_INTEGER("intermediate_size", ffn.width, 1, SES_MAX_FFN),
    SES_KEY_INTEGER("max_position_embeddings", position.max, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("n_positions", position.max, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("type_vocab_size", embed.segments, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("head_dim", attention.head_size, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_NUMBER("layer_norm_epsilon", norm.eps, 0, 1),
    SES_KEY_NUMBER("layer_norm_eps", norm.eps, 0, 1),
    SES_KEY_RATE("resid_pdrop", dropout.hidden),
    SES_KEY_RATE("hidden_dropout_prob", dropout.hidden),
    SES_KEY_RATE("attn_pdrop", dropout.attention),
    SES_KEY_RATE("attention_probs_dropout_prob", dropout.attention),
    SES_KEY_RATE("embd_pdrop", dropout.embed),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
    SES_KEY_ACTIVATION("hidden_act", ffn.act),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_FLAG("rotary_emb_interleaved", position.rotary_adjacent),
    SES_KEY_INTEGER("num_experts", ffn.experts, 0, 256),
    SES_KEY_INTEGER("moe_top_k", ffn.expert_top, 1, 256),
    SES_KEY_INTEGER("moe_every_n_layers", ffn.expert_every, 0, SES_MAX_LAYERS),
};

/* "swiglu" and "geglu" are gated, others plain; absent: transformers' gate of "hidden_act". */
static bool read_act(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *act = NULL;
    c->ffn.gated = true;
    if (!ses_config_text(config, "activation_function", &act, e) || !act) return !e->code;
    c->ffn.gated = !strcmp(act, "swiglu") || !strcmp(act, "geglu");
    if (c->ffn.gated)
        c->ffn.act = *act == 's' ? SES_ACT_SILU : SES_ACT_GELU;
    else if (!ses_act_from_name(act, &c->ffn.act))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"activation_function\" is \"%s\", expected swiglu, geglu or an activation", act);
    return true;
}

/* The biases of folders of the publisher; transformers has none. */
static bool read_biases(ses_config *c, const ses_json *config, ses_err *e)
{
    bool old = ses_json_get(config, "activation_function") != NULL, qkv = old, up = old, down = old;
    if (!ses_config_bool(config, "qkv_proj_bias", &qkv, e) ||
        !ses_config_bool(config, "mlp_fc1_bias", &up, e) ||
        !ses_config_bool(config, "mlp_fc2_bias", &down, e))
        return false;
    if (up && !down)
        return ses_fail(e, SES_EUNSUPPORTED, "\"mlp_fc1_bias\" is true and \"mlp_fc2_bias\" false");
    c->attention.no_bias = !qkv, c->ffn.no_bias = !down, c->ffn.no_up_bias = !up;
    c->lm.no_transform_bias = old && !up, c->lm.bias = !old || up;
    return true;
}

/* rotary_emb_base, rotary_emb_fraction, and dynamic scaling by rotary_scaling_factor. */
static bool read_rope(ses_config *c, const ses_json *config, ses_err *e)
{
    ses_rope *rope = &c->position.rope;
    double trained = (double)c->position.max, factor = 0;
    const ses_json *base = ses_json_get(config, "rotary_emb_base"),
                   *scaling = ses_json_get(config, "rotary_scaling_factor"),
                   *max = ses_json_get(config, "max_trained_positions");
    if (ses_json_type_of(base) != SES_JSON_NULL &&
        (!ses_json_real(base, &rope->theta) || !(rope->theta >= 1)))
        return ses_fail(e, SES_EFORMAT, "\"rotary_emb_base\" is not a number of at least 1");
    if (!ses_rope_read_fraction(c, config, "rotary_emb_fraction", e) || !ses_rope_config(c, config, e))
        return false;
    if (ses_json_type_of(scaling) == SES_JSON_NULL) return true;
    if (!ses_json_real(scaling, &factor) || !(factor >= 1))
        return ses_fail(e, SES_EFORMAT, "\"rotary_scaling_factor\" is not a number of at least 1");
    if (max && (!ses_json_real(max, &trained) || !(trained >= 1)))
        return ses_fail(e, SES_EFORMAT, "\"max_trained_positions\" is not a number of at least 1");
    if (factor > 1) rope->type = SES_ROPE_DYNAMIC, rope->factor = factor, rope->original = trained;
    return true;
}

/* The numbers of experts, all and of a token. */
static bool check_experts(ses_config *c, const ses_json *config, ses_err *e)
{
    bool normalized = false;
    if (!ses_config_bool(config, "moe_normalize_expert_weights", &normalized, e)) return false;
    if (!c->ffn.expert_every || c->ffn.experts < 2) c->ffn.experts = 0;
    if (!c->ffn.experts) return true;
    if (normalized) return ses_fail(e, SES_EUNSUPPORTED, "\"moe_normalize_expert_weights\" is true");
    if (c->ffn.gated) return ses_fail(e, SES_EUNSUPPORTED, "experts with a gated activation");
    if (c->ffn.experts != EXPERTS_READ) /* the tables below name as many */
        return ses_fail(e, SES_EUNSUPPORTED, "\"num_experts\" is %lld, expected %d",
                        (long long)c->ffn.experts, EXPERTS_READ);
    return c->ffn.expert_top <= c->ffn.experts ||
           ses_fail(e, SES_EARG, "\"moe_top_k\" is above \"num_experts\"");
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    if (!c->hidden || !c->layers || !c->attention.heads)
        return ses_fail(e, SES_EFORMAT, "\"%s\" is missing",
                        !c->hidden   ? "hidden_size"
                        : !c->layers ? "num_hidden_layers"
                                     : "num_attention_heads");
    if (!read_act(c, config, e) || !read_biases(c, config, e)) return false;
    if (!c->ffn.width) { /* n_inner null: rounded up to 256 columns */
        int64_t width = c->ffn.gated ? 8 * c->hidden / 3 : 4 * c->hidden;
        c->ffn.width = (width + 255) / 256 * 256;
    }
    if (c->hidden % c->attention.heads)
        return ses_fail(e, SES_EARG, "a width of %lld is not a multiple of %lld heads", (long long)c->hidden,
                        (long long)c->attention.heads);
    c->lm.act = c->ffn.act;
    return check_experts(c, config, e) && read_rope(c, config, e);
}

static const ses_tensor_name tensors[] = {
    { "layer.#.ffn.up.*", "layers.#.mlp.fc1.*" },
    { "layer.#.ffn.router.*", "layers.#.mlp.router.*" },
    { "layer.#.ffn.experts.bias", "layers.#.mlp.experts.bias" },
#define EXPERT(i)                                                                  \
    { "layer.#.ffn.up." #i ".weight", "layers.#.mlp.experts." #i ".fc1.weight" },  \
    {                                                                              \
        "layer.#.ffn.down." #i ".weight", "layers.#.mlp.experts." #i ".fc2.weight" \
    }
    EXPERT(0),
    EXPERT(1),
    EXPERT(2),
    EXPERT(3),
    EXPERT(4),
    EXPERT(5),
    EXPERT(6),
    EXPERT(7),
    { "lm.dense.*", "/cls.predictions.transform.dense.*" },
    { "lm.norm.*", "/cls.predictions.transform.layer_norm.*" },
    { "lm.out.weight", "/cls.predictions.decoder.weight" },
    { "lm.out.bias", "/cls.predictions.bias" },
    { "lm.out.bias", "/cls.predictions.decoder.bias" },
    { "classify.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
};

#define LAYER "layers.#."
#define OLD "encoder.layers.#."
#define EXPERTS(part)                                                                              \
    {                                                                                              \
        LAYER "mlp.experts.0." part, LAYER "mlp.experts.1." part, LAYER "mlp.experts.2." part,     \
            LAYER "mlp.experts.3." part, LAYER "mlp.experts.4." part, LAYER "mlp.experts.5." part, \
            LAYER "mlp.experts.6." part, LAYER "mlp.experts.7." part                               \
    }
static const ses_tensor_rename renames[] = {
    { "emb_ln.*", { "embeddings.LayerNorm.*" } },
    { OLD "attn.Wqkv.*",
      { LAYER "self_attn.q_proj.*", LAYER "self_attn.k_proj.*", LAYER "self_attn.v_proj.*" } },
    { OLD "attn.out_proj.*", { LAYER "self_attn.o_proj.*" } },
    { OLD "mlp.fc11.*", { LAYER "mlp.up_proj.*" } },
    { OLD "mlp.fc12.*", { LAYER "mlp.gate_proj.*" } },
    { OLD "mlp.fc2.*", { LAYER "mlp.down_proj.*" } },
    { OLD "mlp.fc1.*", { LAYER "mlp.fc1.*" } },
    { OLD "norm1.*", { LAYER "post_attention_layernorm.*" } },
    { OLD "norm2.*", { LAYER "post_mlp_layernorm.*" } },
    { OLD "mlp.router.layer.*", { LAYER "mlp.router.*" } },
    { OLD "mlp.experts.mlp.w1", EXPERTS("fc1.weight") },
    { OLD "mlp.experts.mlp.w2", EXPERTS("fc2.weight") },
    { OLD "mlp.experts.bias", { LAYER "mlp.experts.bias" } },
    { "embeddings.word_embeddings.*", { "embeddings.word_embeddings.*" } },
    { "embeddings.token_type_embeddings.*", { "embeddings.token_type_embeddings.*" } },
    { "pooler.dense.*", { "pooler.dense.*" } },
};

static const ses_class classes[] = {
    { .name = "NomicBertModel" },
    SES_CLASS("NomicBertForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
    SES_CLASS("NomicBertForPreTraining", SES_USE_HEAD(masked_lm, "logits")),
    SES_POOLED_CLASS("NomicBertForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("NomicBertForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
};

static const char *const reads[] = { "rope_parameters",
                                     "rope_scaling",
                                     "rope_theta",
                                     "rotary_emb_base",
                                     "rotary_emb_fraction",
                                     "rotary_emb_interleaved",
                                     "rotary_scaling_factor",
                                     "num_experts",
                                     "moe_every_n_layers",
                                     NULL };

const ses_model_desc ses_model_nomic_bert = {
    .name = "nomic_bert",
    .prefix = "nomic_bert.",
    .tokenizer_sets_segments = true,
    .defaults = { .embed.segments = 2,
                  .embed.norm = true,
                  .embed.tied = true,
                  .pad_id = 0,
                  .norm.eps = 1e-12,
                  .position.kind = SES_POS_ROTARY,
                  .position.max = 2048,
                  .position.rope.theta = 1000,
                  .dropout.embed = -1,
                  .dropout.head = -1,
                  .init.range = 0.02,
                  .ffn.act = SES_ACT_SILU,
                  .ffn.expert_top = 1,
                  .pooler.act = SES_ACT_TANH,
                  .lm.bias = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .reads = reads,
    .tensors = { SES_TABLE(ses_rotary_post_tensors), SES_TABLE(tensors) },
    .renames = renames,
    .n_renames = SES_LEN(renames),
    .signature = "mlp.fc11.weight",
    .class = classes,
    .n_classes = SES_LEN(classes),
};
