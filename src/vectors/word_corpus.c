/* A text as word ids. */
#define _POSIX_C_SOURCE 200809L
#include "word_corpus.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROGRESS_EVERY = 1 << 20 };

/* Ids that were read: all of them, or the ones that are not yet in the temporary file. */
typedef struct sink {
    ses_word_corpus *c;
    const ses_word_corpus_options *o;
    size_t held;
} sink;

static bool flush(sink *k, ses_err *e)
{
    bool ok = ses_fd_write(k->c->fd - 1, k->c->id, k->held * sizeof *k->c->id, k->o->beside, e);
    k->held = 0;
    return ok;
}

static bool put(sink *k, int32_t id, ses_err *e)
{
    ses_word_corpus *c = k->c;
    size_t max = (k->o->max_memory ? k->o->max_memory : SES_CORPUS_MEMORY) / sizeof *c->id;
    if (!c->fd && k->o->beside && k->held && k->held >= max) {
        int fd = ses_file_unnamed(k->o->beside, e);
        if (fd < 0) return false;
        c->fd = fd + 1;
    }
    if (c->fd && k->held >= max && !flush(k, e)) return false;
    if (k->held == c->capacity && !ses_array_reserve(&c->id, &c->capacity, k->held + 1, sizeof *c->id, e))
        return false;
    c->id[k->held++] = id;
    c->n++;
    return true;
}

static bool read_file(sink *k, const char *path, ses_err *e)
{
    ses_word_reader r = { .encoding = k->o->encoding };
    ses_word_corpus *c = k->c;
    bool ok = ses_word_reader_open(&r, path, k->o->rule, e), words = false;
    const char *s = "";
    while (ok && s) {
        size_t n;
        ok = ses_word_reader_next(&r, &s, &n, e);
        if (!ok) break;
        if (!s || !n) {
            ok = !words || put(k, SES_SENTENCE_END, e);
            words = false;
            continue;
        }
        int32_t id = ses_word_vocab_count(&c->vocab, s, n, e);
        ok = id >= 0 && put(k, id, e);
        words = true;
        if (ok && k->o->progress && c->vocab.tokens % PROGRESS_EVERY == 0)
            ok = k->o->progress(k->o->ctx, c->vocab.tokens) || ses_fail(e, SES_EIO, "interrupted");
    }
    const ses_words_skipped *skipped = &r.skipped;
    if (!c->skipped.first_line) c->skipped.first_line = skipped->first_line;
    c->skipped.too_long += skipped->too_long;
    ses_word_reader_free(&r);
    return ok || ses_wrap(e, "%s", path);
}

/* Maps the temporary file; the ids that are in memory go to its end. */
static bool map(sink *k, ses_err *e)
{
    ses_word_corpus *c = k->c;
    if (!flush(k, e)) return false;
    ses_free(c->id);
    c->id = NULL;
    c->capacity = 0;
    size_t size = (size_t)c->n * sizeof *c->id;
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd - 1, 0);
    if (data == MAP_FAILED) return ses_fail(e, SES_EIO, "the temporary file: %s", strerror(errno));
    c->id = data;
    c->mapped = size;
    return true;
}

/* Replaces the ids by the final ones and removes dropped words. */
static void renumber(ses_word_corpus *c, const int32_t *new_id)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->n; i++) {
        int32_t id = c->id[i];
        if (id >= 0) {
            if (new_id[id] >= 0) c->id[kept++] = new_id[id];
        } else if (kept && c->id[kept - 1] >= 0) {
            c->id[kept++] = SES_SENTENCE_END;
            c->sentences++;
        }
    }
    c->n = kept;
}

bool ses_word_corpus_read(ses_word_corpus *c, const char *const *path, size_t n_paths,
                          const ses_word_corpus_options *o, ses_err *e)
{
    sink k = { .c = c, .o = o };
    int32_t *new_id = NULL;
    bool ok = ses_word_files_check(path, n_paths, e);
    for (size_t i = 0; ok && i < n_paths; i++) ok = read_file(&k, path[i], e);
    if (!ok) return false;
    if (!c->n) return ses_fail(e, SES_EARG, "%s: the text has no words", n_paths ? path[0] : "");
    ok = (new_id = ses_alloc_array(c->vocab.n, sizeof *new_id, e)) && (!c->fd || map(&k, e));
    if (ok && !ses_word_vocab_select(&c->vocab, o->min_count, o->max_words, new_id, e))
        ok = ses_wrap(e, "%s%s", path[0], n_paths > 1 ? " and others" : "");
    if (ok) renumber(c, new_id);
    ses_free(new_id);
    return ok;
}

void ses_word_corpus_free(ses_word_corpus *c)
{
    ses_word_vocab_free(&c->vocab);
    if (c->mapped)
        munmap(c->id, c->mapped);
    else
        ses_free(c->id);
    if (c->fd) close(c->fd - 1);
    *c = (ses_word_corpus){ 0 };
}

bool ses_words_skipped_text(const ses_words_skipped *s, ses_buf *out)
{
    if (!s->too_long) return false;
    return ses_buf_appendf(
        out, "%" PRId64 " word%s longer than %d bytes and %s skipped; the first in line %" PRIu64,
        s->too_long, s->too_long == 1 ? " is" : "s are", (int)SES_WORD_MAX, s->too_long == 1 ? "was" : "were",
        s->first_line);
}
