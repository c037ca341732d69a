/* Analogy questions. */
#include "analogies.h"

#include "base/alloc.h"
#include "folded_words.h"
#include "io/text_reader.h"
#include "word_search.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LINE = 1 << 16, GENSIM_HITS = 5, AT_ONCE = 4096 };

typedef struct question {
    int64_t word[4];
    size_t section;
} question;

typedef struct scoring {
    const ses_analogy_options *o;
    ses_analogy_result *r;
    ses_folded_words vocab;
    question *question; /* with known words */
    size_t n, cap;
    ses_buf scratch;
} scoring;

/* ---- questions ---- */

/* Splits at blanks; returns the number of fields, at most max + 1. */
static size_t split(const char *s, size_t n, ses_string *field, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < n && count <= max;) {
        while (i < n && (s[i] == ' ' || s[i] == '\t')) i++;
        size_t first = i;
        while (i < n && s[i] != ' ' && s[i] != '\t') i++;
        if (i == first) break;
        if (count < max) field[count] = (ses_string){ s + first, i - first };
        count++;
    }
    return count;
}

static bool begin_section(ses_analogy_result *r, const char *s, size_t n, ses_err *e)
{
    ses_string name = ses_trim((ses_string){ s + 1, n - 1 });
    if (!ses_array_reserve(&r->section, &r->cap, r->n + 1, sizeof *r->section, e)) return false;
    char *copy = ses_arena_strndup(&r->arena, name.p, name.n, e);
    if (!copy) return false;
    r->section[r->n++] = (ses_analogy_section){ .name = copy };
    return true;
}

static bool take_question(scoring *s, const ses_string field[4], ses_err *e)
{
    ses_analogy_section *section = &s->r->section[s->r->n - 1];
    question q = { .section = s->r->n - 1 };
    bool known = true;
    section->questions++;
    for (int i = 0; i < 4; i++) {
        q.word[i] = ses_folded_words_find(&s->vocab, field[i], &s->scratch);
        known = known && q.word[i] >= 0;
    }
    if (known || s->o->unknown_is_wrong) section->scored++;
    if (!known) return ses_buf_ok(&s->scratch, e);
    if (!ses_array_reserve(&s->question, &s->cap, s->n + 1, sizeof *s->question, e)) return false;
    s->question[s->n++] = q;
    return true;
}

static bool read_questions(scoring *s, ses_text_reader *in, ses_err *e)
{
    const char *line;
    size_t n;
    while (ses_text_reader_next(in, &line, &n, e)) {
        ses_string field[4];
        if (!line)
            return s->r->n > 0 || ses_fail(e, SES_EFORMAT,
                                           "no questions; expected \": SECTION\" and lines "
                                           "of four words");
        if (ses_text_is_blank(line, n)) continue;
        if (line[0] == ':') {
            if (!begin_section(s->r, line, n, e)) return false;
            continue;
        }
        if (!s->r->n) {
            ses_fail(e, SES_EFORMAT, "a question before the first section, expected \": NAME\"");
            return ses_wrap(e, "line %" PRIu64, in->line);
        }
        if (split(line, n, field, 4) != 4)
            s->r->invalid++;
        else if (!take_question(s, field, e))
            return false;
    }
    return false;
}

/* ---- answers ---- */

/* hits: best first; see analogies.h. */
static bool is_correct(const scoring *s, const question *q, const ses_word_hit *hits)
{
    int64_t answer = -1;
    if (s->o->rules == SES_ANALOGY_WORD2VEC)
        return hits[0].index >= 0 && hits[0].score > 0 && s->vocab.first[hits[0].index] == q->word[3];
    for (int i = 0; i < GENSIM_HITS && hits[i].index >= 0; i++) {
        answer = s->vocab.first[hits[i].index];
        if (answer != q->word[0] && answer != q->word[1] && answer != q->word[2]) break;
    }
    return answer == q->word[3];
}

