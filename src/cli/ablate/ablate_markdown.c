/* ablate.md: the tables of a study, for documents. */
#include "ablate_show.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <math.h>

/* A cell: '|' would end it. */
static void put_cell(ses_buf *b, const char *text)
{
    ses_buf_puts(b, " ");
    for (const char *c = text; *c; c++) {
        if (*c == '|') ses_buf_put(b, '\\');
        ses_buf_put(b, *c == '\n' ? ' ' : *c);
    }
    ses_buf_puts(b, " |");
}

static void put_rule(ses_buf *b, size_t numbers)
{
    ses_buf_puts(b, "\n|---|");
    for (size_t i = 0; i < numbers; i++) ses_buf_puts(b, "---:|");
    ses_buf_put(b, '\n');
}

static void put_scores(const ses_ablate *s, ses_buf *b)
{
    size_t n = s->n_columns;
    char text[80];
    ses_buf_puts(b, "| run |");
    for (size_t k = 0; k < s->n_columns; k++) {
        put_cell(b, s->column[k].name);
        if (ses_ablate_has_published(s, k)) n++, put_cell(b, "published");
    }
    put_rule(b, n);
    for (size_t i = 0; i < s->n_runs; i++) {
        ses_buf_put(b, '|');
        put_cell(b, s->run[i].name);
        for (size_t k = 0; k < s->n_columns; k++) {
            double published = ses_ablate_entry_at(s, i, k)->published;
            put_cell(b, ses_ablate_entry_text(s, i, k, "\xC2\xB1 ", text, sizeof text)); /* plus-minus */
            if (!ses_ablate_has_published(s, k)) continue;
            snprintf(text, sizeof text, isnan(published) ? "-" : "%g", published);
            put_cell(b, text);
        }
        ses_buf_put(b, '\n');
    }
}

static void put_intervals(const ses_ablate *s, ses_buf *b)
{
    char text[80];
    ses_buf_puts(b, "\n| column, run | mean | median | low | high | results |");
    put_rule(b, 5);
    for (size_t k = 0; k < s->n_columns; k++)
        for (size_t i = 0; i < s->n_runs; i++) {
            const ses_ablate_entry *x = ses_ablate_entry_at(s, i, k);
            const double value[] = { x->interval.mean, x->median, x->interval.low, x->interval.high };
            if (!x->n) continue;
            ses_buf_appendf(b, "| %s,", s->column[k].name);
            put_cell(b, s->run[i].name);
            for (size_t m = 0; m < SES_LEN(value); m++) {
                snprintf(text, sizeof text, "%.*f", ses_ablate_digits(&s->column[k]),
                         s->column[k].scale * value[m]);
                put_cell(b, isnan(value[m]) ? "-" : text);
            }
            ses_buf_appendf(b, " %zu |\n", x->results);
        }
}

static void put_comparison(ses_ablate *s, ses_buf *b)
{
    ses_ablate_comparison c;
    bool begun = false;
    char text[40];
    for (size_t k = 0; k < s->n_columns; k++) {
        if (!ses_ablate_compare(s, k, &c, NULL)) continue;
        if (!begun) ses_buf_puts(b, "\n| column | runs | Spearman | order |\n|---|---:|---:|---|\n");
        begun = true;
        ses_buf_put(b, '|');
        put_cell(b, s->column[k].name);
        snprintf(text, sizeof text, "%zu", c.n);
        put_cell(b, text);
        snprintf(text, sizeof text, "%.2f", c.spearman);
        put_cell(b, isnan(c.spearman) ? "-" : text);
        put_cell(b, c.verdict);
        ses_buf_put(b, '\n');
    }
    if (begun && s->source) ses_buf_appendf(b, "\nPublished numbers: %s\n", s->source);
}

static void put_costs(const ses_ablate *s, ses_buf *b)
{
    size_t n = 0;
    char text[80];
    ses_buf_puts(b, "\n| run |");
    for (size_t k = 0; k < SES_ABLATE_COSTS; k++)
        if (ses_ablate_has_cost(s, k)) n++, put_cell(b, ses_ablate_cost_names[k]);
    put_rule(b, n);
    for (size_t i = 0; i < s->n_runs; i++) {
        ses_buf_put(b, '|');
        put_cell(b, s->run[i].name);
        for (size_t k = 0; k < SES_ABLATE_COSTS; k++)
            if (ses_ablate_has_cost(s, k))
                put_cell(b, ses_ablate_cost_text(ses_ablate_cost(s, i, k), k, text, sizeof text));
        ses_buf_put(b, '\n');
    }
}

bool ses_ablate_write_markdown(ses_ablate *s, ses_err *e)
{
    ses_buf b = { 0 };
    char text[400];
    ses_buf_appendf(&b, "# %s\n\n", ses_ablate_title(s));
    put_scores(s, &b);
    if (*ses_ablate_interval_text(s, "\xC2\xB1", text, sizeof text)) ses_buf_appendf(&b, "\n%s\n", text);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (*ses_ablate_overlap_text(s, i, text, sizeof text)) ses_buf_appendf(&b, "\n%s.\n", text);
    put_intervals(s, &b);
    put_comparison(s, &b);
    put_costs(s, &b);
    ses_buf_appendf(&b, "\n`%s`\n", s->command);
    char *path = ses_path_join(s->a->output, "ablate.md", e);
    bool ok = path && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, true, e);
    ses_free(path);
    ses_buf_free(&b);
    return ok;
}
