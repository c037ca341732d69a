/* flair: contextual string embeddings (Akbik et al. 2018) by a character language model. The text is a
 * newline, the words with a blank between two, and a blank. A forward model's vector of a word is the state
 * at the blank after the word. A backward model reads the newline, the words and blanks from the end to the
 * beginning, and a blank; its vector is the state at the blank that follows the word in this order. */
#include "word_stack.h"

#include "base/alloc.h"
#include "base/str.h"
#include "frozen_model.h"
#include "model/model_desc.h"

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    ses_frozen_model *x = ses_frozen_open(path, dev, e);
    if (x && x->model->desc->carries_state && x->model->c.attention.causal) return *width = x->width, x;
    if (!x) return NULL;
    ses_fail(e, SES_EARG, "%s: model_type \"%s\" is not a recurrent language model, expected \"flair-lm\"",
             x->dir, ses_model_type(x->model));
    ses_frozen_close(x);
    return NULL;
}

/* The token of the blank or newline at a byte of the text, at or after token `from`; -1: none. */
static int64_t token_at(const ses_encoding *k, size_t from, size_t byte)
{
    size_t i = from;
    while (i < k->n && k->byte_offset[i].end <= byte) i++;
    bool alone = i < k->n && k->byte_offset[i].begin == byte && k->byte_offset[i].end == byte + 1;
    return alone ? (int64_t)i : -1;
}

/* Writes to row the state that belongs to each word: of a forward model at the token after the word, of a
 * backward model at the token before it, as the first and the last token keep their places. */
static bool find_rows(const ses_frozen_model *x, const ses_encoding *k, const ses_string *word, size_t n,
                      int64_t *row, ses_err *e)
{
    bool backward = x->model->c.rnn.backward;
    int64_t before = token_at(k, 0, 0);
    size_t byte = 1;
    bool ok = before == 0;
    for (size_t i = 0; ok && i < n; i++) {
        byte += word[i].n;
        int64_t after = token_at(k, (size_t)before + 1, byte++);
        ok = after >= 0 && (i + 1 < n || (size_t)after + 1 == k->n);
        row[i] = backward ? (int64_t)k->n - 1 - before : after;
        before = after;
    }
    return ok || ses_fail(e, SES_EUNSUPPORTED,
                          "%s: its tokenizer does not keep every blank and newline as a token of its own, "
                          "expected a tokenizer of characters or bytes",
                          x->dir);
}

static int32_t *ids_of(const ses_frozen_model *x, const ses_encoding *k, ses_err *e)
{
    int32_t *id = ses_alloc_array(k->n + 1, sizeof *id, e);
    for (size_t i = 0; id && i < k->n; i++) {
        bool end = i == 0 || i + 1 == k->n;
        id[i] = k->id[x->model->c.rnn.backward && !end ? k->n - 1 - i : i];
    }
    return id;
}

static bool encode(ses_frozen_model *x, const ses_string *word, size_t n, ses_err *e)
{
    ses_buf text = { 0 };
    ses_buf_append(&text, "\n", 1);
    for (size_t i = 0; i < n; i++) ses_buf_append(&text, word[i].p, word[i].n), ses_buf_append(&text, " ", 1);
    ses_input in = { .text = { text.data, text.len } };
    bool ok =
        ses_buf_ok(&text, e) && ses_encode(x->tokens, &in, &(ses_encode_options){ .no_special = true }, e);
    ses_buf_free(&text);
    return ok;
}

static bool embed(void *self, const ses_string *word, size_t n, float *out, int64_t stride, ses_err *e)
{
    ses_frozen_model *x = self;
    if (!n) return true;
    if (!encode(x, word, n, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    int64_t *row = ses_alloc_array(n, sizeof *row, e);
    int32_t *id = row && find_rows(x, k, word, n, row, e) ? ids_of(x, k, e) : NULL;
    ses_real *y = id ? ses_frozen_states(x, id, NULL, k->n, e) : NULL;
    for (size_t i = 0; y && i < n; i++)
        for (int64_t j = 0; j < x->width; j++) out[(int64_t)i * stride + j] = (float)y[row[i] * x->width + j];
    bool ok = y != NULL;
    ses_free(y);
    ses_free(id);
    ses_free(row);
    return ok;
}

const ses_word_embedder_kind ses_word_embedder_flair = {
    .name = "flair",
    .value = "DIR",
    .open = open,
    .close = ses_frozen_close,
    .embed = embed,
    .save = ses_frozen_save,
};
