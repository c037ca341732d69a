/* Minimal pairs: how often a model gives the acceptable sentence a higher probability. Tables of BLiMP and of
 * Marvin and Linzen have the columns good and bad (and perhaps bad2), the tables of Gulordava et al. have
 * form, class, len_prefix and sent. Pairs are grouped by the columns UID and term, or case, or pattern. */
#include "direct_eval.h"

#include "cli/input_size.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strmap.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "io/text_reader.h"
#include "sesame/base.h"
#include "sesame/unstable/table.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_BAR = 30, MAX_COLUMNS = 32, MAX_LINE = 1 << 20, BLOCK = 64, BLOCK_BYTES = 1 << 20 };

/* A paradigm: pairs of one phenomenon. */
typedef struct group {
    char *name, *term; /* term: category of paradigms, or NULL */
    int64_t correct, n;
} group;

/* Texts scored in one call: the good sentence of each pair, then its bad ones. */
typedef struct block {
    ses_buf text;
    size_t end[3 * BLOCK]; /* end of each text in `text` */
    size_t n;
    struct {
        size_t group;
        int texts;
        uint64_t line;
    } pair[BLOCK];
    size_t pairs;
} block;

typedef struct pairs_run {
    ses_scorer *scorer;
    ses_records *records;  /* Gulordava's table, which has quotes; else NULL: */
    ses_text_reader lines; /* rows that may lack their last fields */
    ses_buf line, title;
    ses_string field[MAX_COLUMNS], name_of[MAX_COLUMNS];
    size_t n_names;
    int good, bad, bad2, name, term;  /* columns; -1: none */
    int form, class_of, prefix, sent; /* columns of Gulordava's table: two rows per pair */
    group *group;
    size_t n, cap;
    ses_strmap index;
    ses_buf text[3];
    int64_t pairs;
} pairs_run;

/* ---- columns ---- */

/* Splits a line at its tabs; missing fields are empty. */
static bool split(ses_buf *b, const char *s, size_t n, ses_string *f, size_t *fields, ses_err *e)
{
    b->len = 0;
    ses_buf_append(b, s, n);
    if (!ses_buf_ok(b, e)) return false;
    for (size_t i = 0; i < MAX_COLUMNS; i++) f[i] = (ses_string){ "", 0 };
    *fields = 0;
    for (char *at = b->data; *fields < MAX_COLUMNS;) {
        size_t len = strcspn(at, "\t");
        f[(*fields)++] = (ses_string){ at, len };
        bool last = !at[len];
        at[len] = 0;
        if (last) break;
        at += len + 1;
    }
    return true;
}

/* Reads the next row; *row NULL at the end. */
static bool next_row(pairs_run *j, const ses_string **row, ses_err *e)
{
    const char *s;
    size_t n = 0, fields;
    *row = NULL;
    if (j->records) return ses_records_next(j->records, row, e);
    do
        if (!ses_text_reader_next(&j->lines, &s, &n, e)) return false;
    while (s && !n);
    if (!s) return true;
    *row = j->field;
    return split(&j->line, s, n, j->field, &fields, e);
}

static bool open_rows(pairs_run *j, const char *path, ses_err *e)
{
    size_t len = strlen(path), n;
    const char *s;
    if (len > 4 && !strcmp(path + len - 4, ".tab")) {
        j->records =
            ses_records_open(path, &(ses_records_options){ .ragged = true, .quotes = SES_QUOTES_ON }, e);
        for (size_t i = 0; j->records && i < ses_records_field_count(j->records) && i < MAX_COLUMNS; i++)
            j->name_of[j->n_names++] = (ses_string){ ses_records_column_name(j->records, i), 0 };
        return j->records != NULL;
    }
    if (!ses_text_reader_open(&j->lines, path, MAX_LINE, e) || !ses_text_reader_next(&j->lines, &s, &n, e))
        return ses_wrap(e, "%s", path);
    return !s || split(&j->title, s, n, j->name_of, &j->n_names, e);
}

