/* ELMo (Peters et al. 2018): words by a convolution over their characters, then two language models, forward
 * and backward, of projected LSTM layers with clipped cells. A hidden state is forward | backward; the
 * embeddings, which both language models share, appear twice. Layers after the first add their input to their
 * output. */
#include "model/model_desc.h"

#include "base/alloc.h"
#include "nn/chars/char_words.h"
#include "nn/layer_hooks.h"
#include "tensor/device_impl.h"

#include <stdio.h>

enum { MAX_LSTM_LAYERS = 64 };

/* ---- config ---- */

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("num_hidden_layers", layers, MAX_LSTM_LAYERS),
    SES_KEY_REQUIRED("lstm_dim", rnn.size, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("projection_dim", rnn.proj, SES_MAX_WIDTH / 2),
    SES_KEY_REQUIRED("char_embedding_dim", chars.width, SES_MAX_WIDTH),
    SES_KEY_INTEGER("max_characters_per_token", chars.per_word, SES_MIN_WORD_CHARS, SES_MAX_WORD_CHARS),
    SES_KEY_INTEGER("n_highway", chars.highways, 0, SES_MAX_HIGHWAYS),
    SES_KEY_ACTIVATION("activation", chars.act),
    SES_KEY_NUMBER("cell_clip", rnn.cell_clip, 0, 1e6),
    SES_KEY_NUMBER("proj_clip", rnn.proj_clip, 0, 1e6),
    SES_KEY_FLAG("use_skip_connections", rnn.residual),
    SES_KEY_INTEGER("unk_token_id", chars.unk_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("eos_token_id", eos_id, -1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("sampled_softmax", lm.sampled, 0, SES_MAX_VOCAB),
    SES_KEY_RATE("dropout", dropout.hidden),
    SES_KEY_RATE("classifier_dropout", dropout.head),
};

static bool read_filters(ses_config *c, const ses_json *list, ses_err *e)
{
    size_t n = ses_json_len(list);
    int64_t all = 0;
    bool ok = ses_json_type_of(list) == SES_JSON_ARRAY && n && n <= SES_MAX_FILTERS;
    for (size_t i = 0; ok && i < n; i++) {
        const ses_json *pair = ses_json_at(list, i);
        int64_t *size = &c->chars.size[i], *count = &c->chars.count[i];
        ok = ses_json_len(pair) == 2 && ses_json_int(ses_json_at(pair, 0), size) &&
             ses_json_int(ses_json_at(pair, 1), count) && *size >= 1 && *size <= SES_MAX_FILTER_SIZE &&
             *size <= c->chars.per_word && *count >= 1 && *count <= SES_MAX_WIDTH &&
             (all += *count) <= SES_MAX_WIDTH;
    }
    c->chars.filters = (int64_t)n;
    return ok ||
           ses_fail(e, SES_EFORMAT,
                    "\"filters\" is invalid, expected pairs [characters, filters], at most %d of at most %d "
                    "characters",
                    (int)SES_MAX_FILTERS, (int)SES_MAX_FILTER_SIZE);
}

static int64_t outputs(const ses_config *c) { return c->rnn.proj ? c->rnn.proj : c->rnn.size; }

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    if (!read_filters(c, ses_json_get(config, "filters"), e)) return false;
    if (c->rnn.proj > c->rnn.size)
        return ses_fail(e, SES_EUNSUPPORTED, "\"projection_dim\" %lld exceeds \"lstm_dim\" %lld",
                        (long long)c->rnn.proj, (long long)c->rnn.size);
    if (c->rnn.proj == c->rnn.size) c->rnn.proj = 0; /* as bilm-tf: outputs are not projected */
    c->hidden = 2 * outputs(c);
    c->rnn.state = 2 * c->layers * (outputs(c) + c->rnn.size);
    c->position.max = SES_MAX_POSITIONS; /* any length */
    return true;
}

/* ---- parameters ---- */

typedef struct elmo {
    ses_char_words words;
    ses_rnn_params layer[MAX_LSTM_LAYERS][2]; /* forward, backward */
    int16_t chars[];                          /* characters of the vocabulary */
} elmo;

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    static const char *const prefix[] = { "forward.", "backward." };
    elmo *o = ses_alloc(sizeof *o + (size_t)(c->vocab * c->chars.per_word) * sizeof *o->chars, e);
    if (!o) return false;
    k->priv = o;
    o->words.chars = o->chars;
    ses_char_words_add(&o->words, s, c, outputs(c));
    ses_rnn_shape shape = {
        .type = SES_RNN_LSTM, .size = c->rnn.size, .proj = c->rnn.proj, .width = outputs(c)
    };
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < (int)k->depth; i++) o->layer[i][d] = ses_rnn_add(s, &shape, prefix[d], i, "");
    return ses_store_ok(s, e);
}

static void fill(ses_store *s, const ses_tensor *t, int64_t from, int64_t n, double value)
{
    enum { CHUNK = 256 };
    ses_device *dev = ses_store_device(s);
    ses_real x[CHUNK];
    for (int i = 0; i < CHUNK; i++) x[i] = (ses_real)value;
    for (int64_t i = 0; t && i < n; i += CHUNK)
        dev->mem->upload(dev, ses_master_data(t) + from + i, x,
                         (size_t)(n - i < CHUNK ? n - i : CHUNK) * sizeof *x);
}