/* The vectors of one question: b - a + c, or b, c and a. */
static void put_terms(const ses_word_search *w, const question *q, bool multiply, ses_real *x, int64_t dim)
{
    const ses_real *a = ses_word_search_unit(w, q->word[0]), *b = ses_word_search_unit(w, q->word[1]),
                   *c = ses_word_search_unit(w, q->word[2]);
    if (multiply) {
        memcpy(x, b, (size_t)dim * sizeof *x);
        memcpy(x + dim, c, (size_t)dim * sizeof *x);
        memcpy(x + 2 * dim, a, (size_t)dim * sizeof *x);
        return;
    }
    for (int64_t k = 0; k < dim; k++) x[k] = b[k] - a[k] + c[k];
}

static bool answer(scoring *s, const ses_word_search *w, int64_t dim, ses_err *e)
{
    int terms = s->o->multiply ? 3 : 1;
    int64_t k = s->o->rules == SES_ANALOGY_GENSIM ? GENSIM_HITS : 1;
    ses_word_query *query = ses_alloc_array(AT_ONCE, sizeof *query, e);
    ses_real *x = query ? ses_alloc_array((size_t)(AT_ONCE * terms), (size_t)dim * sizeof *x, e) : NULL;
    ses_word_hit *hits = x ? ses_alloc_array(AT_ONCE, (size_t)k * sizeof *hits, e) : NULL;
    bool ok = hits != NULL;
    for (size_t done = 0, n; ok && done < s->n; done += n) {
        n = s->n - done < AT_ONCE ? s->n - done : AT_ONCE;
        for (size_t i = 0; i < n; i++) {
            const question *q = &s->question[done + i];
            ses_real *own = x + (int64_t)i * terms * dim;
            put_terms(w, q, s->o->multiply, own, dim);
            query[i] = (ses_word_query){ .x = own,
                                         .plus = terms > 1 ? 2 : 1,
                                         .minus = terms > 1,
                                         .multiply = s->o->multiply,
                                         .exclude = q->word,
                                         .n_exclude = 3 };
        }
        ok = ses_word_search_run(w, query, (int64_t)n, k, hits, e);
        for (size_t i = 0; ok && i < n; i++) {
            const question *q = &s->question[done + i];
            s->r->section[q->section].correct += is_correct(s, q, hits + (int64_t)i * k);
        }
    }
    ses_free(hits);
    ses_free(x);
    ses_free(query);
    return ok;
}

bool ses_analogies_score(ses_analogy_result *r, const ses_vectors *v, const char *path,
                         const ses_analogy_options *o, ses_err *e)
{
    scoring s = { .o = o, .r = r };
    ses_text_reader in = { 0 };
    ses_word_search *w = NULL;
    int64_t n = ses_vectors_count(v);
    if (o->limit && o->limit < n) n = o->limit;
    ses_fold fold = o->keep_case                       ? SES_FOLD_NONE
                    : o->rules == SES_ANALOGY_WORD2VEC ? SES_FOLD_ASCII
                                                       : SES_FOLD_UNICODE;
    *r = (ses_analogy_result){ 0 };
    bool ok = ses_folded_words_build(&s.vocab, v, n, fold, e) &&
              ((ses_text_reader_open(&in, path, MAX_LINE, e) && read_questions(&s, &in, e)) ||
               ses_wrap(e, "%s", path)) &&
              (w = ses_word_search_new(v, n, o->threads, e)) && answer(&s, w, ses_vectors_dim(v), e);
    ses_word_search_free(w);
    ses_text_reader_free(&in);
    ses_folded_words_free(&s.vocab);
    ses_buf_free(&s.scratch);
    ses_free(s.question);
    if (!ok) ses_analogy_result_free(r);
    return ok;
}

void ses_analogy_result_free(ses_analogy_result *r)
{
    ses_arena_free(&r->arena);
    ses_free(r->section);
    *r = (ses_analogy_result){ 0 };
}

ses_analogy_section ses_analogy_sum(const ses_analogy_result *r, size_t first, size_t end)
{
    ses_analogy_section sum = { 0 };
    for (size_t i = first; i < end && i < r->n; i++) {
        sum.questions += r->section[i].questions;
        sum.scored += r->section[i].scored;
        sum.correct += r->section[i].correct;
    }
    return sum;
}