static int column(const pairs_run *j, const char *name)
{
    for (size_t i = 0; i < j->n_names; i++)
        if (j->name_of[i].p && !strcmp(j->name_of[i].p, name)) return (int)i;
    return -1;
}

static int first_column(const pairs_run *j, const char *a, const char *b, const char *c)
{
    int i = column(j, a);
    if (i < 0) i = column(j, b);
    return i < 0 ? column(j, c) : i;
}

static bool find_columns(pairs_run *j, ses_err *e)
{
    j->good = column(j, "good");
    j->bad = column(j, "bad");
    j->bad2 = column(j, "bad2");
    j->form = column(j, "form");
    j->class_of = column(j, "class");
    j->prefix = column(j, "len_prefix");
    j->sent = column(j, "sent");
    j->name = first_column(j, "UID", "case", "pattern");
    j->term = column(j, "term");
    bool gulordava = j->form >= 0 && j->class_of >= 0 && j->prefix >= 0 && j->sent >= 0;
    if ((j->good >= 0 && j->bad >= 0) || gulordava) return true;
    return ses_fail(
        e, SES_EFORMAT,
        "expected the columns good and bad (BLiMP, Marvin and Linzen), or form, class, len_prefix and sent "
        "(Gulordava et al.)");
}

/* ---- groups ---- */

static group *group_of(pairs_run *j, const ses_string *name, const ses_string *term, ses_err *e)
{
    int64_t at = 0;
    const char *key = name ? name->p : "all";
    if (ses_strmap_find(&j->index, key, strlen(key), &at)) return &j->group[at];
    if (!ses_array_reserve(&j->group, &j->cap, j->n + 1, sizeof *j->group, e)) return NULL;
    group *g = &j->group[j->n];
    *g = (group){ .name = ses_strdup(key, e), .term = term ? ses_strdup(term->p, e) : NULL };
    bool fresh;
    if (!g->name || !ses_strmap_insert(&j->index, g->name, strlen(g->name), (int64_t)j->n, &fresh, e)) {
        ses_free(g->name);
        ses_free(g->term);
        return NULL;
    }
    j->n++;
    return g;
}

/* ---- rows ---- */

static bool keep(pairs_run *j, int which, const char *s, size_t n, ses_err *e)
{
    ses_buf *b = &j->text[which];
    b->len = 0;
    ses_buf_append(b, s, n);
    return ses_buf_ok(b, e);
}

/* Builds the sentence with its word number len_prefix replaced by the form; drops the final " <eos>". */
static bool build_sentence(pairs_run *j, int which, const ses_string *row, ses_err *e)
{
    static const char mark[] = " <eos>";
    const char *s = row[j->sent].p, *end = s + row[j->sent].n;
    int64_t word = 0;
    for (size_t i = 0; i < row[j->prefix].n && i < 4; i++) word = 10 * word + (row[j->prefix].p[i] - '0');
    if ((size_t)(end - s) > strlen(mark) && !strcmp(end - strlen(mark), mark)) end -= strlen(mark);
    const char *at = s;
    for (int64_t i = 0; i < word && at; i++) at = (at = memchr(at, ' ', (size_t)(end - at))) ? at + 1 : NULL;
    if (!at) return ses_fail(e, SES_EFORMAT, "the sentence has no word %" PRId64, word + 1);
    const char *after = memchr(at, ' ', (size_t)(end - at));
    ses_buf *b = &j->text[which];
    b->len = 0;
    ses_buf_append(b, s, (size_t)(at - s));
    ses_buf_append(b, row[j->form].p, row[j->form].n);
    if (after) ses_buf_append(b, after, (size_t)(end - after));
    return ses_buf_ok(b, e);
}

/* Reads the next pair into text[0] (good), text[1] and perhaps text[2] (bad); *n: number of texts, 0 at
 * the end. */
