/* The kind "tag": labels of words, from CoNLL-U or other column files. */
#include "base/alloc.h"
#include "base/str.h"
#include "io/conllu.h"
#include "io/input_stream.h"
#include "probe_run.h"
#include "probe_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16 };

typedef struct tags {
    const ses_probe_args *a;
    ses_analysis_call *c;
    ses_probe_data d;
    bool conllu, spans;             /* spans: examples are entities, not words */
    ses_string column[MAX_COLUMNS]; /* names or numbers */
    int number[MAX_COLUMNS + 1];    /* columns of other files: the word, then the labels */
    bool note;                      /* the file is read for the first time */
    ses_string *word;               /* words of a sentence */
    size_t cap_words;
} tags;

/* The label of a word; p NULL: none. */
static ses_string label_of(const ses_conllu_word *w, ses_string column)
{
    ses_string s = ses_equal(column.p, column.n, "upos")     ? w->upos
                   : ses_equal(column.p, column.n, "xpos")   ? w->xpos
                   : ses_equal(column.p, column.n, "deprel") ? w->deprel
                                                             : (ses_string){ 0 };
    if (!s.p) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)column.n - 6, column.p + 6);
        s = ses_conllu_feature(w->feats, name);
    }
    return s.p && ses_equal(s.p, s.n, "_") ? (ses_string){ 0 } : s;
}

static bool add_conllu(tags *t, const ses_conllu_sentence *s, ses_err *e)
{
    size_t row;
    if (!ses_array_reserve(&t->word, &t->cap_words, s->n, sizeof *t->word, e)) return false;
    for (size_t i = 0; i < s->n; i++) t->word[i] = s->word[i].form;
    if (!ses_probe_data_add_words(&t->d, t->word, s->n, &row, e)) return false;
    for (size_t i = 0; i < s->n; i++) {
        ses_string label[MAX_COLUMNS];
        for (size_t k = 0; k < t->d.n_tasks; k++) label[k] = label_of(&s->word[i], t->column[k]);
        if (!ses_probe_data_add(&t->d, row + i, row + i, s->word[i].form, label, e)) return false;
    }
    return true;
}

/* The type of a label B-X or I-X; p NULL: another label. */
static ses_string entity_type(ses_string s)
{
    bool inside = s.n > 2 && (s.p[0] == 'B' || s.p[0] == 'I') && s.p[1] == '-';
    return inside ? (ses_string){ s.p + 2, s.n - 2 } : (ses_string){ 0 };
}

static bool same(ses_string a, ses_string b) { return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n)); }

/* Spans of the labels label[i * step]: B-X begins one, I-X continues it. */
static bool add_spans(tags *t, const ses_string *label, size_t step, size_t n, size_t row, ses_err *e)
{
    for (size_t i = 0, end; i < n; i = end) {
        ses_string type = entity_type(label[i * step]);
        for (end = i + 1; type.p && end < n && label[end * step].p[0] == 'I'; end++)
            if (!same(entity_type(label[end * step]), type)) break;
        if (!type.p) continue;
        if (!ses_probe_data_add(&t->d, row + i, row + i, t->word[i], &type, e)) return false;
        t->d.example[t->d.n - 1].length = (uint32_t)(end - i);
    }
    return true;
}

/* Column 0 is the word, the others are labels. */
static bool add_columns(tags *t, const ses_conll_sentence *s, ses_err *e)
{
    size_t row;
    if (!ses_array_reserve(&t->word, &t->cap_words, s->n, sizeof *t->word, e)) return false;
    for (size_t i = 0; i < s->n; i++) t->word[i] = s->field[i * s->n_columns];
    if (!ses_probe_data_add_words(&t->d, t->word, s->n, &row, e)) return false;
    if (t->spans) return add_spans(t, s->field + 1, s->n_columns, s->n, row, e);
    for (size_t i = 0; i < s->n; i++)
        if (!ses_probe_data_add(&t->d, row + i, row + i, t->word[i], s->field + i * s->n_columns + 1, e))
            return false;
    return true;
}

/* Opens a column file with the word and the labels. */
static ses_conll *open_columns(const tags *t, const char *path, ses_err *e)
{
    return ses_conll_open(path, &(ses_conll_options){ .columns = t->number, .n_columns = t->d.n_tasks + 1 },
                          e);
}

static bool read_conllu(tags *t, const char *path, int set, bool split, ses_err *e)
{
    ses_conllu *f =
        ses_conllu_open(path, &(ses_conllu_options){ .skip_invalid = t->a->tree.skip_invalid }, e);
    ses_conllu_sentence s = { 0 };
    bool ok = f != NULL;
    for (size_t i = 0; ok && (ok = ses_conllu_next(f, &s, e)) && s.n; i++)
        if (!split || ses_probe_in_set(i, set)) ok = add_conllu(t, &s, e);
    if (ok && t->note) ses_probe_note_skipped(t->c, f, path);
    ses_conllu_free(f);
    return ok;
}

