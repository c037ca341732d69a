/* AWD-LSTM (Merity et al. 2018): LSTM layers over token vectors, with dropout on the recurrent weights,
 * locked dropout and dropout of vocabulary entries; ULMFiT (Howard and Ruder 2018) fine-tunes it. Config keys
 * and defaults follow fastai.
 *
 * The state of a sequence (ses_batch.rnn_state) is h, then c, of each layer in order. */
#include "lstm_lm.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"

#include <stdio.h>

/* ---- config ---- */

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_INTEGER("emb_sz", input.width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("n_hid", rnn.size, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("n_layers", layers, 1, SES_MAX_LAYERS),
    SES_KEY_INTEGER("pad_token", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("bptt", rnn.window, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("max_len", head.pooled, 1, SES_MAX_POSITIONS),
    SES_KEY_INTEGER("lin_ftrs", head.pooled_width, 1, SES_MAX_WIDTH),
    SES_KEY_RATE("classifier_p", dropout.head),
    SES_KEY_RATE("lin_p", dropout.final),
    SES_KEY_RATE("output_p", rnn.output_drop),
    SES_KEY_RATE("hidden_p", rnn.hidden_drop),
    SES_KEY_RATE("input_p", rnn.input_drop),
    SES_KEY_RATE("embed_p", rnn.embed_drop),
    SES_KEY_RATE("weight_p", rnn.weight_drop),
    SES_KEY_NUMBER("alpha", rnn.ar, 0, 1000),
    SES_KEY_NUMBER("beta", rnn.tar, 0, 1000),
    SES_KEY_FLAG("tie_weights", embed.tied),
    SES_KEY_FLAG("out_bias", lm.bias),
};

bool ses_lstm_lm_set_sizes(ses_config *c, ses_err *e)
{
    if (c->embed.tied && c->rnn.last_size != c->input.width)
        return ses_fail(e, SES_EARG, "tied weights need a last layer as wide as the token vectors");
    c->hidden = c->rnn.last_size;
    c->rnn.state = 0;
    for (int64_t i = 0; i < c->layers; i++)
        c->rnn.state += 2 * (i + 1 < c->layers ? c->rnn.size : c->rnn.last_size);
    c->attention.heads = 1;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    bool bidirectional = false;
    if (!ses_config_bool(config, "bidir", &bidirectional, e)) return false;
    if (bidirectional) return ses_fail(e, SES_EUNSUPPORTED, "\"bidir\" is true: only false is supported");
    c->rnn.last_size = c->input.width;
    return ses_lstm_lm_set_sizes(c, e);
}

/* ---- parameters ---- */

typedef struct lstm_params {
    ses_rnn_params layer[SES_MAX_LAYERS];
} lstm_params;

static int64_t size_of(const ses_config *c, int64_t layer)
{
    return layer + 1 < c->layers ? c->rnn.size : c->rnn.last_size;
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    lstm_params *o = ses_alloc(sizeof *o, e);
    k->priv = o;
    if (!o) return false;
    k->token = ses_store_add(s, "embed.token", SES_DIM(c->vocab, c->input.width), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->token);
    for (int i = 0; i < (int)k->depth; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "layer.%d.", i);
        ses_rnn_shape shape = { .type = SES_RNN_LSTM,
                                .size = size_of(c, i),
                                .width = i ? c->rnn.size : c->input.width };
        o->layer[i] = ses_rnn_add(s, &shape, prefix, 0, "");
    }
    return ses_store_ok(s, e);
}

/* ---- forward ---- */

typedef struct pass_state {
    const ses_stack *k;
    ses_forward_ctx *p;
    const ses_seqs *seqs;
    ses_tensor *given;  /* [B, state]: states before the batch; NULL: zeros */
    ses_tensor **state; /* [2 layers]: states after it; NULL: not requested */
    int64_t at;         /* columns of the state that belong to the layers before */
} pass_state;

static ses_tensor *lstm(pass_state *v, ses_tensor *x, int i)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_rnn_params *r = &((const lstm_params *)v->k->priv)->layer[i];
    int64_t size = size_of(c, i), window = v->p->batch->window ? v->p->batch->window : c->rnn.window;
    ses_rnn_run run = { .o = { .type = SES_RNN_LSTM, .cells = v->state != NULL },
                        .weight_drop = c->rnn.weight_drop };
    if (v->given) {
        run.h0 = ses_columns(t, v->given, v->at, size);
        run.c0 = ses_columns(t, v->given, v->at + size, size);
    }
    v->at += 2 * size;
    ses_tensor *y = ses_rnn_layer_windows(v->p, r, x, v->seqs, &run, window);
    if (!y || !v->state) return y;
    ses_tensor *last = ses_rnn_last(v->p, v->seqs, y, false); /* h | c */
    v->state[i] = last;
    return ses_columns(t, y, 0, size);
}

/* Activation regularization (AR): alpha mean(x^2) of the outputs after dropout. Temporal (TAR): beta
 * mean((x_t+1 - x_t)^2) of the outputs before it. Part of the training loss. */
static void regularize(const pass_state *v, ses_tensor *raw, ses_tensor *dropped)
{
    ses_tape *t = v->p->tape;
    const ses_config *c = v->p->c;
    const ses_seqs *q = v->seqs;
    if (!raw || !dropped || !ses_tape_training(t) || (!c->rnn.ar && !c->rnn.tar)) return;
    int32_t *now = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *now),
            *next = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *next);
    int64_t n = 0;
    if (!now || !next) return;
    for (int64_t s = 0; s < q->seqs; s++)
        for (int32_t i = q->host_cu_seqlens[s]; i + 1 < q->host_cu_seqlens[s + 1]; i++)
            now[n] = i, next[n++] = i + 1;
    if (c->rnn.ar)
        ses_forward_add_penalty(v->p,
                                ses_scale(t, ses_target_loss(t, dropped, NULL, SES_LOSS_MSE), c->rnn.ar));
    if (!c->rnn.tar || !n) return;
    ses_tensor *step = ses_add(t, ses_gather(t, raw, ses_tape_ints(t, next, n)),
                               ses_scale(t, ses_gather(t, raw, ses_tape_ints(t, now, n)), -1));
    ses_forward_add_penalty(v->p, ses_scale(t, ses_target_loss(t, step, NULL, SES_LOSS_MSE), c->rnn.tar));
}

