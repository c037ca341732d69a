/* Tagger of words: stacked vectors of words, an encoder (tagger_encoder.h), and a linear layer with or
 * without a CRF (Collobert et al. 2011, Huang et al. 2015, Lample et al. 2016; as in flair, Akbik et al.
 * 2018). The input of a word is [frozen vectors (ses_batch.modal_vectors) | its trained vector | the vector
 * of its capital letters | the last states of a bidirectional LSTM over its bytes]. */
#include "tagger_encoder.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "recurrent_tables.h"

#include <stdio.h>

enum { BYTES = 256 };
enum { LETTERS = 1 << SES_GC_LU | 1 << SES_GC_LL | 1 << SES_GC_LT | 1 << SES_GC_LM | 1 << SES_GC_LO };

/* Capital letters of a word. */
enum { CAPS_NONE, CAPS_ALL, CAPS_FIRST, CAPS_SOME, CAPS_KINDS };

static const ses_tagger_encoder *const encoders[] = {
#define SES_TAGGER_ENCODER(name) &ses_tagger_##name,
#include "tagger_encoders.def"
#undef SES_TAGGER_ENCODER
};

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("vocab_size", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("vector_size", embed.modal_width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("word_size", embed.width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("caps_size", embed.caps_width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("char_size", embed.char_width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("char_rnn_size", embed.char_size, 0, SES_MAX_WIDTH),
    SES_KEY_FLAG("vector_norm", embed.vector_norm),
    SES_KEY_FLAG("reproject", embed.reproject),
    SES_KEY_INTEGER("rnn_size", rnn.size, 1, SES_MAX_WIDTH / 2),
    SES_KEY_INTEGER("num_hidden_layers", layers, 1, SES_MAX_TAGGER_LAYERS),
    SES_KEY_INTEGER("lm_layer", tagger.late_layer, 0, SES_MAX_TAGGER_LAYERS),
    SES_KEY_INTEGER("lm_size", tagger.late_width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("window_size", tagger.window, 1, SES_MAX_TAGGER_WINDOW),
    SES_KEY_INTEGER("hidden_size", hidden, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("conv_size", tagger.conv_width, 1, SES_MAX_WIDTH),
    SES_KEY_INTEGER("distance_size", tagger.distance_width, 1, SES_MAX_WIDTH),
    SES_KEY_RATE("word_dropout", rnn.embed_drop),
    SES_KEY_RATE("locked_dropout", rnn.input_drop),
};

/* Columns of the encoder's input. */
static int64_t input_width(const ses_config *c)
{
    return ses_tagger_mix_width(c, 0, c->embed.modal_width - c->tagger.late_width) + c->embed.width +
           c->embed.caps_width + 2 * c->embed.char_size;
}

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    const char *names[SES_LEN(encoders)];
    size_t encoder;
    for (size_t i = 0; i < SES_LEN(encoders); i++) names[i] = encoders[i]->name;
    if (!ses_config_name(config, "encoder", names, SES_LEN(names), &encoder, e)) return false;
    c->tagger.encoder = (int64_t)encoder;
    if (!c->vocab) return ses_fail(e, SES_EFORMAT, "\"vocab_size\" is missing, expected at least 1");
    if (!c->embed.char_width != !c->embed.char_size)
        return ses_fail(e, SES_EFORMAT, "\"char_size\" and \"char_rnn_size\": expected both or none");
    if (c->tagger.late_width > c->embed.modal_width)
        return ses_fail(e, SES_EFORMAT, "\"lm_size\" is %lld, expected at most \"vector_size\", %lld",
                        (long long)c->tagger.late_width, (long long)c->embed.modal_width);
    if (!ses_tagger_mix_read(c, config, e)) return false;
    if (!input_width(c))
        return ses_fail(e, SES_EFORMAT,
                        "a word has no vector: \"vector_size\", \"word_size\", \"caps_size\" "
                        "and \"char_size\" are 0 at the input of the first layer");
    return encoders[encoder]->check(c, e);
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    ses_tagger_params *t = k->priv = ses_alloc(sizeof *t, e);
    int64_t width = input_width(c);
    if (!t) return false;
    if (c->embed.width) {
        k->token = ses_store_add(s, "embed.token.weight", SES_DIM(c->vocab, c->embed.width), SES_INIT_NORMAL);
        ses_store_set_embedding(s, k->token);
    }
    if (c->embed.caps_width)
        t->caps = ses_store_add(s, "embed.token.caps.weight", SES_DIM(CAPS_KINDS, c->embed.caps_width),
                                SES_INIT_NORMAL);
    if (c->embed.char_size) {
        ses_rnn_shape shape = { .type = SES_RNN_LSTM,
                                .size = c->embed.char_size,
                                .width = c->embed.char_width };
        t->bytes =
            ses_store_add(s, "embed.token.byte.weight", SES_DIM(BYTES, c->embed.char_width), SES_INIT_NORMAL);
        t->chars[0] = ses_rnn_add(s, &shape, "char_rnn.", 0, "");
        t->chars[1] = ses_rnn_add(s, &shape, "char_rnn.", 0, "_reverse");
    }
    if (c->embed.vector_norm && c->embed.modal_width)
        t->vector_norm = ses_batch_norm_add(s, c->embed.modal_width, "vector_norm.");
    ses_tagger_mix_add(t, s, c);
    if (c->embed.reproject) t->reproject = ses_dense_add(s, width, width, SES_BIAS, "reproject");
    encoders[c->tagger.encoder]->add(t, s, c, width);
    return true;
}

/* [T, 2 char_size]: the last states of both directions over the bytes of each word. */
static ses_tensor *run_chars(const ses_tagger_params *g, ses_forward_ctx *p)
{
    const ses_batch *b = p->batch;
    ses_tape *t = p->tape;
    int64_t n = b->word_char_cu[b->tokens], size = p->c->embed.char_size;
    if (!n) { /* no word has bytes */
        ses_real *zeros = ses_tape_host_alloc(t, (size_t)(b->tokens * 2 * size), sizeof *zeros);
        return zeros ? ses_tape_input(t, zeros, SES_DIM(b->tokens, 2 * size)) : NULL;
    }
    ses_seqs words = { .seqs = b->tokens,
                       .tokens = n,
                       .host_cu_seqlens = b->word_char_cu,
                       .cu_seqlens = ses_tape_ints(t, b->word_char_cu, b->tokens + 1) };
    ses_tensor *id = ses_tape_ints(t, b->word_chars, n),
               *x = ses_embed(t, 1, (ses_tensor *const[]){ g->bytes }, (ses_tensor *const[]){ id }, -1);
    ses_tensor *y = x ? ses_rnn_bidirectional(p, g->chars, x, &words, SES_RNN_LSTM) : NULL;
    return y ? ses_rnn_final_states(p, &words, y) : NULL;
}

/* The kind of a word's capital letters; bytes: its characters, of which the last may be incomplete. */
static int32_t caps_of(const int32_t *bytes, int32_t n)
{
    int32_t letters = 0, upper = 0, upper_at_start = 0;
    for (int32_t i = 0; i < n;) {
        char c[4];
        uint32_t cp, low[2];
        size_t have = 0;
        for (; have < sizeof c && i + (int32_t)have < n; have++) c[have] = (char)bytes[i + (int32_t)have];
        size_t used = ses_utf8_decode(c, have, &cp);
        if (used) {
            bool is_upper = ses_cp_lower(cp, low) != 1 || low[0] != cp;
            letters += is_upper || ses_gc_in(cp, LETTERS);
            upper += is_upper;
            upper_at_start |= is_upper && i == 0;
        }
        i += used ? (int32_t)used : 1;
    }
    if (!upper) return CAPS_NONE;
    return upper == letters ? CAPS_ALL : upper_at_start && upper == 1 ? CAPS_FIRST : CAPS_SOME;
}

static ses_tensor *run_caps(const ses_tagger_params *g, ses_forward_ctx *p)
{
    const ses_batch *b = p->batch;
    int32_t *kind = ses_tape_host_alloc(p->tape, (size_t)b->tokens, sizeof *kind);
    for (int64_t i = 0; kind && i < b->tokens; i++)
        kind[i] = caps_of(b->word_chars + b->word_char_cu[i], b->word_char_cu[i + 1] - b->word_char_cu[i]);
    ses_tensor *id = kind ? ses_tape_ints(p->tape, kind, b->tokens) : NULL;
    return id ? ses_embed(p->tape, 1, (ses_tensor *const[]){ g->caps }, (ses_tensor *const[]){ id }, -1)
              : NULL;
}

/* The frozen vectors of the words; zeros if a word has none. Normalized, states of language models, which
 * have a large common part, and static vectors are equally easy to learn from. */
static ses_tensor *frozen_vectors(const ses_tagger_params *g, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_batch *b = p->batch;
    ses_tape *t = p->tape;
    int32_t *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row);
    for (int64_t i = 0; row && i < q->tokens; i++)
        row[i] = b->modal_rows[i] < 0 ? SES_IGNORE_INDEX : b->modal_rows[i];
    ses_tensor *x = ses_tape_input(t, b->modal_vectors, SES_DIM(b->n_modal, p->c->embed.modal_width));
    x = row ? ses_gather(t, x, ses_tape_ints(t, row, q->tokens)) : NULL;
    return g->vector_norm.gain ? ses_batch_norm_run(t, &g->vector_norm, x) : x;
}

/* The encoder's input. *late: the vectors that enter later; NULL: none. */
static ses_tensor *embed(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor **late)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    ses_tensor *part[4] = { NULL };
    int64_t at_input = c->embed.modal_width - c->tagger.late_width;
    int n = 0;
    *late = NULL;
    if (c->embed.modal_width) {
        ses_tensor *x = frozen_vectors(k->priv, p, q);
        if (!x) return NULL;
        if (at_input) part[n++] = ses_tagger_mix_run(k->priv, p, x, 0, at_input);
        if (c->tagger.late_width) *late = ses_tagger_mix_run(k->priv, p, x, at_input, c->embed.modal_width);
    }
    if (c->embed.width)
        part[n++] = ses_embed(t, 1, (ses_tensor *const[]){ k->token }, (ses_tensor *const[]){ q->ids }, -1);
    if (c->embed.caps_width) part[n++] = run_caps(k->priv, p);
    if (c->embed.char_size) part[n++] = run_chars(k->priv, p);
    return n > 1 ? ses_concat(t, n, part) : part[0];
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_batch *b = p->batch;
    const ses_config *c = p->c;
    const ses_tagger_params *g = k->priv;
    ses_tensor *late;
    if ((c->embed.modal_width && !b->modal_rows) ||
        ((c->embed.char_size || c->embed.caps_width) && !b->word_char_cu)) {
        ses_tape_fail(
            p->tape, SES_EARG,
            "a tagger reads words with their vectors and characters (modal_vectors, word_chars), not "
            "only ids: use ner, eval or predict");
        return NULL;
    }
    ses_tensor *x = embed(k, p, q, &late);
    x = x ? ses_dropout_tokens(p, q, x, c->rnn.embed_drop, false) : NULL;
    x = x ? ses_dropout_locked(p, q, x, c->rnn.input_drop) : NULL;
    if (late) late = ses_dropout_locked(p, q, late, c->rnn.input_drop);
    if (x && c->embed.reproject) x = ses_dense_run(p->tape, g->reproject, x, SES_ACT_NONE);
    x = x ? ses_stack_output_hidden(k, p, x, 0) : NULL;
    x = x ? encoders[c->tagger.encoder]->run(k, p, q, x, late) : NULL;
    x = x ? ses_dropout_locked(p, q, x, c->rnn.input_drop) : NULL;
    return x ? ses_stack_output_hidden(k, p, x, k->depth) : NULL;
}

static const ses_stack_vtable vtable = { .add = add, .run = run };

static const ses_tensor_name tensors[] = {
    { "embed.token.byte.weight", "char_embeddings.weight" },
    { "embed.token.caps.weight", "caps_embeddings.weight" },
    { "embed.token.weight", "word_embeddings.weight" },
    { "char_rnn.*", "char_rnn.*" },
    { "vector_norm.*", "vector_norm.*" },
    { "vector_mix.#.*", "vector_mix.#.*" },
    { "reproject.*", "embedding2nn.*" },
    { "rnn.*", "rnn.*" },
    { "pad", "padding" },
    { "distance", "distance_embeddings.weight" },
    { "conv.*", "convolution.*" },
    { "conv_distance.*", "distance_convolution.*" },
    { "hidden.*", "hidden.*" },
    { "tag.*", "/linear.*" },
};

static const ses_class classes[] = {
    { .name = "TaggerModel" },
    SES_CLASS("TaggerForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
};

const ses_model_desc ses_model_tagger = {
    .name = "tagger",
    .prefix = "",
    .vtable = &vtable,
    .defaults = { SES_RECURRENT_DEFAULTS, .layers = 1, .hidden = 300,
                  .tagger = { .window = 5, .conv_width = 300, .distance_width = 5 }, .attention.heads = 1,
                  .dropout.head = 0, .dropout.token_classification = -1,
                  .init.range = 0.577, /* that of uniform numbers in +-1 / sqrt(inputs) */
                  .init.by_fan_in = true, .rnn.embed_drop = 0.05, .rnn.input_drop = 0.5,
                  .position.max = SES_MAX_POSITIONS, .embed.reproject = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
