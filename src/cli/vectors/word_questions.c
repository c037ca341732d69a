/* Questions to word vectors: see word_questions.h. */
#include "word_questions.h"
#include "vector_options.h"

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "base/unicode/lowercase.h"
#include "cli/compute_args.h"
#include "cli/pipeline/line_reader.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "vectors/word_search.h"
#include "word_output.h"

#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = SES_WORD_SEARCH_MAX_TERMS, MAX_TOP = 10000, BAR = 20 };

static const ses_opt opt[] = {
    SES_OPT_INT(ses_word_question_args, top_k, "top-k", "10", 1, MAX_TOP, "number of words", .letter = 'k',
                .value = "N"),
    SES_OPT_INT(ses_word_question_args, limit, "restrict", "0", 0, 1e9,
                "search the first N words of the file; 0: all", .value = "N", .zero_word = "all"),
    SES_OPT_THREADS(ses_word_question_args, threads),
    SES_OPT_JSON(ses_word_question_args, json),
};
const ses_opt_table ses_word_question_options = { opt, SES_LEN(opt) };

typedef struct session {
    const ses_word_questions *x;
    ses_vectors *v;
    ses_word_search *search;
    int64_t dim, k;
    ses_real *term; /* [MAX_WORDS + 1, dim]: unit vectors of the words, then their sum */
    float *raw;     /* [dim] */
    ses_word_hit *hits;
    ses_buf scratch;
} session;

typedef struct question {
    ses_string text, word[MAX_WORDS];
    int n;
    int64_t known[MAX_WORDS]; /* indices of the words of the vocabulary */
    int64_t n_known;
} question;

/* ---- questions ---- */

static bool split(question *q, ses_err *e)
{
    const char *s = q->text.p, *end = s + q->text.n;
    while (s < end) {
        while (s < end && (*s == ' ' || *s == '\t')) s++;
        const char *first = s;
        while (s < end && *s != ' ' && *s != '\t') s++;
        if (s == first) break;
        if (q->n == MAX_WORDS) return ses_fail(e, SES_EARG, "more than %d words", MAX_WORDS);
        q->word[q->n++] = (ses_string){ first, (size_t)(s - first) };
    }
    return true;
}

static bool fail_unknown(session *s, ses_string word, ses_err *e)
{
    ses_buf lower = { 0 };
    ses_lower_append(&lower, word.p, word.n);
    bool hint = lower.data && ses_vectors_find(s->v, lower.data, lower.len) >= 0;
    ses_fail(e, SES_EARG, "\"%s\" is not in the vocabulary%s%s%s", ses_quoted_of(word.p, word.n).s,
             hint ? "; it has \"" : "", hint ? ses_quoted_of(lower.data, lower.len).s : "", hint ? "\"" : "");
    ses_buf_free(&lower);
    return false;
}

static bool find_words(session *s, question *q, ses_err *e)
{
    for (int i = 0; i < q->n; i++) {
        bool found;
        int64_t known = ses_vectors_find(s->v, q->word[i].p, q->word[i].n);
        if (!ses_vectors_lookup(s->v, q->word[i].p, q->word[i].n, s->raw, &found, e)) return false;
        if (!found) return fail_unknown(s, q->word[i], e);
        ses_unit_vector(s->term + i * s->dim, s->raw, s->dim);
        if (known >= 0) q->known[q->n_known++] = known;
    }
    return true;
}

/* The sum of the words; an analogy a b c: b - a + c. */
static void add_up(session *s, const question *q)
{
    ses_real *sum = s->term + MAX_WORDS * s->dim;
    for (int64_t k = 0; k < s->dim; k++) {
        double x = 0;
        for (int i = 0; i < q->n; i++)
            x += (s->x->analogy && i == 0 ? -1 : 1) * (double)s->term[i * s->dim + k];
        s->raw[k] = (float)x;
    }
    ses_unit_vector(sum, s->raw, s->dim);
}

/* The terms of 3CosMul: b, c, then a. */
static void rotate(session *s)
{
    ses_real *t = s->term, *free_row = s->term + MAX_WORDS * s->dim;
    size_t bytes = (size_t)s->dim * sizeof *t;
    memcpy(free_row, t, bytes);
    memmove(t, t + s->dim, 2 * bytes);
    memcpy(t + 2 * s->dim, free_row, bytes);
}

static bool answer(session *s, question *q, ses_err *e)
{
    if (!split(q, e)) return false;
    if (s->x->analogy && q->n != 3)
        return ses_fail(e, SES_EARG, "%d words, expected three: A is to B as C is to the answer", q->n);
    if (!q->n) return ses_fail(e, SES_EARG, "no word given");
    if (!find_words(s, q, e)) return false;
    ses_word_query query = { .plus = 1, .exclude = q->known, .n_exclude = q->n_known };
    if (s->x->multiply) {
        rotate(s);
        query.x = s->term, query.plus = 2, query.minus = 1, query.multiply = true;
    } else {
        add_up(s, q);
        query.x = s->term + MAX_WORDS * s->dim;
    }
    return ses_word_search_run(s->search, &query, 1, s->k, s->hits, e);
}

/* ---- answers ---- */