static bool begin(pass_state *v)
{
    ses_forward_ctx *p = v->p;
    if (p->batch->rnn_state)
        v->given = ses_tape_input(p->tape, p->batch->rnn_state, SES_DIM(v->seqs->seqs, p->c->rnn.state));
    if (p->request->rnn_state)
        v->state = ses_tape_host_alloc(p->tape, (size_t)v->k->depth, sizeof(ses_tensor *));
    return (!p->batch->rnn_state || v->given) && (!p->request->rnn_state || v->state);
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *seqs)
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    pass_state v = { .k = k, .p = p, .seqs = seqs };
    if (!begin(&v)) return NULL;
    ses_tensor *x = ses_embed(t, 1, &k->token, &seqs->ids, (int32_t)c->pad_id);
    if (p->hooks_embeds) x = ses_hook_embeds(p, seqs, x);
    x = ses_dropout_types(p, seqs, x, c->rnn.embed_drop);
    x = ses_dropout_locked(p, seqs, ses_dropout(t, x, c->dropout.hidden), c->rnn.input_drop);
    x = ses_stack_output_hidden(k, p, x, 0);
    for (int i = 0; i < (int)k->depth; i++) {
        bool last = i + 1 == (int)k->depth;
        ses_tensor *raw = lstm(&v, x, i);
        x = ses_dropout_locked(p, seqs, raw, last ? c->rnn.output_drop : c->rnn.hidden_drop);
        x = ses_dropout(t, x, c->dropout.hidden);
        if (last) regularize(&v, raw, x);
        x = ses_stack_output_hidden(k, p, x, i + 1);
        ses_tape_wrap_error(t, "layer %d", i);
    }
    if (v.state) {
        ses_tensor *state = ses_concat(t, (int)k->depth, v.state);
        if (state) ses_forward_output(p, SES_PER_SEQUENCE, state, "rnn_state");
    }
    return x;
}

const ses_stack_vtable ses_lstm_lm_vtable = { .add = add, .run = run };

/* ---- tables ---- */

/* The names of a tensor of the encoder: our own; awd-lstm-lm's; in a language model of fastai; in its
 * classifier, where a SentenceEncoder contains the encoder. */
#define NAMES(own, plain, lm, fastai) \
    { own, plain }, { own, lm }, { own, "/0." fastai }, { own, "/0.module." fastai }
#define IN_MODULE(name) NAMES("layer.#." name, "rnns.#." name, "rnns.#.module." name, "rnns.#.module." name)
/* Copies that the modules for dropout keep. */
#define COPY(name) \
    { "", name }, { "", "/0." name }, { "", "/0.module." name }

static const ses_tensor_name tensors[] = {
    { "embed.token", "encoder.weight" },
    { "embed.token", "/0.encoder.weight" },
    { "embed.token", "/0.module.encoder.weight" },
    COPY("encoder_dp.emb.weight"),
    IN_MODULE("weight_ih_l0"),
    NAMES("layer.#.weight_hh_l0", "rnns.#.weight_hh_l0", "rnns.#.module.weight_hh_l0_raw",
          "rnns.#.weight_hh_l0_raw"),
    { "layer.#.weight_hh_l0", "rnns.#.weight_hh_l0_raw" },
    COPY("rnns.#.module.weight_hh_l0"),
    IN_MODULE("bias_ih_l0"),
    IN_MODULE("bias_hh_l0"),
    { "lm.out.*", "/decoder.*" },
    { "lm.out.*", "/1.decoder.*" },
    { "classify.#.norm.*", "/layers.#.0.*" },
    { "classify.#.norm.*", "/1.layers.#.0.*" },
    { "classify.#.out.*", "/layers.#.2.*" },
    { "classify.#.out.*", "/1.layers.#.2.*" },
    { "classify.#.out.*", "/1.layers.#.1.*" }, /* made without dropout, which is a module */
};
#undef NAMES
#undef IN_MODULE
#undef COPY

static const ses_class classes[] = {
    { .name = "AwdLstmModel" },
    SES_CLASS("AwdLstmForCausalLM", SES_USE_HEAD(causal_lm, "logits")),
    { .name = "AwdLstmForSequenceClassification",
      .no_output_drop = true,
      .head = { SES_USE_HEAD(sequence_classification, "logits") } },
};

const ses_model_desc ses_model_awd_lstm = {
    .name = "awd-lstm",
    .prefix = "",
    .vtable = &ses_lstm_lm_vtable,
    .carries_state = true,
    .defaults = { SES_RECURRENT_LM_DEFAULTS, .layers = 3, .input.width = 400,
                  .rnn = { .type = SES_RNN_LSTM,
                           .window = 72,
                           .size = 1152,
                           .input_drop = 0.25,
                           .hidden_drop = 0.15,
                           .weight_drop = 0.2,
                           .embed_drop = 0.02,
                           .output_drop = 0.1 },
                  .init.range = 0.058, /* as uniform values in +-0.1 */
                  .summary.kind = SES_SUMMARY_LAST_NON_PAD, .head.pooled_width = 50, .head.pooled = 1440,
                  .dropout.head = 0.4, .dropout.final = 0.1, .embed.tied = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
