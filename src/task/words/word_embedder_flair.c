/* flair: contextual string embeddings (Akbik et al. 2018) by a character language model. The text is a
 * newline, the words with a blank between two, and a blank. A forward model's vector of a word is the state
 * at the blank after the word. A backward model reads the newline, the words and blanks from the end to the
 * beginning, and a blank; its vector is the state at the blank that follows the word in this order. */
#include "word_stack.h"

#include "base/alloc.h"
#include "base/str.h"
#include "frozen_model.h"
#include "model/model_desc.h"

#include <string.h>

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

typedef struct chars {
    int32_t *id;
    int64_t *row; /* [words]: the state of each word */
    size_t n, cap;
} chars;

static void free_chars(chars *c)
{
    ses_free(c->id);
    ses_free(c->row);
}

/* Adds the ids of a part of the text. */
static bool add(ses_frozen_model *x, chars *c, ses_string part, ses_err *e)
{
    const int32_t *id;
    size_t n;
    if (!ses_encode_ids(x->tokens, part.p, part.n, false, &id, &n, e)) return false;
    if (n > c->cap - c->n) {
        size_t cap = 2 * (c->n + n) + 64;
        int32_t *more = ses_realloc_array(c->id, cap, sizeof *more, e);
        if (!more) return false;
        c->id = more, c->cap = cap;
    }
    if (n) memcpy(c->id + c->n, id, n * sizeof *id);
    c->n += n;
    return true;
}

/* Fails if the tokens depend on their neighbors; alone: newline and blanks are one token each. */
static bool check(ses_frozen_model *x, const chars *c, bool alone, const ses_string *word, size_t n,
                  ses_err *e)
{
    ses_buf text = { 0 };
    const int32_t *id;
    size_t all;
    ses_buf_put(&text, '\n');
    for (size_t i = 0; i < n; i++) ses_buf_append(&text, word[i].p, word[i].n), ses_buf_put(&text, ' ');
    bool ok = ses_buf_ok(&text, e) && ses_encode_ids(x->tokens, text.data, text.len, false, &id, &all, e);
    if (ok && (!alone || all != c->n || memcmp(id, c->id, all * sizeof *id) != 0))
        ok = ses_fail(e, SES_EUNSUPPORTED,
                      "%s: its tokens are not characters, expected a tokenizer of characters or bytes with "
                      "blank and newline",
                      x->dir);
    ses_buf_free(&text);
    return ok;
}

/* The ids of the text and the row of each word. A backward model reads everything between the first and the
 * last token in reverse order. */
static bool read_chars(ses_frozen_model *x, chars *c, const ses_string *word, size_t n, ses_err *e)
{
    static const ses_string newline = { "\n", 1 }, blank = { " ", 1 };
    bool backward = x->model->c.rnn.backward;
    c->row = ses_alloc_array(n, sizeof *c->row, e);
    bool ok = c->row && add(x, c, newline, e), alone = c->n == 1;
    for (size_t i = 0; ok && i < n; i++) {
        size_t before = c->n;
        ok = add(x, c, word[i], e);
        c->row[i] = (int64_t)(backward ? before : c->n + 1) - 1;
        before = c->n;
        ok = ok && add(x, c, blank, e);
        alone = alone && c->n == before + 1;
    }
    if (!ok || !check(x, c, alone, word, n, e)) return false;
    if (!backward) return true;
    for (size_t i = 0; i < n; i++) c->row[i] = (int64_t)c->n - 1 - c->row[i];
    for (size_t i = 1, j = c->n - 2; i < j; i++, j--) {
        int32_t id = c->id[i];
        c->id[i] = c->id[j], c->id[j] = id;
    }
    return true;
}

/* Adds words [first, end) as a text. The rows of a backward model fall from word to word. */
static bool add_text(ses_frozen_model *x, ses_frozen_texts *t, const ses_string *word, size_t first,
                     size_t end, ses_err *e)
{
    chars c = { 0 };
    size_t n = end - first, begin = t->tokens;
    if (!n) return true;
    bool ok = read_chars(x, &c, word + first, n, e) && ses_frozen_texts_add(t, c.id, NULL, c.n, e);
    for (size_t k = 0; ok && k < n; k++) {
        size_t i = x->model->c.rnn.backward ? n - 1 - k : k;
        ok = ses_frozen_texts_read(t, first + i, begin + (size_t)c.row[i], e);
    }
    free_chars(&c);
    return ok;
}

static bool embed(void *self, const ses_sentences *s, float *out, int64_t stride, ses_err *e)
{
    return ses_frozen_embed(self, s, add_text, out, stride, e);
}

const ses_word_embedder_kind ses_word_embedder_flair = {
    .name = "flair",
    .value = "DIR",
    .open = open,
    .close = ses_frozen_close,
    .embed = embed,
    .save = ses_frozen_save,
};
