/* A plain LSTM: a language model of words, pieces or characters, a sequence autoencoder (objective
 * autoencoder), and a classifier that reads the last state and starts from the weights of either (Dai and Le
 * 2015: LM-LSTM, SA-LSTM). Tensors have PyTorch's names. */
#include "lstm_lm.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("embedding_size", input.width, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("hidden_size", rnn.size, SES_MAX_WIDTH),
    SES_KEY_INTEGER("num_hidden_layers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("bptt", rnn.window, 0, SES_MAX_POSITIONS),
    SES_KEY_FLAG("tie_word_embeddings", embed.tied),
    SES_KEY_FLAG("label_gain", head.label_gain),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("token_dropout", rnn.embed_drop),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config;
    c->rnn.last_size = c->rnn.size;
    return ses_lstm_lm_set_sizes(c, e);
}

const ses_tensor_name ses_lstm_tensors[SES_LSTM_TENSORS] = {
    { "layer.#.weight_ih_l0", "rnn.weight_ih_l#" },
    { "layer.#.weight_hh_l0", "rnn.weight_hh_l#" },
    { "layer.#.bias_ih_l0", "rnn.bias_ih_l#" },
    { "layer.#.bias_hh_l0", "rnn.bias_hh_l#" },
    { "lm.out.*", "/decoder.*" },
};

static const ses_tensor_name tensors[] = {
    { "embed.token", "embeddings.weight" },
    { "classify.out.*", "/classifier.*" },
};

static const ses_class classes[] = {
    { .name = "LstmModel" },
    SES_CLASS("LstmForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    SES_CLASS("LstmForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

const ses_model_desc ses_model_lstm = {
    .name = "lstm",
    .prefix = "lstm.",
    .vtable = &ses_lstm_lm_vtable,
    .carries_state = true,
    .defaults = { SES_RECURRENT_LM_DEFAULTS, .layers = 1, .rnn.type = SES_RNN_LSTM, .dropout.head = 0.5,
                  .init.range = 0.058, /* as uniform values in +-0.1 */
                  .summary.kind = SES_SUMMARY_LAST_TOKEN, .summary.no_proj = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_lstm_tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
