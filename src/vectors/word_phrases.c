/* Phrases as word2phrase finds them. */
#include "word_phrases.h"

#include "base/alloc.h"
#include "base/file.h"
#include "word_vocab.h"

#include <string.h>

enum { PROGRESS_EVERY = 1 << 20, FLUSH = 1 << 16 };

typedef struct pass {
    ses_phrases_job *job;
    const char *from;
    ses_words_rule rule;
    ses_text_encoding encoding;
    ses_word_vocab vocab; /* words and pairs "a_b" */
    int64_t words;
    ses_buf pair, out;
} pass;

static bool proceed(const pass *p, int64_t words, ses_err *e)
{
    const ses_phrases_job *job = p->job;
    return words % PROGRESS_EVERY || !job->progress || job->progress(job->ctx, words) ||
           ses_fail(e, SES_EIO, "interrupted; nothing was written");
}

/* Counts all words and pairs. pair: the previous word, then "_" and this word. */
static bool count_pairs(pass *p, ses_err *e)
{
    ses_word_reader r = { .encoding = p->encoding };
    const char *s = "";
    size_t n;
    bool ok = ses_word_reader_open(&r, p->from, p->rule, e);
    p->pair.len = 0;
    while (ok && (ok = ses_word_reader_next(&r, &s, &n, e)) && s) {
        if (!n) continue;
        size_t last = p->pair.len;
        ok = ses_word_vocab_count(&p->vocab, s, n, e) >= 0 && ses_buf_put(&p->pair, '_') &&
             ses_buf_append(&p->pair, s, n);
        if (ok && last) ok = ses_word_vocab_count(&p->vocab, p->pair.data, p->pair.len, e) >= 0;
        if (!ok) break;
        memmove(p->pair.data, p->pair.data + last + 1, n);
        p->pair.len = n;
        ok = proceed(p, ++p->words, e);
    }
    p->job->skipped = r.skipped;
    ses_word_reader_free(&r);
    return ses_buf_ok(&p->pair, e) && ok;
}

static int64_t count_of(const pass *p, const char *s, size_t n)
{
    int32_t id = ses_word_vocab_find(&p->vocab, s, n);
    return id < 0 ? 0 : p->vocab.word[id].count;
}

/* Whether the pair is joined; in float, as the original. a and b are the counts of its words. */
static bool joins(const pass *p, int64_t a, int64_t b)
{
    int64_t min = p->job->min_count, ab = count_of(p, p->pair.data, p->pair.len);
    if (a < min || b < min || ab < min || !a || !b) return false;
    float score = (float)(ab - min) / (float)a / (float)b * (float)p->words;
    return score > (float)p->job->threshold;
}

static bool write_word(pass *p, ses_file_writer *w, const char *s, size_t n, char before, ses_err *e)
{
    ses_buf_put(&p->out, before);
    ses_buf_append(&p->out, s, n);
    if (p->out.len < FLUSH) return ses_buf_ok(&p->out, e);
    bool ok = ses_buf_ok(&p->out, e) && ses_file_writer_put(w, p->out.data, p->out.len, e);
    p->out.len = 0;
    return ok;
}

static bool write_text(pass *p, ses_file_writer *w, ses_err *e)
{
    ses_word_reader r = { .encoding = p->encoding };
    const char *s = "";
    size_t n;
    int64_t before = 0, words = 0; /* count of the previous word; 0: line start, rare, or already joined */
    bool ok = ses_word_reader_open(&r, p->from, p->rule, e);
    while (ok && (ok = ses_word_reader_next(&r, &s, &n, e)) && s) {
        if (!n) {
            before = 0;
            p->pair.len = 0;
            ok = write_word(p, w, "", 0, '\n', e);
            continue;
        }
        size_t last = p->pair.len;
        ok = ses_buf_put(&p->pair, '_') && ses_buf_append(&p->pair, s, n);
        if (!ok) break;
        int64_t count = count_of(p, s, n);
        bool join = last && joins(p, before, count);
        p->job->joined += join;
        ok = write_word(p, w, s, n, join ? '_' : ' ', e);
        before = join || count < p->job->min_count ? 0 : count;
        memmove(p->pair.data, p->pair.data + last + 1, n);
        p->pair.len = n;
        ok = ok && proceed(p, ++words, e);
    }
    ses_word_reader_free(&r);
    return ses_buf_ok(&p->pair, e) && ok && ses_buf_ok(&p->out, e) &&
           ses_file_writer_put(w, p->out.data, p->out.len, e);
}

static bool run_pass(ses_phrases_job *job, const char *from, const char *to, bool overwrite, ses_err *e)
{
    bool first = from == job->corpus;
    pass p = { .job = job,
               .from = from,
               .rule = first ? job->rule : SES_WORDS_BLANK,
               .encoding = first ? job->encoding : SES_ENCODING_UTF8 };
    ses_file_writer *w = ses_file_writer_open(to, overwrite, e);
    bool ok = w && (count_pairs(&p, e) || ses_wrap(e, "%s", from)) && write_text(&p, w, e) &&
              ses_file_writer_commit(w, e);
    if (ok) job->words = p.words;
    ses_file_writer_free(w);
    ses_word_vocab_free(&p.vocab);
    ses_buf_free(&p.pair);
    ses_buf_free(&p.out);
    return ok;
}

bool ses_phrases_run(ses_phrases_job *job, ses_err *e)
{
    ses_buf path[2] = { { 0 }, { 0 } };
    const char *from = job->corpus;
    int64_t words = 0;
    bool ok = true, made[2] = { false, false };
    if (!strcmp(job->corpus, "-"))
        return ses_fail(e, SES_EUSAGE, "the text is read twice: give a file instead of standard input");
    for (int k = 0; k < 2; k++) ok = ok && ses_buf_appendf(&path[k], "%s.pass%d", job->output, k);
    if (!ok) ses_buf_ok(&path[path[0].wanted ? 0 : 1], e);
    for (int k = 0; ok && job->passes > 1 && !job->overwrite && k < 2; k++)
        if (ses_path_exists(path[k].data)) ok = ses_fail_exists(path[k].data, e);
    for (int k = 0; ok && k < job->passes; k++) {
        bool last = k == job->passes - 1;
        const char *to = last ? job->output : path[k % 2].data;
        bool replaces = job->overwrite || (!last && made[k % 2]);
        ok = run_pass(job, from, to, replaces, e);
        if (!last) made[k % 2] = made[k % 2] || ok;
        if (!k) words = job->words;
        from = to;
    }
    job->words = words;
    for (int k = 0; k < 2; k++) {
        if (made[k]) ses_file_remove(path[k].data, NULL);
        ses_buf_free(&path[k]);
    }
    return ok;
}
