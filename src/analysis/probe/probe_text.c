/* The kind "text": labels of texts, from a table. */
#include "base/alloc.h"
#include "base/str.h"
#include "data/row_overlap.h"
#include "io/input_stream.h"
#include "probe_run.h"
#include "probe_setup.h"
#include "probe_surface.h"
#include "sesame/unstable/table.h"

#include <string.h>

/* The first word, for the control task. */
static ses_string first_word(ses_string s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] != ' ' && s.p[n] != '\t') n++;
    return (ses_string){ s.p, n };
}

typedef struct texts {
    const ses_probe_args *a;
    ses_probe_data d;
} texts;

/* Whether a label of the first line occurs again: a name of a column would not. */
static bool lacks_header(const char *path, const ses_records_options *o)
{
    ses_records *r = ses_records_open(path, o, NULL);
    const ses_string *field = NULL;
    char *first = NULL;
    bool again = false;
    if (r && ses_records_next(r, &field, NULL) && field) first = ses_strndup(field[1].p, field[1].n, NULL);
    while (first && !again && ses_records_next(r, &field, NULL) && field)
        again = ses_equal(field[1].p, field[1].n, first);
    ses_free(first);
    ses_records_free(r);
    return again;
}

/* Opens a table by the given column names, or by the usual ones. */
static ses_records *open_table(const ses_probe_args *a, const char *path, ses_err *e)
{
    static const char *const usual[][2] = { { "text", "label" }, { "sentence", "label" } };
    const char *column[3] = { a->classify.text, a->classify.label, a->classify.pair };
    ses_err why = { 0 };
    ses_records_options o = { .columns = column, .n_columns = a->classify.pair ? 3 : 2 };
    for (size_t i = 0; i < SES_LEN(usual); i++) {
        column[0] = a->classify.text ? a->classify.text : usual[i][0];
        column[1] = a->classify.label ? a->classify.label : usual[i][1];
        ses_records *r = ses_records_open(path, &o, i ? NULL : &why);
        if (r) return r;
    }
    bool named = a->classify.text || a->classify.label;
    column[0] = a->classify.text ? a->classify.text : "1",
    column[1] = a->classify.label ? a->classify.label : "2";
    o.no_header = !named;
    if (named || lacks_header(path, &o)) return ses_records_open(path, &o, e);
    if (e) *e = why;
    return NULL;
}

static bool read_texts(texts *t, const char *path, int set, bool split, ses_err *e)
{
    ses_records *r = open_table(t->a, path, e);
    if (!r) return false;
    const ses_string *field = NULL;
    bool ok = true;
    size_t i = 0, row;
    for (; (ok = ses_records_next(r, &field, e)) && field; i++) {
        if (split && !ses_probe_in_set(i, set)) continue;
        ses_string pair = t->a->classify.pair ? field[2] : (ses_string){ 0 };
        ok = ses_probe_data_add_text(&t->d, field[0], pair, &row, e) &&
             ses_probe_data_add(&t->d, row, row, first_word(field[0]), &field[1], e);
        if (!ok) break;
    }
    if (!ok) ses_wrap(e, "%s", path);
    if (ok && !i) ok = ses_fail(e, SES_EFORMAT, "%s: no rows", path);
    ses_records_free(r);
    return ok;
}

/* Labels are repeated, texts are not. */
static bool check_labels(const ses_probe_data *d, ses_err *e)
{
    ses_row_set s = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < d->first_input[SES_PROBE_DEV]; i++) {
        const ses_string text[] = { d->input[i].text, d->input[i].pair };
        ok = ses_row_set_add(&s, text, 2, e);
    }
    size_t different = ok ? ses_row_set_distinct(&s) : 0;
    ses_row_set_free(&s);
    return ok &&
           (d->task[0].classes <= different ||
            ses_fail(e, SES_EARG,
                     "%zu different texts have %zu different labels: are the columns of texts and labels "
                     "swapped?",
                     different, d->task[0].classes));
}

static bool run_text(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e)
{
    if (ses_input_stream_has_suffix(file[0], ".conllu")) return ses_probe_surface(c, file, n, a, e);
    texts t = { .a = a, .d = { .kind = "text", .unit = SES_STATES_TEXT_MEAN + a->classify.pool } };
    bool ok = ses_probe_check_options(a, SES_PROBE_TEXT_TABLE, e) && ses_probe_check_pool(c, a, e) &&
              ses_probe_data_add_task(&t.d, "label", 5, e);
    for (int s = 0; ok && s < SES_PROBE_SETS; s++) {
        ses_probe_data_begin(&t.d, s);
        ok = read_texts(&t, file[n == 1 ? 0 : s < n ? s : n - 1], s, n == 1, e);
    }
    ok =
        ok && check_labels(&t.d, e) && ses_probe_data_end(&t.d, c->report, e) && ses_probe_run(c, a, &t.d, e);
    ses_probe_data_free(&t.d);
    return ok;
}

const ses_probe_kind ses_probe_kind_text = { .name = "text",
                                             .operands = "TRAIN [DEV [TEST]]",
                                             .min_files = 1,
                                             .max_files = SES_PROBE_SETS,
                                             .run = run_text };
