/* Neural n-gram model (Bengio et al. 2003): the vectors of the last `context_size` tokens, one hidden layer,
 * then the vocabulary. The projection also reads the token vectors if there are direct connections:
 *     logits = bias + W x + U tanh(H x + d),  x = e(t) | e(t - 1) | ... | e(t - context_size + 1)
 * Tokens before the start of a text have the zero vector. */
#include "recurrent_tables.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"

enum { MAX_CONTEXT = 64 };

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("embedding_size", input.width, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("hidden_size", ffn.width, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("context_size", input.context, MAX_CONTEXT),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("eos_token_id", eos_id, -1, SES_MAX_VOCAB),
    SES_KEY_FLAG("direct_connections", input.direct),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config;
    int64_t window = c->input.width * c->input.context;
    if (window > SES_MAX_FFN)
        return ses_fail(e, SES_EARG, "\"embedding_size\" times \"context_size\" is %lld, expected at most %d",
                        (long long)window, SES_MAX_FFN);
    c->hidden = c->ffn.width + (c->input.direct ? window : 0);
    c->layers = 1;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    ses_dense *layer = k->priv = ses_alloc(sizeof *layer, e);
    if (!layer) return false;
    k->token = ses_store_add(s, "embed.token", SES_DIM(c->vocab, c->input.width), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->token);
    *layer = ses_dense_add(s, c->ffn.width, c->input.width * c->input.context, SES_BIAS, "layer.0");
    return ses_store_ok(s, e);
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    ses_tensor *x = ses_embed(t, 1, &k->token, (ses_tensor *const[]){ q->ids }, (int32_t)c->pad_id);
    ses_tensor *window[MAX_CONTEXT];
    if (p->hooks_embeds) x = ses_hook_embeds(p, q, x);
    if (p->request->hidden_states) ses_forward_output(p, SES_PER_TOKEN, x, "hidden_states.0");
    for (int64_t i = 0; i < c->input.context; i++) window[i] = i ? ses_seqs_shift(p, q, x, -i) : x;
    x = c->input.context > 1 ? ses_concat(t, (int)c->input.context, window) : x;
    ses_tensor *h = ses_dense_run(t, *(const ses_dense *)k->priv, x, SES_ACT_TANH);
    if (c->input.direct) h = ses_concat(t, 2, (ses_tensor *const[]){ h, x });
    h = ses_dropout(t, h, c->dropout.hidden);
    if (p->layer) p->layer[0] = p->layer[1] = h;
    if (p->request->hidden_states) ses_forward_output(p, SES_PER_TOKEN, h, "hidden_states.1");
    return h;
}

static const ses_stack_vtable vtable = { .add = add, .run = run };

static const ses_tensor_name tensors[] = {
    { "embed.token", "embeddings.weight" },
    { "layer.0.*", "hidden.*" },
    { "lm.out.weight", "/decoder.weight" },
    { "lm.out.bias", "/decoder.bias" },
};

static const ses_class classes[] = {
    { .name = "NnlmModel" },
    SES_CLASS("NnlmForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
};

const ses_model_desc ses_model_nnlm = {
    .name = "nnlm",
    .prefix = "model.",
    .vtable = &vtable,
    .defaults = { SES_RECURRENT_LM_DEFAULTS, .init.range = 0.1 },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
