/* ELECTRA: a discriminator and a generator in one checkpoint, without a config: the sizes follow from the
 * shapes. The discriminator is the model, unless a masked language model is asked for. */
#include "tf_family.h"

#define LAYER(from) from "/encoder/layer_#/"
#define TO "electra.encoder.layer.#."
#define ENCODER(from)                                                                      \
    { from "/embeddings_project/*", "electra.embeddings_project.*" },                      \
        { LAYER(from) "attention/self/query/*", TO "attention.self.query.*" },             \
        { LAYER(from) "attention/self/key/*", TO "attention.self.key.*" },                 \
        { LAYER(from) "attention/self/value/*", TO "attention.self.value.*" },             \
        { LAYER(from) "attention/output/dense/*", TO "attention.output.dense.*" },         \
        { LAYER(from) "attention/output/LayerNorm/*", TO "attention.output.LayerNorm.*" }, \
        { LAYER(from) "intermediate/dense/*", TO "intermediate.dense.*" },                 \
        { LAYER(from) "output/dense/*", TO "output.dense.*" },                             \
    {                                                                                      \
        LAYER(from) "output/LayerNorm/*", TO "output.LayerNorm.*"                          \
    }
#define EMBEDDINGS(from)                                                                                 \
    { from "/embeddings/word_embeddings", "electra.embeddings.word_embeddings.weight" },                 \
        { from "/embeddings/position_embeddings", "electra.embeddings.position_embeddings.weight" },     \
        { from "/embeddings/token_type_embeddings", "electra.embeddings.token_type_embeddings.weight" }, \
    {                                                                                                    \
        from "/embeddings/LayerNorm/*", "electra.embeddings.LayerNorm.*"                                 \
    }

static const ses_tf_rule discriminator[] = {
    EMBEDDINGS("electra"),
    ENCODER("electra"),
    { "discriminator_predictions/dense/*", "discriminator_predictions.dense.*" },
    { "discriminator_predictions/dense_1/*", "discriminator_predictions.dense_prediction.*" },
    { "generator/%", NULL },
    { "generator_predictions/%", NULL },
};

/* Both networks share the embeddings. */
static const ses_tf_rule generator[] = {
    EMBEDDINGS("electra"),
    ENCODER("generator"),
    { "generator_predictions/dense/*", "generator_predictions.dense.*" },
    { "generator_predictions/LayerNorm/*", "generator_predictions.LayerNorm.*" },
    { "generator_predictions/output_bias", "generator_lm_head.bias" },
    { "electra/%", NULL },
    { "discriminator_predictions/%", NULL },
};

#define SIZES(from)                                                                    \
    { "vocab_size", "electra/embeddings/word_embeddings", 0 },                         \
        { "embedding_size", "electra/embeddings/word_embeddings", 1 },                 \
        { "max_position_embeddings", "electra/embeddings/position_embeddings", 0 },    \
        { "type_vocab_size", "electra/embeddings/token_type_embeddings", 0 },          \
        { "hidden_size", from "/encoder/layer_0/attention/self/query/kernel", 0 },     \
        { "intermediate_size", from "/encoder/layer_0/intermediate/dense/kernel", 1 }, \
    {                                                                                  \
        "num_hidden_layers", from "/encoder/layer_#/attention/self/query/kernel", -1   \
    }
static const ses_tf_size discriminator_sizes[] = { SIZES("electra") };
static const ses_tf_size generator_sizes[] = { SIZES("generator") };

/* Heads have 64 columns in every published model. */
static bool put_heads(const ses_tf_index *x, const char *variable, const ses_json *original,
                      ses_json_writer *w)
{
    const ses_tf_tensor *t = ses_tf_find(x, variable);
    if (!t || t->rank != 2 || ses_json_get(original, "num_attention_heads")) return true;
    ses_json_member_int(w, "num_attention_heads", t->dim[0] < 64 ? 1 : t->dim[0] / 64);
    return true;
}

static bool put_discriminator(const ses_tf_index *x, const ses_json *original, ses_json_writer *w, ses_err *e)
{
    (void)e;
    return put_heads(x, "electra/encoder/layer_0/attention/self/query/kernel", original, w);
}

static bool put_generator(const ses_tf_index *x, const ses_json *original, ses_json_writer *w, ses_err *e)
{
    (void)e;
    return put_heads(x, "generator/encoder/layer_0/attention/self/query/kernel", original, w);
}

static const ses_tf_class discriminator_classes[] = {
    { "discriminator_predictions/dense/kernel", "ElectraForPreTraining" },
    { NULL, "ElectraModel" },
};
static const ses_tf_class generator_classes[] = { { NULL, "ElectraForMaskedLM" } };

const ses_tf_family ses_tf_electra = {
    .name = "electra",
    .variable = "electra/embeddings/word_embeddings",
    .config = "bert_config.json",
    .config_optional = true,
    .put_config = put_discriminator,
    SES_TF_TABLE(size, n_sizes, discriminator_sizes),
    SES_TF_TABLE(class, n_classes, discriminator_classes),
    SES_TF_TABLE(rule, n_rules, discriminator),
};

const ses_tf_family ses_tf_electra_generator = {
    .name = "electra",
    .variable = "generator_predictions/output_bias",
    .only_for = "ElectraForMaskedLM ElectraForCausalLM",
    .config = "generator_config.json",
    .config_optional = true,
    .put_config = put_generator,
    SES_TF_TABLE(size, n_sizes, generator_sizes),
    SES_TF_TABLE(class, n_classes, generator_classes),
    SES_TF_TABLE(rule, n_rules, generator),
};
