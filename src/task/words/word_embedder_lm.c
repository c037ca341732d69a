/* lm: the last hidden state of a frozen causal language model, or chosen layers, at the last token of each
 * word; its text is the words with a blank between two. Words beyond the model's longest text get zeros. */
#include "word_stack.h"

#include "base/str.h"
#include "frozen_model.h"
#include "model/model_desc.h"

static const char *problem(const ses_model *m)
{
    if (m->desc->encoder_decoder || !m->c.attention.causal)
        return "is not a causal language model: use transformer:DIR for an encoder, elmo:DIR for ELMo";
    if (m->c.rnn.backward) return "reads reversed texts: use flair:DIR";
    return NULL;
}

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    ses_frozen_model *x = ses_frozen_open_layers(path, dev, e);
    if (!x) return NULL;
    const char *why = problem(x->model);
    if (!why) return *width = x->width, x;
    ses_fail(e, SES_EARG, "%s: this \"%s\" %s", x->dir, ses_model_type(x->model), why);
    ses_frozen_close(x);
    return NULL;
}

static bool encode(ses_frozen_model *x, const ses_string *word, size_t n, ses_err *e)
{
    ses_buf text = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (i) ses_buf_append(&text, " ", 1);
        ses_buf_append(&text, word[i].p, word[i].n);
    }
    ses_input in = { .text = { text.data ? text.data : "", text.len } };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = ses_model_max_tokens(x->model) };
    bool ok = ses_buf_ok(&text, e) && ses_encode(x->tokens, &in, &o, e);
    ses_buf_free(&text);
    return ok;
}

/* Adds words [first, end) as a text; the vector of a word is the state of the last token that overlaps it. */
static bool add_text(ses_frozen_model *x, ses_frozen_texts *t, const ses_string *word, size_t first,
                     size_t end, ses_err *e)
{
    if (first == end) return true;
    if (!encode(x, word + first, end - first, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    size_t begin = 0, at = 0, tokens = t->tokens;
    bool ok = ses_frozen_texts_add(t, k->id, k->type_id, k->n, e);
    for (size_t i = first; ok && i < end; begin += word[i++].n + 1) {
        int64_t last = -1;
        size_t after = begin + word[i].n;
        for (; at < k->n && (k->special_mask[at] || k->byte_offset[at].begin < after); at++)
            if (!k->special_mask[at] && k->byte_offset[at].end > begin) last = (int64_t)at;
        if (last < 0) continue;
        at = (size_t)last; /* it may overlap the next word, too */
        ok = ses_frozen_texts_read(t, i, tokens + at, e);
    }
    return ok;
}

static bool embed(void *self, const ses_sentences *s, float *out, int64_t stride, ses_err *e)
{
    return ses_frozen_embed(self, s, add_text, out, stride, e);
}

const ses_word_embedder_kind ses_word_embedder_lm = {
    .name = "lm",
    .value = "DIR[@LAYERS]",
    .open = open,
    .close = ses_frozen_close,
    .embed = embed,
    .save = ses_frozen_save,
    .layers = ses_frozen_layers,
    .mixed = ses_frozen_mixed,
};
