/* fastText models, .bin and .ftz (vectors/fasttext): a word has the mean of its own row and the rows of its
 * n-grams, an unknown word that of its n-grams. */
#include "base/alloc.h"
#include "vectors/fasttext/fasttext_model.h"
#include "vectors/vectors_impl.h"

#include <string.h>

enum { MAGIC = 793712314, PROGRESS_ROWS = 1024 };

extern const ses_word_format ses_word_format_fasttext;

static bool detect(const ses_vectors *v)
{
    static const unsigned char magic[] = { MAGIC & 255, MAGIC >> 8 & 255, MAGIC >> 16 & 255, MAGIC >> 24 };
    return !v->is_folder && v->n >= sizeof magic && !memcmp(v->p, magic, sizeof magic);
}

static bool open(ses_vectors *v, ses_err *e)
{
    ses_fasttext_model *m = v->extra = ses_fasttext_from_bytes(v->p, v->n, e);
    if (!m) return false;
    v->dim = (int64_t)ses_fasttext_dim(m);
    v->stated = (int64_t)ses_fasttext_n_words(m);
    return true;
}

static bool next(ses_vectors *v, ses_vector_row *row, ses_err *e)
{
    const ses_fasttext_model *m = v->extra;
    if (v->at == ses_fasttext_n_words(m)) return true;
    ses_string w = ses_fasttext_word_at(m, v->at);
    if (!ses_vector_word_check(w.p, w.n, e)) return ses_wrap(e, "word %zu", v->at);
    *row = (ses_vector_row){ w.p, NULL, (uint32_t)w.n };
    v->at++;
    return true;
}

static bool get(const ses_vectors *v, const ses_vector_row *row, float *out, ses_err *e)
{
    return ses_fasttext_word_vector(v->extra, row->word, row->len, out, NULL, e) &&
           ses_vector_check_finite(v, out, e);
}

static bool unknown(const ses_vectors *v, ses_string word, float *out, bool *known, ses_err *e)
{
    size_t rows;
    float *x = ses_alloc_array((size_t)v->dim, sizeof *x, e);
    bool ok = x && ses_fasttext_word_vector(v->extra, word.p, word.n, x, &rows, e) &&
              ses_vector_check_finite(v, x, e);
    *known = ok && rows > 0;
    if (*known) memcpy(out, x, (size_t)v->dim * sizeof *x);
    ses_free(x);
    return ok;
}

static void close_model(ses_vectors *v) { ses_fasttext_free(v->extra); }

/* ---- writing ---- */

static const char *refuses(ses_string word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] == ' ' || (word.p[i] >= '\t' && word.p[i] <= '\r'))
            return "a blank or line end in the word, which fastText cannot read";
    return NULL;
}

/* A model without subwords. Counts that are not known fall from the first word to the last. */
static bool make_model(ses_fasttext_model *m, const ses_vectors *v, const ses_vectors_save_options *o,
                       ses_err *e)
{
    size_t n = (size_t)ses_vectors_count(v), dim = (size_t)v->dim, count;
    m->set = (ses_fasttext_settings){ .dim = (int32_t)dim,
                                      .ws = 5,
                                      .epoch = 5,
                                      .min_count = 1,
                                      .neg = 5,
                                      .word_ngrams = 1,
                                      .loss = SES_FASTTEXT_NEGATIVE,
                                      .model = SES_FASTTEXT_SKIPGRAM,
                                      .lr_update_rate = 100,
                                      .t = 1e-4 };
    m->n_pruned = -1;
    m->in.rows = m->out.rows = (int64_t)n, m->in.columns = m->out.columns = (int64_t)dim;
    if (!ses_mul_size(n, dim, &count)) return ses_fail(e, SES_ENOMEM, "too many vectors");
    m->d.word = ses_alloc_array(n, sizeof *m->d.word, e);
    m->in.own = m->d.word ? ses_alloc_array(count, sizeof *m->in.own, e) : NULL;
    m->out.own = m->in.own ? ses_alloc_array(count, sizeof *m->out.own, e) : NULL;
    if (!m->out.own) return false;
    m->d.n = m->d.n_words = n;
    for (size_t i = 0; i < n; i++) {
        ses_string w = ses_vectors_word(v, (int64_t)i);
        int64_t times = v->format->count ? v->format->count(v, (int64_t)i) : (int64_t)(n - i);
        m->d.word[i] = (ses_fasttext_word){ .text = w.p, .len = w.n, .count = times };
        m->d.tokens += times;
        if (!ses_vectors_get(v, (int64_t)i, m->in.own + i * dim, e)) return false;
        if (o->progress && i % PROGRESS_ROWS == 0 && !o->progress(o->ctx, (int64_t)i, (int64_t)n))
            return ses_fail(e, SES_EIO, "interrupted; nothing was written");
    }
    return true;
}

static bool save(const ses_vectors *v, const char *path, const ses_vectors_save_options *o, ses_err *e)
{
    if (v->format == &ses_word_format_fasttext && v->complete) /* the whole model, with its subwords */
        return ses_fasttext_save(v->extra, path, o->overwrite, e);
    ses_fasttext_model m = { 0 };
    bool ok = make_model(&m, v, o, e) && ses_fasttext_save(&m, path, o->overwrite, e);
    ses_fasttext_clear(&m);
    return ok;
}

const ses_word_format ses_word_format_fasttext = {
    .name = "fasttext",
    .title = "fastText model",
    .detect = detect,
    .open = open,
    .next = next,
    .get = get,
    .unknown = unknown,
    .close = close_model,
    .refuses = refuses,
    .save = save,
};
