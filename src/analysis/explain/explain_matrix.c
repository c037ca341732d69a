/* The report of every token of a target text: a matrix of source and target words by target tokens. */
#include "explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Words with a value in some column. */
typedef struct matrix {
    ses_explain_word *word; /* [n]: its names and ranges */
    double *value;          /* [n, columns] */
    size_t n;
} matrix;

static bool make_matrix(ses_explain *x, matrix *m)
{
    ses_err e = { 0 };
    size_t most = (size_t)(x->side[0].n + x->side[1].n) + 1, columns = (size_t)x->n_columns, kept = 0;
    ses_explain_word *word = ses_arena_array(&x->mem, most, sizeof *word, &e);
    double *value = ses_arena_array(&x->mem, most * columns, sizeof *value, &e);
    if (!word || !value) return false;
    *m = (matrix){ word, value, 0 };
    for (size_t c = 0; c < columns; c++) {
        m->n = ses_explain_words(x, x->column[c].value, word);
        for (size_t i = 0; i < m->n; i++) value[i * columns + c] = word[i].value;
    }
    for (size_t i = 0; i < m->n; i++) { /* without special tokens that have no value */
        bool any = !x->side[word[i].side].special[word[i].begin];
        bool before = word[i].side == SES_EXPLAIN_SOURCE || word[i].begin < x->column[columns - 1].at;
        for (size_t c = 0; c < columns; c++) any |= fabs(value[i * columns + c]) > 0;
        if (!any || !before) continue;
        word[kept] = word[i];
        memmove(value + kept++ * columns, value + i * columns, columns * sizeof *value);
    }
    m->n = kept;
    return true;
}

static void put_heatmap(ses_explain *x, const matrix *m)
{
    ses_err e = { 0 };
    size_t columns = (size_t)x->n_columns;
    float *value = ses_arena_array(&x->mem, m->n * columns + 1, sizeof *value, &e);
    const char **row = ses_arena_array(&x->mem, m->n + 1, sizeof *row, &e),
               **col = ses_arena_array(&x->mem, columns, sizeof *col, &e);
    if (!value || !row || !col) return;
    for (size_t i = 0; i < m->n * columns; i++) value[i] = (float)m->value[i];
    for (size_t i = 0; i < m->n; i++) {
        ses_buf b = { 0 };
        ses_buf_appendf(&b, "%s%s", m->word[i].side ? "> " : "", m->word[i].name);
        row[i] = ses_arena_strndup(&x->mem, b.data ? b.data : "", b.len, &e);
        ses_buf_free(&b);
        if (!row[i]) return;
    }
    for (size_t c = 0; c < columns; c++) col[c] = x->written.name[x->column[c].at];
    ses_report_heatmap(x->call->report, "Contributions to each token",
                       &(ses_figure_matrix){ .rows = (int64_t)m->n,
                                             .cols = x->n_columns,
                                             .value = value,
                                             .row_name = row,
                                             .col_name = col,
                                             .row_label = "words of the source, > of the target so far",
                                             .col_label = "tokens of the target",
                                             .scale = x->is_unsigned ? SES_SCALE_RANGE : SES_SCALE_SIGNED });
}

/* The word with the largest value in a column that is not in `used`; -1: none. */
static int64_t largest(const matrix *m, size_t columns, size_t c, const int64_t *used, int n_used)
{
    int64_t best = -1;
    for (size_t i = 0; i < m->n; i++) {
        bool taken = !(fabs(m->value[i * columns + c]) > 0);
        for (int k = 0; k < n_used; k++) taken |= used[k] == (int64_t)i;
        if (taken) continue;
        if (best < 0 || fabs(m->value[i * columns + c]) > fabs(m->value[(size_t)best * columns + c]))
            best = (int64_t)i;
    }
    return best;
}

static void put_table(ses_explain *x, const matrix *m)
{
    enum { SHOWN = 3 };
    size_t columns = (size_t)x->n_columns;
    ses_figure *f =
        ses_report_table(x->call->report, "Largest contributions", "token|>probability|>score|words");
    for (size_t c = 0; c < columns; c++) {
        int64_t used[SHOWN];
        ses_buf b = { 0 };
        for (int k = 0; k < SHOWN; k++) {
            if ((used[k] = largest(m, columns, c, used, k)) < 0) break;
            ses_buf_appendf(&b, x->is_unsigned ? "%s%s %.3f" : "%s%s %+.3f", k ? ", " : "",
                            m->word[used[k]].name, m->value[(size_t)used[k] * columns + c]);
        }
        ses_figure_cell(f, "%s", x->written.name[x->column[c].at]);
        ses_figure_cell(f, "%.4f", x->column[c].probability);
        ses_figure_cell(f, "%.4f", x->column[c].score);
        ses_figure_cell(f, "%s", b.data ? b.data : "");
        ses_buf_free(&b);
    }
}