static bool next_pair(pairs_run *j, const ses_string **row, int *n, ses_err *e)
{
    *n = 0;
    if (!next_row(j, row, e)) return false;
    if (!*row) return true;
    if (j->good >= 0) {
        const ses_string *r = *row;
        bool third = j->bad2 >= 0 && r[j->bad2].n;
        *n = third ? 3 : 2;
        return keep(j, 0, r[j->good].p, r[j->good].n, e) && keep(j, 1, r[j->bad].p, r[j->bad].n, e) &&
               (!third || keep(j, 2, r[j->bad2].p, r[j->bad2].n, e));
    }
    for (int i = 0; i < 2; i++) {
        if (i && (!next_row(j, row, e) || !*row))
            return ses_fail(e, SES_EFORMAT, "the last sentence has only one form");
        bool is_good = !strcmp((*row)[j->class_of].p, "correct");
        if (!build_sentence(j, is_good ? 0 : 1, *row, e)) return false;
    }
    *n = 2;
    return true;
}

static void put_pair(block *b, const pairs_run *j, size_t in_group, int texts)
{
    b->pair[b->pairs].group = in_group;
    b->pair[b->pairs].texts = texts;
    b->pair[b->pairs++].line = j->records ? ses_records_line(j->records) : j->lines.line;
    for (int i = 0; i < texts; i++) {
        ses_buf_append(&b->text, j->text[i].data, j->text[i].len);
        b->end[b->n++] = b->text.len;
    }
}

/* Scores the pairs of a block and empties it. */
static bool score_block(pairs_run *j, block *b, ses_err *e)
{
    ses_string text[3 * BLOCK];
    ses_text_score x[3 * BLOCK];
    if (!ses_buf_ok(&b->text, e)) return false;
    for (size_t i = 0, from = 0; i < b->n; from = b->end[i++])
        text[i] = (ses_string){ b->text.data + from, b->end[i] - from };
    if (b->n && !ses_scorer_score(j->scorer, text, b->n, x, e))
        return ses_wrap(e, "lines %" PRIu64 " to %" PRIu64, b->pair[0].line, b->pair[b->pairs - 1].line);
    for (size_t i = 0, k = 0; i < b->pairs; k += (size_t)b->pair[i++].texts) {
        group *g = &j->group[b->pair[i].group];
        bool third = b->pair[i].texts == 3;
        g->correct += x[k].logprob > x[k + 1].logprob && (!third || x[k].logprob > x[k + 2].logprob);
        g->n++;
    }
    j->pairs += (int64_t)b->pairs;
    b->n = b->pairs = b->text.len = 0;
    return true;
}

/* Bytes of the file read so far. */
static int64_t consumed(const pairs_run *j)
{
    if (j->records) return (int64_t)ses_records_consumed(j->records);
    return j->lines.in ? (int64_t)ses_input_stream_consumed(j->lines.in) : 0;
}

static bool score_all(pairs_run *j, ses_progress *line, block *b, ses_err *e)
{
    for (const ses_string *row = NULL;;) {
        int n;
        if (!next_pair(j, &row, &n, e)) return false;
        if (b->pairs && (!n || b->pairs == BLOCK || b->text.len > BLOCK_BYTES) && !score_block(j, b, e))
            return false;
        ses_progress_show(line, line->total ? consumed(j) : j->pairs);
        if (!n) return j->pairs > 0 || ses_fail(e, SES_EFORMAT, "no pairs");
        group *g = group_of(j, j->name >= 0 ? &row[j->name] : NULL, j->term >= 0 ? &row[j->term] : NULL, e);
        if (!g) return false;
        put_pair(b, j, (size_t)(g - j->group), n);
    }
}

/* ---- results ---- */

static double ratio(int64_t correct, int64_t n) { return n ? (double)correct / (double)n : 0; }

/* Accuracy: mean over paradigms, and over all pairs. */
static void totals(const pairs_run *j, double *mean, double *pairs)
{
    int64_t correct = 0, n = 0;
    *mean = 0;
    for (size_t i = 0; i < j->n; i++) {
        *mean += ratio(j->group[i].correct, j->group[i].n) / (double)j->n;
        correct += j->group[i].correct;
        n += j->group[i].n;
    }
    *pairs = ratio(correct, n);
}

