/* Tagger of words: stacked vectors of words, a bidirectional LSTM, and a linear layer with or without a CRF
 * (Huang et al. 2015, Lample et al. 2016; as in flair, Akbik et al. 2018). The input of a word is [frozen
 * vectors (ses_batch.modal_vectors) | its trained vector | the last states of a bidirectional LSTM over its
 * bytes]. */
#include "model/model_desc.h"

#include "base/alloc.h"

#include <stdio.h>

enum { BYTES = 256, MAX_RNN_LAYERS = 8 };

static const ses_config_key keys[] = {
    SES_KEY_INTEGER("vocab_size", vocab, 1, SES_MAX_VOCAB),
    SES_KEY_INTEGER("vector_size", embed.modal_width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("word_size", embed.width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("char_size", embed.char_width, 0, SES_MAX_WIDTH),
    SES_KEY_INTEGER("char_rnn_size", embed.char_size, 0, SES_MAX_WIDTH),
    SES_KEY_FLAG("reproject", embed.reproject),
    SES_KEY_REQUIRED("rnn_size", rnn.size, SES_MAX_WIDTH / 2),
    SES_KEY_INTEGER("num_hidden_layers", layers, 1, MAX_RNN_LAYERS),
    SES_KEY_RATE("word_dropout", rnn.embed_drop),
    SES_KEY_RATE("locked_dropout", rnn.input_drop),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    (void)config;
    c->hidden = 2 * c->rnn.size;
    if (!c->embed.char_width != !c->embed.char_size)
        return ses_fail(e, SES_EFORMAT, "\"char_size\" and \"char_rnn_size\": expected both or none");
    if (!c->embed.modal_width && !c->embed.width && !c->embed.char_size)
        return ses_fail(e, SES_EFORMAT,
                        "\"vector_size\", \"word_size\" and \"char_size\" are 0: a word has no vector");
    return true;
}

typedef struct tagger {
    ses_tensor *bytes; /* [BYTES, char width] */
    ses_rnn_params chars[2], rnn[MAX_RNN_LAYERS][2];
    ses_dense reproject;
} tagger;

static int64_t input_width(const ses_config *c)
{
    return c->embed.modal_width + c->embed.width + 2 * c->embed.char_size;
}

static void add_both(ses_store *s, ses_rnn_params r[2], int64_t size, int64_t width, const char *prefix,
                     int layer)
{
    ses_rnn_shape shape = { .type = SES_RNN_LSTM, .size = size, .width = width };
    r[0] = ses_rnn_add(s, &shape, prefix, layer, "");
    r[1] = ses_rnn_add(s, &shape, prefix, layer, "_reverse");
}

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    tagger *t = k->priv = ses_alloc(sizeof *t, e);
    int64_t width = input_width(c);
    if (!t) return false;
    if (c->embed.width) {
        k->token = ses_store_add(s, "embed.token.weight", SES_DIM(c->vocab, c->embed.width), SES_INIT_NORMAL);
        ses_store_set_embedding(s, k->token);
    }
    if (c->embed.char_size) {
        t->bytes =
            ses_store_add(s, "embed.token.byte.weight", SES_DIM(BYTES, c->embed.char_width), SES_INIT_NORMAL);
        add_both(s, t->chars, c->embed.char_size, c->embed.char_width, "char_rnn.", 0);
    }
    if (c->embed.reproject) t->reproject = ses_dense_add(s, width, width, SES_BIAS, "reproject");
    for (int i = 0; i < (int)c->layers; i++)
        add_both(s, t->rnn[i], c->rnn.size, i ? c->hidden : width, "rnn.", i);
    return true;
}

/* [T, 2 char_size]: the last states of both directions over the bytes of each word. */
static ses_tensor *run_chars(const tagger *g, ses_forward_ctx *p)
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

static ses_tensor *embed(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_batch *b = p->batch;
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    ses_tensor *part[3] = { NULL };
    int n = 0;
    if (c->embed.modal_width) {
        int32_t *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row);
        for (int64_t i = 0; row && i < q->tokens; i++)
            row[i] = b->modal_rows[i] < 0 ? SES_IGNORE_INDEX : b->modal_rows[i];
        ses_tensor *x = ses_tape_input(t, b->modal_vectors, SES_DIM(b->n_modal, c->embed.modal_width));
        part[n++] = row ? ses_gather(t, x, ses_tape_ints(t, row, q->tokens)) : NULL;
    }
    if (c->embed.width)
        part[n++] = ses_embed(t, 1, (ses_tensor *const[]){ k->token }, (ses_tensor *const[]){ q->ids }, -1);
    if (c->embed.char_size) part[n++] = run_chars(k->priv, p);
    return n > 1 ? ses_concat(t, n, part) : part[0];
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_batch *b = p->batch;
    const ses_config *c = p->c;
    const tagger *g = k->priv;
    if ((c->embed.modal_width && !b->modal_rows) || (c->embed.char_size && !b->word_char_cu)) {
        ses_tape_fail(
            p->tape, SES_EARG,
            "a tagger reads words with their vectors and characters (modal_vectors, word_chars), not "
            "only ids: use ner, eval or predict");
        return NULL;
    }
    ses_tensor *x = embed(k, p, q);
    x = x ? ses_dropout_tokens(p, q, x, c->rnn.embed_drop, false) : NULL;
    x = x ? ses_dropout_locked(p, q, x, c->rnn.input_drop) : NULL;
    if (x && c->embed.reproject) x = ses_dense_run(p->tape, g->reproject, x, SES_ACT_NONE);
    for (int i = 0; i < (int)c->layers && x; i++) x = ses_rnn_bidirectional(p, g->rnn[i], x, q, SES_RNN_LSTM);
    return x ? ses_dropout_locked(p, q, x, c->rnn.input_drop) : NULL;
}

static const ses_stack_vtable vtable = { .add = add, .run = run };

static const ses_tensor_name tensors[] = {
    { "embed.token.byte.weight", "char_embeddings.weight" },
    { "embed.token.weight", "word_embeddings.weight" },
    { "char_rnn.*", "char_rnn.*" },
    { "reproject.*", "embedding2nn.*" },
    { "rnn.*", "rnn.*" },
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
    .defaults = { .pad_id = -1,
                  .eos_id = -1,
                  .decoder.start_id = -1,
                  .layers = 1,
                  .attention.heads = 1,
                  .dropout.head = 0,
                  .dropout.token_classification = -1,
                  .init.range = 0.577, /* that of uniform numbers in +-1 / sqrt(inputs) */
                  .init.by_fan_in = true,
                  .rnn.embed_drop = 0.05,
                  .rnn.input_drop = 0.5,
                  .position.kind = SES_POS_NONE,
                  .position.max = SES_MAX_POSITIONS,
                  .embed.reproject = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
