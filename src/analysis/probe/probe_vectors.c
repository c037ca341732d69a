/* Static word vectors as the input of a probe. */
#include "probe_vectors.h"

#include "base/alloc.h"
#include "base/unicode/lowercase.h"
#include "sesame/vectors.h"
#include "vectors/word_split.h"

#include <string.h>

typedef struct reader {
    ses_probe_vectors *out;
    ses_vectors *v;
    float *one; /* [width] */
    ses_buf lower;
    ses_words words;
} reader;

/* Adds the vector of a word to `to`; *known counts the words that have one. */
static bool add_word(reader *r, ses_string word, float *to, size_t *known, ses_err *e)
{
    int64_t at = ses_vectors_find(r->v, word.p, word.n);
    bool found = at >= 0;
    r->out->words++;
    if (found) {
        if (!ses_vectors_get(r->v, at, r->one, e)) return false;
    } else {
        r->lower.len = 0;
        ses_lower_append(&r->lower, word.p, word.n);
        if (!ses_buf_ok(&r->lower, e) ||
            !ses_vectors_lookup(r->v, r->lower.data ? r->lower.data : "", r->lower.len, r->one, &found, e))
            return false;
    }
    *known += found;
    r->out->unknown += !found;
    for (size_t k = 0; found && k < r->out->width; k++) to[k] += r->one[k];
    return true;
}

static bool add_text(reader *r, ses_string text, float *to, size_t *known, ses_err *e)
{
    if (!ses_words_split(&r->words, text, SES_WORDS_TEXT, e)) return false;
    for (size_t i = 0; i < r->words.n; i++) {
        size_t begin = r->words.begin[i];
        ses_string word = { r->words.text.data + begin, r->words.end[i] - begin };
        if (!add_word(r, word, to, known, e)) return false;
    }
    return true;
}

/* The rows of one text, *rows of them. */
static bool read_input(reader *r, const ses_input *in, bool by_word, float *to, size_t *rows, ses_err *e)
{
    size_t width = r->out->width, known = 0, n = by_word ? in->n_words : 1;
    *rows = n;
    for (size_t i = 0; i < in->n_words; i++)
        if (!add_word(r, in->words[i], to + (by_word ? i * width : 0), &known, e)) return false;
    if (by_word) return true;
    if (in->text.p && !add_text(r, in->text, to, &known, e)) return false;
    if (in->pair.p && !add_text(r, in->pair, to, &known, e)) return false;
    for (size_t k = 0; known && k < width; k++) to[k] /= (float)known;
    return true;
}

bool ses_probe_vectors_read(ses_probe_vectors *v, const char *path, const ses_probe_data *d, ses_err *e)
{
    reader r = { .out = v, .v = ses_vectors_open(path, e) };
    bool ok = r.v && ses_vectors_read_words(r.v, 0, e);
    size_t row = 0, n = 0;
    if (ok) {
        v->duplicates = ses_vectors_duplicates(r.v);
        v->width = (size_t)ses_vectors_dim(r.v);
        v->x = ses_alloc_huge(d->rows * v->width, sizeof *v->x, e);
        r.one = ses_alloc_array(v->width, sizeof *r.one, e);
        ok = v->x && r.one;
    }
    for (size_t i = 0; ok && i < d->n_inputs; i++, row += n)
        ok = read_input(&r, &d->input[i], d->unit == SES_STATES_OF_WORDS, v->x + row * v->width, &n, e);
    if (!ok) ses_wrap(e, "--vectors %s", path);
    ses_buf_free(&r.lower);
    ses_words_free(&r.words);
    ses_free(r.one);
    ses_vectors_free(r.v);
    return ok;
}

void ses_probe_vectors_free(ses_probe_vectors *v)
{
    ses_free(v->x);
    *v = (ses_probe_vectors){ 0 };
}
