/* The result of `sesame explain` as figures and JSON: words with their values, a sorted table. */
#include "explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t ses_explain_words(ses_explain *x, double *const value[SES_EXPLAIN_SIDES], ses_explain_word *w)
{
    size_t n = 0;
    ses_err e = { 0 };
    if (!value) value = x->value;
    for (int k = 0; k < SES_EXPLAIN_SIDES; k++) {
        const ses_explain_side *s = &x->side[k];
        for (int64_t i = 0, end; i < s->n; i = end) {
            bool alone = s->special[i] || (k && x->n_columns > 1); /* a matrix has target tokens */
            end = i + 1;
            while (!alone && end < s->n && s->word[end] == s->word[i]) end++;
            double sum = 0, any = NAN;
            for (int64_t t = i; t < end; t++)
                if (isfinite(value[k][t])) any = sum += value[k][t];
            const char *name = ses_explain_text_of(x, s, i, end, &e);
            w[n++] = (ses_explain_word){ name ? name : "", any, k, i, end };
        }
    }
    return n;
}

static void put_strip(ses_explain *x, const ses_explain_word *w, size_t n, int side, const char *title)
{
    ses_err e = { 0 };
    const char **name = ses_arena_array(&x->mem, n + 1, sizeof *name, &e);
    double *value = ses_arena_array(&x->mem, n + 1, sizeof *value, &e);
    int64_t k = 0;
    if (!name || !value) return;
    for (size_t i = 0; i < n; i++) {
        if (w[i].side != side) continue;
        bool special = x->side[side].special[w[i].begin] && !(fabs(w[i].value) > 0);
        name[k] = w[i].name, value[k++] = special ? NAN : w[i].value;
    }
    if (k) ses_report_strip(x->call->report, title, k, name, value);
}

static int by_size(const void *a, const void *b)
{
    double x = fabs(((const ses_explain_word *)a)->value), y = fabs(((const ses_explain_word *)b)->value);
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return x < y ? 1 : x > y ? -1 : 0;
}

static void put_table(ses_explain *x, ses_explain_word *w, size_t n)
{
    double total = 0;
    bool two = x->side[SES_EXPLAIN_TARGET].n > 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(w[i].value)) total += fabs(w[i].value);
    qsort(w, n, sizeof *w, by_size);
    ses_figure *f = ses_report_table(x->call->report, "Largest contributions",
                                     two ? "word|part|>value|>share" : "word|>value|>share");
    for (size_t i = 0; i < n && (int64_t)i < x->args->top; i++) {
        if (!isfinite(w[i].value) || w[i].value == 0) continue;
        ses_figure_cell(f, "%s", w[i].name);
        if (two) ses_figure_cell(f, "%s", w[i].side ? "target" : "source");
        ses_figure_cell(f, x->is_unsigned ? "%.4f" : "%+.4f", w[i].value);
        ses_figure_cell(f, "%.1f %%", total > 0 ? 100 * fabs(w[i].value) / total : 0);
    }
}

/* ---- JSON ---- */

static void put_target(const ses_explain *x, ses_json_writer *w)
{
    static const char *const kinds[] = { "label", "tag", "token", "span" };
    const ses_explain_target *g = &x->target;
    ses_json_member_object(w, "target");
    ses_json_member_string(w, "kind", g->n_rivals ? "choice" : kinds[g->kind]);
    ses_json_member_string(w, "label", g->name);
    ses_json_member_string(w, "foil", g->foil_name);
    if (g->kind == SES_EXPLAIN_SPAN) {
        ses_json_member_int(w, "start", g->start);
        ses_json_member_int(w, "end", g->end);
    } else if (g->kind != SES_EXPLAIN_SEQUENCE) {
        ses_json_member_int(w, "position", g->position);
    }
    if (g->at) ses_json_member_string(w, "at", g->at);
    ses_json_end_object(w);
}

static void put_values(const ses_explain *x, ses_json_writer *w)
{
    static const char *const keys[] = { "values", "target_values" };
    for (int k = 0; k < SES_EXPLAIN_SIDES; k++) {
        if (!x->side[k].n) continue;
        ses_json_member_array(w, keys[k]);
        for (int64_t i = 0; i < x->side[k].n; i++) ses_json_put_real(w, x->value[k][i]);
        ses_json_end_array(w);
    }
}

