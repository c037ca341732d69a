/* Prints statistics and examples of a data set as text and as JSON. */
#include "base/file.h"
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "data/examples_notices.h"
#include "data_stats.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LABELS = 40, MAX_TEXT = 120 };

static bool has_labels(const ses_examples *d)
{
    ses_data_kind k = ses_examples_kind(d);
    return k == SES_DATA_CLASSIFY || k == SES_DATA_MULTI || k == SES_DATA_TAG || k == SES_DATA_CHOICE;
}

static void show_distribution(const ses_term *t, const char *name, const ses_distribution *s)
{
    ses_show_line(t, name, "mean %.1f, min %.0f, median %.1f, 95th percentile %.0f, max %.0f", s->mean,
                  s->min, s->median, s->p95, s->max);
}

static bool show_labels(const ses_examples *d, const ses_data_stats *s, const ses_term *t, ses_err *e)
{
    char n[SES_NUMBER_TEXT], bar[SES_BAR_SIZE], name[64];
    int64_t all = 0, max = 1;
    size_t labels = ses_examples_label_count(d);
    for (size_t k = 0; k < labels; k++) {
        all += s->count[k];
        if (s->count[k] > max) max = s->count[k];
    }
    ses_text_table *table = ses_text_table_new("Label|>Count|>Fraction|", e);
    if (!table) return false;
    for (size_t k = 0; k < labels && k < MAX_LABELS; k++) {
        ses_escape_controls(name, sizeof name, ses_examples_label_name(d, k));
        ses_text_table_cell(table, "%s", name);
        ses_text_table_cell(table, "%s", ses_grouped_text(n, s->count[k]));
        ses_text_table_cell(table, "%.1f %%", all ? 100 * (double)s->count[k] / (double)all : 0.0);
        ses_text_table_cell(table, "%s",
                            ses_bar_text(t, bar, (double)s->count[k] / (double)max, ses_bar_width(t, 40)));
    }
    puts("");
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    if (labels > MAX_LABELS) printf("... and %zu more labels\n", labels - MAX_LABELS);
    ses_text_table_free(table);
    return ok;
}

static void put_quoted(const char *label, const ses_string *f)
{
    char text[MAX_TEXT];
    ses_quote(text, sizeof text, f->p, f->n);
    printf("  %s%s%s\n", label, *label ? ": " : "", text);
}

static void show_tokens(const ses_examples *d, const ses_labeled_example *x)
{
    ses_buf b = { 0 };
    for (size_t k = 0; k < x->n_parts && b.len < 2 * MAX_TEXT; k++) {
        const char *tag = k < x->n_labels ? ses_examples_label_name(d, (size_t)x->labels[k]) : NULL;
        bool plain = !tag || !strcmp(tag, "O");
        ses_buf_appendf(&b, "%s%s%s%s", k ? " " : "", x->parts[k].p, plain ? "" : "/", plain ? "" : tag);
    }
    put_quoted("", &(ses_string){ b.data ? b.data : "", b.len });
    ses_buf_free(&b);
}

static void show_answers(const ses_labeled_example *x)
{
    if (!x->n_answers) puts(x->is_impossible ? "  unanswerable" : "  no answer given");
    for (size_t k = 0; k < x->n_answers && k < 3; k++) put_quoted("answer", &x->answers[k].text);
}

static void show_example(const ses_examples *d, const ses_labeled_example *x, const ses_term *t)
{
    ses_data_kind kind = ses_examples_kind(d);
    char name[64] = "";
    if (x->label >= 0) ses_escape_controls(name, sizeof name, ses_examples_label_name(d, (size_t)x->label));
    if (kind == SES_DATA_REGRESS) snprintf(name, sizeof name, "%g", x->target);
    printf("%s%s %" PRIu64 "%s%s%s\n", ses_style_on(t, SES_BOLD), kind == SES_DATA_SPAN ? "question" : "line",
           x->line, *name ? ": " : "", name, ses_style_on(t, SES_PLAIN));
    if (kind == SES_DATA_TAG) {
        show_tokens(d, x);
        return;
    }
    put_quoted("", &x->text_a);
    if (x->text_b.n) put_quoted(kind == SES_DATA_SPAN ? "context" : "", &x->text_b);
    for (size_t k = 0; k < x->n_parts; k++)
        put_quoted(x->label == (int32_t)k ? "correct choice" : "choice", &x->parts[k]);
    for (size_t k = 0; k < x->n_labels; k++) {
        const char *label = ses_examples_label_name(d, (size_t)x->labels[k]);
        put_quoted("label", &(ses_string){ label, strlen(label) });
    }
    if (kind == SES_DATA_SPAN) show_answers(x);
}

