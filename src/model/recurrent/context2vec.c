/* context2vec (Melamud et al. 2016): the vector of a token's context, without the token itself. One LSTM
 * reads the tokens before it, another one the tokens after it, each with token vectors of its own:
 *     y(t) = L2 relu(L1 (l(t - 1) | r(t + 1)))
 * The masked LM head compares y with the vectors of the vocabulary, so that the model fills masks. */
#include "recurrent_tables.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("embedding_size", input.width, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("lstm_size", rnn.size, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("intermediate_size", ffn.width, SES_MAX_FFN),
    SES_KEY_REQUIRED("hidden_size", hidden, SES_MAX_WIDTH),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config, (void)e;
    c->layers = 1;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

typedef struct params {
    ses_tensor *token[2]; /* tables of the left and of the right context */
    ses_rnn_params rnn[2];
    ses_dense up, down;
} params;

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    static const char *const table[] = { "embed.left", "embed.right" }, *const suffix[] = { "", "_reverse" };
    params *o = k->priv = ses_alloc(sizeof *o, e);
    ses_rnn_shape shape = { .type = SES_RNN_LSTM, .size = c->rnn.size, .width = c->input.width };
    if (!o) return false;
    for (int i = 0; i < 2; i++) {
        o->token[i] = ses_store_add(s, table[i], SES_DIM(c->vocab, c->input.width), SES_INIT_NORMAL);
        ses_store_set_embedding(s, o->token[i]);
    }
    for (int i = 0; i < 2; i++) o->rnn[i] = ses_rnn_add(s, &shape, "rnn.", 0, suffix[i]);
    o->up = ses_dense_add(s, c->ffn.width, 2 * c->rnn.size, SES_BIAS, "mlp.up");
    o->down = ses_dense_add(s, c->hidden, c->ffn.width, SES_BIAS, "mlp.down");
    return ses_store_ok(s, e);
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    const params *o = k->priv;
    ses_tensor *side[2];
    if (p->hooks_embeds)
        ses_tape_fail(t, SES_EUNSUPPORTED, "context2vec has two vectors per token: they cannot be replaced");
    for (int i = 0; i < 2; i++) {
        ses_tensor *x = ses_embed(t, 1, &o->token[i], (ses_tensor *const[]){ q->ids }, (int32_t)c->pad_id);
        x = ses_dropout(t, x, c->dropout.hidden);
        ses_rnn_run run = { .o = { .type = SES_RNN_LSTM, .reverse = i == 1 } };
        side[i] = ses_seqs_shift(p, q, ses_rnn_layer(p, &o->rnn[i], x, q, &run), i ? 1 : -1);
    }
    ses_tensor *both = ses_concat(t, 2, side);
    if (p->request->hidden_states) ses_forward_output(p, SES_PER_TOKEN, both, "hidden_states.0");
    ses_tensor *h = ses_dense_run(t, o->up, ses_dropout(t, both, c->dropout.hidden), SES_ACT_RELU);
    ses_tensor *y = ses_dense_run(t, o->down, h, SES_ACT_NONE);
    if (p->layer) p->layer[0] = p->layer[1] = y;
    if (p->request->hidden_states) ses_forward_output(p, SES_PER_TOKEN, y, "hidden_states.1");
    return y;
}

static const ses_stack_vtable vtable = { .add = add, .run = run };

static const ses_tensor_name tensors[] = {
    { "embed.left", "l2r_embeddings.weight" },
    { "embed.right", "r2l_embeddings.weight" },
    { "rnn.*", "rnn.*" },
    { "mlp.up.*", "mlp.0.*" },
    { "mlp.down.*", "mlp.1.*" },
    { "lm.out.weight", "/decoder.weight" },
};

static const ses_class classes[] = {
    { .name = "Context2VecModel" },
    SES_CLASS("Context2VecForMaskedLM", SES_USE_HEAD(masked_lm, "logits")),
};

const ses_model_desc ses_model_context2vec = {
    .name = "context2vec",
    .prefix = "context2vec.",
    .vtable = &vtable,
    .defaults = { SES_RECURRENT_DEFAULTS, .init.range = 0.1, .input.excludes_token = true,
                  .lm.no_transform = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
