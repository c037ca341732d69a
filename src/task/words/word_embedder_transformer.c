/* transformer: the last hidden state of a frozen encoder, or chosen layers, at the first token of each word.
 * Words beyond the encoder's longest text get zeros. */
#include "word_stack.h"

#include "frozen_model.h"

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    ses_frozen_model *x = ses_frozen_open_layers(path, dev, e);
    if (x) *width = x->width;
    return x;
}

/* Adds words [first, end) as a text. */
static bool add_text(ses_frozen_model *x, ses_frozen_texts *t, const ses_string *word, size_t first,
                     size_t end, ses_err *e)
{
    ses_input in = { .words = word + first, .n_words = end - first };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = ses_model_max_tokens(x->model) };
    if (!ses_encode(x->tokens, &in, &o, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    size_t begin = t->tokens;
    int32_t before = -1;
    bool ok = ses_frozen_texts_add(t, k->id, k->type_id, k->n, e);
    for (size_t i = 0; ok && i < k->n; i++) {
        int32_t at = k->special_mask[i] ? -1 : k->word_id[i];
        if (at < 0 || at == before) continue;
        ok = ses_frozen_texts_read(t, first + (size_t)at, begin + i, e);
        before = at;
    }
    return ok;
}

static bool embed(void *self, const ses_sentences *s, float *out, int64_t stride, ses_err *e)
{
    return ses_frozen_embed(self, s, add_text, out, stride, e);
}

const ses_word_embedder_kind ses_word_embedder_transformer = {
    .name = "transformer",
    .value = "DIR[@LAYERS]",
    .open = open,
    .close = ses_frozen_close,
    .embed = embed,
    .save = ses_frozen_save,
    .layers = ses_frozen_layers,
    .mixed = ses_frozen_mixed,
};
