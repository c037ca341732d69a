/* Reading of documents. */
#include "documents.h"

#include "base/alloc.h"

enum { PROGRESS_EVERY = 1 << 20 };

/* Ends the current document after `words` ids. */
static bool end_document(ses_documents *d, int64_t words, ses_err *e)
{
    if (!ses_array_reserve(&d->start, &d->start_capacity, (size_t)d->n + 2, sizeof *d->start, e))
        return false;
    if (!d->n) d->start[0] = 0;
    d->start[++d->n] = words;
    return true;
}

static bool put(ses_documents *d, int64_t *words, int32_t id, ses_err *e)
{
    if (!ses_array_reserve(&d->id, &d->id_capacity, (size_t)*words + 1, sizeof *d->id, e)) return false;
    d->id[(*words)++] = id;
    return true;
}

static bool read_file(ses_documents *d, const char *path, int64_t *words, const ses_documents_options *o,
                      ses_err *e)
{
    ses_word_reader r = { .encoding = o->encoding };
    const char *s;
    size_t n;
    bool ok = ses_word_reader_open(&r, path, o->rule, e);
    while (ok && (ok = ses_word_reader_next(&r, &s, &n, e)) && s) {
        if (!n) {
            ok = end_document(d, *words, e);
            continue;
        }
        int32_t id = ses_word_vocab_count(&d->vocab, s, n, e);
        ok = id >= 0 && put(d, words, id, e);
        if (ok && o->progress && d->vocab.tokens % PROGRESS_EVERY == 0)
            ok = o->progress(o->ctx, d->vocab.tokens) || ses_fail(e, SES_EIO, "interrupted");
    }
    if (ok && *words > (d->n ? d->start[d->n] : 0)) ok = end_document(d, *words, e); /* no line end */
    if (!d->skipped.first_line) d->skipped.first_line = r.skipped.first_line;
    d->skipped.too_long += r.skipped.too_long;
    ses_word_reader_free(&r);
    return ok || ses_wrap(e, "%s", path);
}

static void renumber(ses_documents *d, const int32_t *new_id)
{
    int64_t kept = 0, at = 0;
    for (int64_t k = 0; k < d->n; k++) {
        for (; at < d->start[k + 1]; at++)
            if (new_id[d->id[at]] >= 0) d->id[kept++] = new_id[d->id[at]];
        d->start[k + 1] = kept;
    }
}

bool ses_documents_read(ses_documents *d, const char *const *path, size_t n_paths,
                        const ses_documents_options *o, ses_err *e)
{
    int64_t words = 0;
    if (!ses_word_files_check(path, n_paths, e)) return false;
    for (size_t i = 0; i < n_paths; i++)
        if (!read_file(d, path[i], &words, o, e)) return false;
    if (!words) return ses_fail(e, SES_EARG, "%s: the text has no words", n_paths ? path[0] : "");
    int32_t *new_id = ses_alloc_array(d->vocab.n, sizeof *new_id, e);
    bool ok = new_id && (ses_word_vocab_select(&d->vocab, o->min_count, o->max_words, new_id, e) ||
                         ses_wrap(e, "%s", path[0]));
    if (ok) renumber(d, new_id);
    ses_free(new_id);
    return ok;
}

bool ses_documents_next(ses_documents *d, ses_word_reader *from, const ses_word_vocab *vocab, int64_t max,
                        ses_err *e)
{
    const char *s;
    size_t n;
    int64_t words = 0;
    bool open = false;
    d->n = 0;
    while (d->n < max) {
        if (!ses_word_reader_next(from, &s, &n, e)) return false;
        if (!s) break;
        if (!(open = n > 0)) {
            if (!end_document(d, words, e)) return false;
            continue;
        }
        int32_t id = ses_word_vocab_find(vocab, s, n);
        if (id >= 0 && !put(d, &words, id, e)) return false;
    }
    return !open || end_document(d, words, e);
}

void ses_documents_free(ses_documents *d)
{
    ses_word_vocab_free(&d->vocab);
    ses_free(d->id);
    ses_free(d->start);
    *d = (ses_documents){ 0 };
}