static void show_metrics(const ses_data_spec *s, const ses_term *t)
{
    char text[160];
    size_t n = 0;
    for (const char *p = s->metrics; *p && n + 3 < sizeof text; p++) {
        text[n++] = *p == '|' ? ',' : *p;
        if (*p == '|') text[n++] = ' ';
    }
    text[n] = 0;
    ses_show_line(t, "Metrics", "%s; best model by %s", text, s->best_metric);
}

static void show_gaps(const ses_examples *d, const ses_term *t)
{
    char text[400];
    const ses_data_gap *g;
    for (size_t i = 0; (g = ses_examples_gap(d, i)); i++) {
        ses_data_gap_text(g, text, sizeof text);
        ses_show_line(t, i ? "" : "Gaps", "%s", text);
    }
    if (!ses_examples_gap(d, 0)) ses_show_line(t, "Gaps", "none");
}

bool ses_data_show(const ses_examples *d, const ses_data_stats *s, const ses_data_view *v, const ses_term *t,
                   ses_err *e)
{
    char n[SES_NUMBER_TEXT], m[SES_NUMBER_TEXT];
    size_t count = ses_examples_count(d);
    ses_data_kind kind = ses_examples_kind(d);
    ses_show_line(t, "File", "%s%s%s%s", strcmp(v->path, "-") ? v->path : "standard input",
                  v->split ? " (" : "", v->split ? v->split : "", v->split ? ")" : "");
    if (v->benchmark) ses_show_line(t, "Benchmark", "%s", v->benchmark->title);
    ses_show_line(t, "Examples", "%s, task %s", ses_grouped_text(n, (int64_t)count),
                  ses_data_kind_name(kind));
    if (kind == SES_DATA_TAG) ses_show_line(t, "Tokens", "%s", ses_grouped_text(n, s->tokens));
    show_distribution(t, "Words", &s->words);
    show_distribution(t, "Characters", &s->characters);
    if (kind == SES_DATA_REGRESS)
        ses_show_line(t, "Targets", "%.4g to %.4g, mean %.4g, standard deviation %.4g", s->targets.min,
                      s->targets.max, s->targets.mean, s->targets.stddev);
    if (kind == SES_DATA_SPAN)
        ses_show_line(t, "Answers", "%s questions with an answer, %s without",
                      ses_grouped_text(n, (int64_t)count - s->unanswered),
                      ses_grouped_text(m, s->unanswered));
    if (ses_examples_skipped(d))
        ses_show_line(t, "Skipped", "%s answers not found in their context",
                      ses_grouped_text(n, (int64_t)ses_examples_skipped(d)));
    ses_show_line(t, "Duplicates", "%s%s%s", s->duplicates ? ses_grouped_text(n, s->duplicates) : "none",
                  s->contradictions ? "; with another label: " : "",
                  s->contradictions ? ses_grouped_text(m, s->contradictions) : "");
    show_gaps(d, t);
    show_metrics(v->spec, t);
    if (has_labels(d) && !show_labels(d, s, t, e)) return false;
    for (size_t i = 0; i < count && i < (size_t)v->show; i++) {
        if (!i) puts("");
        show_example(d, ses_examples_at(d, i), t);
    }
    return true;
}

/* ---- JSON ---- */

static void put_distribution(ses_json_writer *w, const char *key, const ses_distribution *s)
{
    ses_json_member_object(w, key);
    ses_json_member_real(w, "mean", s->mean);
    ses_json_member_real(w, "deviation", s->stddev);
    ses_json_member_real(w, "min", s->min);
    ses_json_member_real(w, "median", s->median);
    ses_json_member_real(w, "p95", s->p95);
    ses_json_member_real(w, "max", s->max);
    ses_json_end_object(w);
}

static void put_text(ses_json_writer *w, const char *key, const ses_string *f)
{
    if (!f->n) return;
    ses_json_member_stringn(w, key, f->p, f->n);
}