static bool put_json(session *s, const question *q, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_array(w, "words");
    for (int i = 0; i < q->n; i++) ses_json_put_word(w, &s->scratch, q->word[i]);
    ses_json_end_array(w);
    ses_json_member_array(w, "nearest");
    for (int64_t i = 0; i < s->k && s->hits[i].index >= 0; i++) {
        ses_json_begin_object(w);
        ses_json_put_key(w, "word");
        ses_json_put_word(w, &s->scratch, ses_vectors_word(s->v, s->hits[i].index));
        ses_json_put_key(w, s->x->multiply ? "score" : "cosine");
        ses_json_put_float(w, s->hits[i].score);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool put_table(session *s, const question *q, ses_err *e)
{
    const ses_term *term = &s->x->call->out;
    char bar[SES_BAR_SIZE];
    ses_text_table *t = ses_text_table_new(s->x->multiply ? ">|Word|>Score|" : ">|Word|>Cosine|", e);
    if (!t) return false;
    double best = s->hits[0].index >= 0 && s->hits[0].score > 1 ? (double)s->hits[0].score : 1;
    for (int64_t i = 0; i < s->k && s->hits[i].index >= 0; i++) {
        double score = (double)s->hits[i].score;
        ses_text_table_cell(t, "%lld", (long long)i + 1);
        ses_text_table_cell(t, "%s", ses_word_text(&s->scratch, ses_vectors_word(s->v, s->hits[i].index)));
        ses_text_table_style(t, SES_BOLD);
        ses_text_table_cell(t, "%.4f", score);
        ses_text_table_cell(t, "%s", ses_bar_text(term, bar, score > 0 ? score / best : 0, BAR));
        ses_text_table_style(t, SES_BLUE);
    }
    if (s->x->analogy) {
        ses_put_escaped(stdout, ses_word_text(&s->scratch, q->word[0]));
        fputs(" : ", stdout);
        ses_put_escaped(stdout, ses_word_text(&s->scratch, q->word[1]));
        fputs(" = ", stdout);
        ses_put_escaped(stdout, ses_word_text(&s->scratch, q->word[2]));
        fputs(" : ?\n", stdout);
    } else {
        ses_put_escaped(stdout, ses_word_text(&s->scratch, q->text));
        putchar('\n');
    }
    bool ok = ses_text_table_print(t, stdout, term, 2, e);
    ses_text_table_free(t);
    return ok;
}

static bool show(session *s, const question *q, ses_err *e)
{
    return (s->x->a->json ? put_json(s, q, e) : put_table(s, q, e)) && ses_stdout_flush(e);
}

/* Lines of standard input; a line that cannot be answered is reported, and makes the exit status 1. */
static bool answer_lines(session *s, ses_err *e)
{
    ses_span standard_input = ses_line_whole_file("-");
    ses_line_reader in = { .span = &standard_input, .n_spans = 1 };
    bool ask = isatty(STDIN_FILENO) && s->x->call->err.tty && !s->x->call->quiet, all = true;
    const char *line;
    size_t n;
    ses_line_status status = SES_LINE_OK;
    for (;;) {
        if (ask) fputs(s->x->analogy ? "three words: " : "word or words: ", stderr);
        status = ses_line_next(&in, &line, &n, e);
        if (status != SES_LINE_OK) break;
        ses_err own = { 0 };
        question q = { .text = ses_trim((ses_string){ line, n }) };
        if (!q.text.n) continue;
        if (answer(s, &q, &own)) {
            if (!show(s, &q, e)) break;
            continue;
        }
        all = false;
        fputs("sesame: ", stderr);
        ses_put_escaped(stderr, own.msg);
        putc('\n', stderr);
        if (own.code == SES_ENOMEM) break;
    }
    if (ask && status == SES_LINE_END) putc('\n', stderr);
    ses_line_reader_close(&in);
    return status == SES_LINE_END && all;
}

static bool open_session(session *s, ses_err *e)
{
    const ses_word_question_args *a = s->x->a;
    ses_compute_args compute = { .threads = a->threads };
    s->v = ses_vectors_open(s->x->path, e);
    if (!s->v || !ses_vectors_read_words(s->v, a->limit, e)) return false;
    ses_report_duplicate_words(s->x->call, s->x->path, s->v);
    int64_t n = ses_vectors_count(s->v);
    s->dim = ses_vectors_dim(s->v);
    s->k = a->top_k < n ? a->top_k : n;
    if (!s->k) return ses_fail(e, SES_EARG, "%s: no words", s->x->path);
    s->search = ses_word_search_new(s->v, n, ses_compute_threads(&compute), e);
    s->term = s->search ? ses_alloc_array(MAX_WORDS + 1, (size_t)s->dim * sizeof *s->term, e) : NULL;
    s->raw = s->term ? ses_alloc_array((size_t)s->dim, sizeof *s->raw, e) : NULL;
    s->hits = s->raw ? ses_alloc_array((size_t)s->k, sizeof *s->hits, e) : NULL;
    return s->hits != NULL;
}

bool ses_word_questions_run(const ses_word_questions *x, const char *const *question_text, int n, ses_err *e)
{
    session s = { .x = x };
    bool ok = open_session(&s, e);
    if (ok && !n) ok = answer_lines(&s, e);
    for (int i = 0; ok && i < n; i++) {
        question q = { .text = { question_text[i], strlen(question_text[i]) } };
        if (i && !x->a->json) putchar('\n');
        ok = answer(&s, &q, e) && show(&s, &q, e);
    }
    ses_buf_free(&s.scratch);
    ses_free(s.hits);
    ses_free(s.raw);
    ses_free(s.term);
    ses_word_search_free(s.search);
    ses_vectors_free(s.v);
    return ok;
}