static bool read_columns(tags *t, const char *path, int set, bool split, ses_err *e)
{
    ses_conll *f = open_columns(t, path, e);
    if (!f) return false;
    ses_conll_sentence s = { 0 };
    bool ok = true;
    size_t i = 0;
    for (; (ok = ses_conll_next(f, &s, e)) && s.n; i++)
        if ((!split || ses_probe_in_set(i, set)) && !(ok = add_columns(t, &s, e))) break;
    if (!ok) ses_wrap(e, "%s", path);
    if (ok && !i) ok = ses_fail(e, SES_EFORMAT, "%s: no sentences", path);
    ses_conll_free(f);
    return ok;
}

/* CoNLL-U has ten columns, of which the first is a number. */
static bool detect_format(tags *t, const char *path, ses_err *e)
{
    static const int columns[] = { 1, 10 };
    ses_conll_options o = { .conllu = true, .columns = columns, .n_columns = SES_LEN(columns) };
    ses_conll *f = ses_conll_open(path, &o, NULL);
    ses_conll_sentence s = { 0 };
    t->conllu = ses_input_stream_has_suffix(path, ".conllu");
    if (f && ses_conll_next(f, &s, NULL) && s.n) t->conllu |= ses_equal(s.field[0].p, s.field[0].n, "1");
    ses_conll_free(f);
    return strcmp(path, "-") != 0 ||
           ses_fail(e, SES_EUSAGE, "-: the file is read several times, give its path");
}

/* Whether the labels of the first sentences are B-X, I-X and O. */
static bool has_spans(const tags *t, const char *path)
{
    enum { SENTENCES = 100 };
    ses_conll *f = open_columns(t, path, NULL);
    ses_conll_sentence s = { 0 };
    size_t entities = 0, others = 0;
    for (int i = 0; f && i < SENTENCES && ses_conll_next(f, &s, NULL) && s.n; i++) {
        for (size_t k = 0; k < s.n; k++) {
            ses_string label = s.field[k * s.n_columns + 1];
            entities += entity_type(label).p != NULL;
            others += !entity_type(label).p && !ses_equal(label.p, label.n, "O");
        }
    }
    ses_conll_free(f);
    return entities && !others;
}

static bool check_column(tags *t, ses_string c, size_t k, ses_err *e)
{
    char *end;
    if (t->conllu) {
        bool known = ses_equal(c.p, c.n, "upos") || ses_equal(c.p, c.n, "xpos") ||
                     ses_equal(c.p, c.n, "deprel") || (c.n > 6 && c.n < 64 && !strncmp(c.p, "feats.", 6));
        return known || ses_fail(e, SES_EUSAGE, "--tags %s: expected upos, xpos, deprel or feats.NAME",
                                 ses_quoted_of(c.p, c.n).s);
    }
    unsigned long number = strtoul(c.p, &end, 10);
    t->number[k + 1] = (int)number;
    return (end == c.p + c.n && number > 1 && number < 1000) ||
           ses_fail(e, SES_EUSAGE, "--tags %s: expected numbers of columns from 2; 1 is the word",
                    ses_quoted_of(c.p, c.n).s);
}

static bool add_tasks(tags *t, ses_err *e)
{
    const char *list = t->a->classify.columns;
    t->number[0] = 1, t->number[1] = -1;
    if (!list && !t->conllu) return ses_probe_data_add_task(&t->d, "last column", 11, e);
    for (const char *at = list ? list : "upos"; *at;) {
        size_t n = strcspn(at, ",");
        if (t->d.n_tasks == MAX_COLUMNS || !n)
            return ses_fail(e, SES_EUSAGE, "--tags %s: expected up to %d names", list, MAX_COLUMNS);
        t->column[t->d.n_tasks] = (ses_string){ at, n };
        if (!check_column(t, t->column[t->d.n_tasks], t->d.n_tasks, e)) return false;
        char name[32];
        int len = snprintf(name, sizeof name, "%s%.*s", t->conllu ? "" : "column ", n < 20 ? (int)n : 20, at);
        if (!ses_probe_data_add_task(&t->d, name, (size_t)len, e)) return false;
        at += n + (at[n] == ',');
    }
    return t->d.n_tasks || ses_fail(e, SES_EUSAGE, "--tags: expected a name");
}

static bool run_tag(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e)
{
    tags t = { .a = a, .c = c, .d = { .kind = "tag", .unit = SES_STATES_OF_WORDS } };
    bool ok = detect_format(&t, file[0], e) &&
              ses_probe_check_options(a, t.conllu ? SES_PROBE_WORDS_CONLLU : SES_PROBE_WORDS_COLUMNS, e) &&
              add_tasks(&t, e);
    t.spans = ok && a->classify.edge && !t.conllu && t.d.n_tasks == 1 && has_spans(&t, file[0]);
    for (int s = 0; ok && s < SES_PROBE_SETS; s++) {
        const char *path = file[n == 1 ? 0 : s < n ? s : n - 1];
        ses_probe_data_begin(&t.d, s);
        t.note = s < n;
        ok = (t.conllu ? read_conllu : read_columns)(&t, path, s, n == 1, e);
    }
    ok = ok && ses_probe_data_end(&t.d, c->report, e) && ses_probe_run(c, a, &t.d, e);
    ses_free(t.word);
    ses_probe_data_free(&t.d);
    return ok;
}

const ses_probe_kind ses_probe_kind_tag = { .name = "tag",
                                            .operands = "TRAIN [DEV [TEST]]",
                                            .min_files = 1,
                                            .max_files = SES_PROBE_SETS,
                                            .run = run_tag };
