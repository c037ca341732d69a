/* The character language model of Flair (Akbik et al. 2018): a wide LSTM, projected to the vocabulary by a
 * matrix of its own, with plain dropout. A backward model reads reversed texts. */
#include "lstm_lm.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_INTEGER("embedding_size", input.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("hidden_size", rnn.size, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("nlayers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_RATE("dropout", dropout.hidden),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool forward = true;
    if (!ses_config_bool(config, "is_forward_lm", &forward, e)) return false;
    c->rnn.backward = !forward;
    c->rnn.last_size = c->rnn.size;
    return ses_lstm_lm_set_sizes(c, e);
}

static const ses_tensor_name tensors[] = { { "embed.token", "encoder.weight" } };

static const ses_class classes[] = {
    { .name = "FlairModel" },
    SES_CLASS("FlairForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
};

const ses_model_desc ses_model_flair_lm = {
    .name = "flair-lm",
    .prefix = "",
    .vtable = &ses_lstm_lm_vtable,
    .carries_state = true,
    .defaults = { SES_RECURRENT_LM_DEFAULTS, .layers = 1, .input.width = 100,
                  .rnn = { .type = SES_RNN_LSTM, .size = 2048 }, .dropout.hidden = 0.1, .init.range = 0.058 },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors), SES_TABLE(ses_lstm_tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