static void put_example(ses_json_writer *w, const ses_examples *d, const ses_labeled_example *x)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "line", (int64_t)x->line);
    put_text(w, "id", &x->id);
    put_text(w, "text", &x->text_a);
    put_text(w, "pair", &x->text_b);
    if (x->label >= 0) ses_json_member_string(w, "label", ses_examples_label_name(d, (size_t)x->label));
    if (ses_examples_kind(d) == SES_DATA_REGRESS) ses_json_member_real(w, "label", x->target);
    if (x->n_parts) {
        ses_json_member_array(w, ses_examples_kind(d) == SES_DATA_TAG ? "tokens" : "choices");
        for (size_t k = 0; k < x->n_parts; k++) ses_json_put_stringn(w, x->parts[k].p, x->parts[k].n);
        ses_json_end_array(w);
    }
    if (x->n_labels) {
        ses_json_member_array(w, "labels");
        for (size_t k = 0; k < x->n_labels; k++)
            ses_json_put_string(w, ses_examples_label_name(d, (size_t)x->labels[k]));
        ses_json_end_array(w);
    }
    if (ses_examples_kind(d) == SES_DATA_SPAN) {
        ses_json_member_array(w, "answers");
        for (size_t k = 0; k < x->n_answers; k++)
            ses_json_put_stringn(w, x->answers[k].text.p, x->answers[k].text.n);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

static void put_labels(ses_json_writer *w, const ses_examples *d, const ses_data_stats *s)
{
    ses_json_member_array(w, "labels");
    for (size_t k = 0; k < ses_examples_label_count(d); k++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", ses_examples_label_name(d, k));
        ses_json_member_string(w, "value", ses_examples_label_value(d, k));
        ses_json_member_int(w, "count", s->count[k]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_gaps(ses_json_writer *w, const ses_examples *d)
{
    const ses_data_gap *g;
    ses_json_member_array(w, "gaps");
    for (size_t i = 0; (g = ses_examples_gap(d, i)); i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "what", g->what);
        ses_json_member_int(w, "rows", (int64_t)g->rows);
        ses_json_member_bool(w, "error", g->is_error);
        ses_json_member_array(w, "lines");
        for (size_t k = 0; k < g->rows && k < SES_LEN(g->line); k++) ses_json_put_int(w, (int64_t)g->line[k]);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_member_int(w, "dropped", (int64_t)ses_examples_dropped(d));
}

bool ses_data_print_json(const ses_examples *d, const ses_data_stats *s, const ses_data_view *v, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    size_t count = ses_examples_count(d);
    ses_json_begin_object(w);
    ses_json_member_string(w, "file", v->path);
    if (v->benchmark) ses_json_member_string(w, "benchmark", v->benchmark->name);
    if (v->split) ses_json_member_string(w, "split", v->split);
    ses_json_member_string(w, "kind", ses_data_kind_name(ses_examples_kind(d)));
    ses_json_member_int(w, "examples", (int64_t)count);
    put_distribution(w, "words", &s->words);
    put_distribution(w, "characters", &s->characters);
    if (ses_examples_kind(d) == SES_DATA_REGRESS) put_distribution(w, "targets", &s->targets);
    if (ses_examples_kind(d) == SES_DATA_SPAN) ses_json_member_int(w, "unanswered", s->unanswered);
    if (ses_examples_kind(d) == SES_DATA_TAG) ses_json_member_int(w, "tokens", s->tokens);
    ses_json_member_int(w, "duplicates", s->duplicates);
    ses_json_member_int(w, "contradictions", s->contradictions);
    put_gaps(w, d);
    char separator[2] = { ses_examples_label_separator(d), 0 };
    if (*separator) ses_json_member_string(w, "label_separator", *separator == '[' ? "json" : separator);
    ses_json_member_int(w, "skipped_answers", (int64_t)ses_examples_skipped(d));
    ses_json_member_array(w, "metrics");
    for (const char *p = v->spec->metrics; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        ses_json_put_stringn(w, p, strcspn(p, "|"));
    ses_json_end_array(w);
    ses_json_member_string(w, "best", v->spec->best_metric);
    if (has_labels(d)) put_labels(w, d, s);
    ses_json_member_array(w, "first");
    for (size_t i = 0; i < count && i < (size_t)v->show; i++) put_example(w, d, ses_examples_at(d, i));
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}