static void put_words(const ses_explain *x, ses_json_writer *w, const ses_explain_word *word, size_t n)
{
    ses_json_member_array(w, "words");
    for (size_t i = 0; i < n; i++) {
        const ses_explain_side *s = &x->side[word[i].side];
        ses_json_begin_object(w);
        ses_json_member_string(w, "word", word[i].name);
        ses_json_member_string(w, "part", word[i].side ? "target" : s->pair[word[i].begin] ? "pair" : "text");
        ses_json_member_int(w, "start", s->bytes[word[i].begin].begin);
        ses_json_member_int(w, "end", s->bytes[word[i].end - 1].end);
        ses_json_member_real(w, "value", word[i].value);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_json(const ses_explain *x, const char *method, const ses_explain_word *word, size_t n)
{
    ses_json_writer *w = ses_report_json(x->call->report);
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", method);
    put_target(x, w);
    ses_json_member_real(w, "score", x->score);
    ses_json_member_real(w, "probability", x->probability);
    if (x->steps) {
        ses_json_member_real(w, "baseline_score", x->base_score);
        ses_json_member_real(w, "delta", x->delta);
        ses_json_member_int(w, "steps", x->steps);
    }
    put_values(x, w);
    put_words(x, w, word, n);
    ses_json_end_object(w);
    for (int k = 0; k < SES_EXPLAIN_SIDES; k++)
        for (int64_t i = 0; i < x->side[k].n; i++) {
            const ses_explain_side *s = &x->side[k];
            ses_report_token(x->call->report, s->name[i], strlen(s->name[i]), s->bytes[i].begin,
                             s->bytes[i].end, s->word[i]);
        }
}

/* ---- sentences ---- */

/* "A" and not "B" at "word" */
static void put_target_name(const ses_explain *x, ses_buf *b)
{
    const ses_explain_target *g = &x->target;
    ses_buf_appendf(b, "\"%s\"", g->name);
    if (g->foil_name) ses_buf_appendf(b, " and not \"%s\"", g->foil_name);
    if (g->kind == SES_EXPLAIN_TOKEN && g->at) ses_buf_appendf(b, " at \"%s\"", g->at);
}

static void put_title(ses_explain *x)
{
    const ses_explain_target *g = &x->target;
    static const char *const what[] = { "label", "tag", "token", "answer" };
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "Why %s ", g->n_rivals ? "choice" : what[g->kind]);
    put_target_name(x, &b);
    ses_buf_puts(&b, "?");
    if (b.data) ses_report_set_title(x->call->report, "%s", b.data);
    ses_buf_free(&b);
}

static void put_notes(ses_explain *x, const char *description)
{
    ses_report *r = x->call->report;
    const char *unit = x->target.foil >= 0 ? "difference of the logits" : "logit";
    ses_report_note(r, "%s", description);
    if (x->steps)
        ses_report_note(r, "The %s is %.4f, with the baseline %.4f; %lld steps, completeness delta %.2g.",
                        unit, x->score, x->base_score, (long long)x->steps, x->delta);
    else
        ses_report_note(r, "The %s is %.4f.", x->unit ? x->unit : unit, x->score);
    if (x->steps && fabs(x->delta) > 0.05 * fabs(x->score - x->base_score))
        ses_report_note(
            r, "The values miss the difference of the scores by more than 5 %%: read them with care.");
    if (x->scale) ses_report_note(r, "The values are the %s.", x->scale);
}

void ses_explain_put_report(ses_explain *x, const char *method, const char *description)
{
    ses_err e = { 0 };
    size_t most = (size_t)(x->side[0].n + x->side[1].n) + 1;
    ses_explain_word *w = ses_arena_array(&x->mem, most, sizeof *w, &e);
    if (!w) return;
    size_t n = ses_explain_words(x, NULL, w);
    ses_buf title = { 0 };
    put_title(x);
    put_target_name(x, &title);
    put_json(x, method, w, n);
    put_strip(x, w, n, SES_EXPLAIN_SOURCE, title.data ? title.data : "");
    ses_buf_free(&title);
    if (x->side[SES_EXPLAIN_TARGET].n > 1) put_strip(x, w, n, SES_EXPLAIN_TARGET, "Target so far");
    put_table(x, w, n);
    put_notes(x, description);
}