static void put_reals(ses_json_writer *w, const char *key, const double *v, int64_t n)
{
    ses_json_member_array(w, key);
    for (int64_t i = 0; i < n; i++) ses_json_put_real(w, v[i]);
    ses_json_end_array(w);
}

static void put_json(ses_explain *x, const char *method, const char *text)
{
    ses_json_writer *w = ses_report_json(x->call->report);
    double likelihood = 0;
    for (int64_t i = 0; i < x->n_columns; i++) likelihood += log(x->column[i].probability);
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", method);
    ses_json_member_object(w, "target");
    ses_json_member_string(w, "kind", "text");
    ses_json_member_string(w, "label", text);
    ses_json_member_string(w, "foil", NULL);
    ses_json_member_string(w, "at", x->target.at);
    ses_json_end_object(w);
    ses_json_member_real(w, "log_likelihood", likelihood);
    ses_json_member_array(w, "columns");
    for (int64_t i = 0; i < x->n_columns; i++) {
        const ses_explain_column *c = &x->column[i];
        ses_json_begin_object(w);
        ses_json_member_string(w, "label", x->written.name[c->at]);
        ses_json_member_int(w, "position", c->at - 1);
        ses_json_member_real(w, "score", c->score);
        ses_json_member_real(w, "probability", c->probability);
        if (c->steps) {
            ses_json_member_real(w, "baseline_score", c->base_score);
            ses_json_member_real(w, "delta", c->delta);
            ses_json_member_int(w, "steps", c->steps);
        }
        put_reals(w, "values", c->value[SES_EXPLAIN_SOURCE], x->side[SES_EXPLAIN_SOURCE].n);
        put_reals(w, "target_values", c->value[SES_EXPLAIN_TARGET], c->at);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    for (int k = 0; k < SES_EXPLAIN_SIDES; k++)
        for (int64_t i = 0; i < x->side[k].n; i++) {
            const ses_explain_side *s = &x->side[k];
            ses_report_token(x->call->report, s->name[i], strlen(s->name[i]), s->bytes[i].begin,
                             s->bytes[i].end, s->word[i]);
        }
}

static void put_notes(ses_explain *x, const char *description)
{
    ses_report *r = x->call->report;
    int64_t inexact = 0;
    ses_report_note(r, "%s", description);
    for (int64_t i = 0; i < x->n_columns; i++) {
        const ses_explain_column *c = &x->column[i];
        inexact += c->steps && fabs(c->delta) > 0.05 * fabs(c->score - c->base_score);
    }
    if (inexact)
        ses_report_note(r,
                        "The values of %lld tokens miss the difference of the scores by more than 5 %%: read "
                        "them with care.",
                        (long long)inexact);
    if (x->scale) ses_report_note(r, "The values are the %s.", x->scale);
    ses_report_note(
        r, "Rows are words of the source and, behind >, tokens of the target; columns are the tokens "
           "that they explain.");
    ses_report_note(r, "--token TOKEN or --word WORD explains one token in detail.");
}

void ses_explain_put_matrix(ses_explain *x, const char *method, const char *description)
{
    matrix m;
    ses_buf text = { 0 };
    ses_err e = { 0 };
    const char *decoded;
    size_t n, begin = (size_t)x->column[0].at, end = (size_t)x->column[x->n_columns - 1].at + 1;
    if (ses_decode(x->tokens, x->written.id + begin, end - begin, false, &decoded, &n, &e))
        ses_buf_append(&text, decoded, n);
    ses_report_set_title(x->call->report, "Why the text \"%s\"?", text.data ? text.data : "");
    put_json(x, method, text.data ? text.data : "");
    if (make_matrix(x, &m)) {
        put_heatmap(x, &m);
        put_table(x, &m);
    }
    put_notes(x, description);
    ses_buf_free(&text);
}