static bool show(const pairs_run *j, const ses_term *t, ses_err *e)
{
    double mean, pairs;
    char bar[SES_BAR_SIZE];
    totals(j, &mean, &pairs);
    ses_text_table *table =
        ses_text_table_new(j->term >= 0 ? "Term|Paradigm|>Pairs|>Accuracy|" : "Case|>Pairs|>Accuracy|", e);
    if (!table) return false;
    for (size_t i = 0; i < j->n; i++) {
        const group *g = &j->group[i];
        if (j->term >= 0) ses_text_table_cell(table, "%s", i && !strcmp(g->term, g[-1].term) ? "" : g->term);
        ses_text_table_cell(table, "%s", g->name);
        ses_text_table_cell(table, "%" PRId64, g->n);
        ses_text_table_cell(table, "%.1f %%", 100 * ratio(g->correct, g->n));
        ses_text_table_cell(table, "%s", ses_bar_text(t, bar, ratio(g->correct, g->n), MAX_BAR));
    }
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    puts("");
    ses_show_line(t, "Accuracy", "%.2f %% over %zu paradigms, %.2f %% of %" PRId64 " pairs", 100 * mean, j->n,
                  100 * pairs, j->pairs);
    return ok;
}

static bool print_json(const pairs_run *j, const ses_scoring_args *scoring, ses_err *e)
{
    double mean, pairs;
    ses_json_writer *w = ses_json_writer_new(0, e);
    totals(j, &mean, &pairs);
    ses_json_begin_object(w);
    ses_json_member_real(w, "eval_accuracy", mean);
    ses_json_member_real(w, "eval_pairs_accuracy", pairs);
    ses_json_member_int(w, "eval_samples", j->pairs);
    if (scoring->pll == SES_PLL_WORD) ses_json_member_string(w, "pll", "word");
    if (scoring->temperature != 1) ses_json_member_real(w, "temperature", scoring->temperature);
    ses_json_member_array(w, "paradigms");
    for (size_t i = 0; i < j->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", j->group[i].name);
        if (j->group[i].term) ses_json_member_string(w, "term", j->group[i].term);
        ses_json_member_real(w, "accuracy", ratio(j->group[i].correct, j->group[i].n));
        ses_json_member_int(w, "pairs", j->group[i].n);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_eval_minimal_pairs(const ses_direct_eval_call *d, ses_err *e)
{
    const char *dir = d->dir, *path = d->file[0];
    const ses_compute_args *a = d->compute;
    ses_call *c = d->call;
    pairs_run j = { 0 };
    block b = { 0 };
    ses_device_options o = ses_compute_device_options(a);
    ses_scorer_options scorer = { .prepend_bos = true };
    bool ok = open_rows(&j, path, e) && (find_columns(&j, e) || ses_wrap(e, "%s", path));
    ses_device *dev = ok ? ses_device_open(a->device, &o, e) : NULL;
    ses_model *m = dev ? ses_model_open(dir, dev, NULL, e) : NULL;
    ses_tokenizer *t = m ? ses_tokenizer_open(dir, e) : NULL;
    j.scorer = t ? ses_scoring_args_new_scorer(d->scoring, m, t, dir, scorer, e) : NULL;
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "pairs", ses_input_size(&path, 1));
    ok = j.scorer && (score_all(&j, &line, &b, e) || ses_wrap(e, "%s", path));
    ses_progress_end(&line);
    if (ok) ok = a->json ? print_json(&j, d->scoring, e) : show(&j, &c->out, e);
    ses_scorer_free(j.scorer);
    ses_tokenizer_free(t);
    ses_model_free(m);
    ses_device_free(dev);
    ses_records_free(j.records);
    ses_text_reader_free(&j.lines);
    ses_buf_free(&b.text);
    ses_buf_free(&j.line);
    ses_buf_free(&j.title);
    for (size_t i = 0; i < j.n; i++) ses_free(j.group[i].name), ses_free(j.group[i].term);
    for (int i = 0; i < 3; i++) ses_buf_free(&j.text[i]);
    ses_strmap_free(&j.index);
    ses_free(j.group);
    return ok;
}