/* New models: forget gates start open, highway layers as copies (Srivastava et al. 2015), as in bilm-tf. */
static void init_biases(const elmo *o, ses_store *s, const ses_config *c)
{
    int64_t n = c->rnn.size;
    for (int i = 0; i < (int)c->layers; i++)
        for (int d = 0; d < 2; d++) {
            fill(s, o->layer[i][d].in.b, 0, 4 * n, 0);
            fill(s, o->layer[i][d].in.b, n, n, 1);
            fill(s, o->layer[i][d].b, 0, 4 * n, 0);
        }
    for (int64_t i = 0; i < c->chars.highways; i++)
        fill(s, o->words.cnn.carry[i].b, 0, ses_char_filters(c), -2);
}

static bool loaded(ses_stack *k, ses_store *s, bool random, ses_err *e)
{
    elmo *o = k->priv;
    if (random) init_biases(o, s, k->c);
    return ses_char_words_load(&o->words, s, k->c, e);
}

/* ---- forward ---- */

/* Columns [from, from + n) of the state of every sequence; NULL: zeros. */
static ses_tensor *state_columns(ses_forward_ctx *p, const ses_seqs *q, int64_t from, int64_t n)
{
    if (!p->batch->rnn_state) return NULL;
    ses_real *x = ses_tape_host_alloc(p->tape, (size_t)(q->seqs * n), sizeof *x);
    for (int64_t s = 0; x && s < q->seqs; s++)
        for (int64_t i = 0; i < n; i++) x[s * n + i] = p->batch->rnn_state[s * p->c->rnn.state + from + i];
    return x ? ses_tape_input(p->tape, x, SES_DIM(q->seqs, n)) : NULL;
}

/* One direction of layer i; *state: its last output and cell state, if requested. */
static ses_tensor *run_lstm(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, int i,
                            int d, ses_tensor **state)
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    int64_t n = outputs(c), from = (2 * i + d) * (n + c->rnn.size);
    ses_tensor *in = ses_dropout(t, x, c->dropout.hidden);
    ses_rnn_run run = { .o = { .type = SES_RNN_LSTM,
                               .reverse = d,
                               .cell_clip = c->rnn.cell_clip,
                               .proj_clip = c->rnn.proj ? c->rnn.proj_clip : 0,
                               .cells = state != NULL },
                        .h0 = state_columns(p, q, from, n),
                        .c0 = state_columns(p, q, from + n, c->rnn.size) };
    ses_tensor *y = ses_rnn_layer(p, &((const elmo *)k->priv)->layer[i][d], in, q, &run);
    if (state) {
        *state = ses_rnn_last(p, q, y, d);
        y = ses_columns(t, y, 0, n);
    }
    return c->rnn.residual && i ? ses_add(t, y, in) : y;
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    ses_tape *t = p->tape;
    bool wants_state = p->request->rnn_state;
    ses_tensor *state = NULL, *words = ses_char_words_run(&((const elmo *)k->priv)->words, p, q);
    if (p->hooks_embeds) words = ses_hook_embeds(p, q, words);
    ses_tensor *x[2] = { words, words }, *all = ses_stack_output_hidden(k, p, ses_concat(t, 2, x), 0);
    bool edited = p->hooked;
    for (int i = 0; i < (int)k->depth; i++) {
        for (int d = 0; d < 2; d++) {
            ses_tensor *part = NULL;
            if (edited) x[d] = ses_columns(t, all, d * outputs(p->c), outputs(p->c));
            ses_tape_mark start = ses_tape_get_mark(t);
            x[d] = run_lstm(k, p, q, x[d], i, d, wants_state ? &part : NULL);
            if (!wants_state) x[d] = ses_tape_rewind(t, start, x[d]); /* 4 x units columns of every token */
            if (wants_state) state = state ? ses_concat(t, 2, (ses_tensor *const[]){ state, part }) : part;
        }
        all = ses_stack_output_hidden(k, p, ses_concat(t, 2, x), i + 1);
        ses_tape_wrap_error(t, "layer %d", i);
    }
    if (wants_state) ses_forward_output(p, SES_PER_SEQUENCE, state, "rnn_state");
    return all;
}

static const ses_stack_vtable vtable = { .add = add, .loaded = loaded, .run = run };

/* ---- tables ---- */

static const ses_tensor_name tensors[] = {
    { "chars.words", "word_chars" },
    { "chars.table", "char_embedding.weight" },
    { "chars.conv.#.*", "char_cnn.convolutions.#.*" },
    { "chars.highway.#.*", "char_cnn.highways.#.*" },
    { "chars.project.*", "char_cnn.projection.*" },
    { "forward.*", "forward_lm.*" },
    { "backward.*", "backward_lm.*" },
    { "predict.*", "/softmax.*" },
    { "classify.out.*", "/classifier.*" },
};

static const ses_class classes[] = {
    { .name = "ElmoModel" },
    SES_CLASS("ElmoForPreTraining", SES_USE_HEAD(bidirectional_lm, "logits")),
    SES_CLASS("ElmoForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("ElmoForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
};

const ses_model_desc ses_model_elmo = {
    .name = "elmo",
    .prefix = "elmo.",
    .vtable = &vtable,
    .defaults = { .pad_id = -1,
                  .eos_id = -1,
                  .chars.per_word = 50,
                  .chars.act = SES_ACT_RELU,
                  .chars.unk_id = -1,
                  .attention.heads = 1, /* none: checks of shared code divide by it */
                  .rnn.residual = true,
                  .dropout.head = -1,
                  .init.range = 1,
                  .init.by_fan_in = true,
                  .summary.kind = SES_SUMMARY_MEAN,
                  .summary.no_proj = true,
                  .position.kind = SES_POS_NONE },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
