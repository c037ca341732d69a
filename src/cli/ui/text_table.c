/* Aligned text tables on a terminal. */
#include "text_table.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

typedef struct cell {
    char *text;
    ses_style style;
} cell;

typedef struct column {
    char *title;
    bool right;
} column;

struct ses_text_table {
    column *col;
    size_t n_cols;
    cell *cell;
    size_t n, cap;
    ses_err err;
};

ses_text_table *ses_text_table_new(const char *columns, ses_err *e)
{
    ses_text_table *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    size_t n = 1;
    for (const char *c = columns; *c; c++) n += *c == '|';
    t->col = ses_alloc_array(n, sizeof *t->col, e);
    if (!t->col) goto fail;
    for (; t->n_cols < n; t->n_cols++) {
        column *c = &t->col[t->n_cols];
        c->right = *columns == '>';
        columns += c->right;
        size_t len = strcspn(columns, "|");
        c->title = ses_strndup(columns, len, e);
        if (!c->title) goto fail;
        columns += len + (columns[len] != 0);
    }
    return t;
fail:
    ses_text_table_free(t);
    return NULL;
}

void ses_text_table_free(ses_text_table *t)
{
    if (!t) return;
    for (size_t i = 0; t->col && i < t->n_cols; i++) ses_free(t->col[i].title);
    for (size_t i = 0; i < t->n; i++) ses_free(t->cell[i].text);
    ses_free(t->col);
    ses_free(t->cell);
    ses_free(t);
}

void ses_text_table_cell(ses_text_table *t, const char *fmt, ...)
{
    char raw[512], text[512]; /* longer cells are truncated */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    ses_escape_controls(text, sizeof text, raw);
    if (t->err.code) return;
    if (!ses_array_reserve(&t->cell, &t->cap, t->n + 1, sizeof *t->cell, &t->err)) return;
    char *copy = ses_strdup(text, &t->err);
    if (copy) t->cell[t->n++] = (cell){ .text = copy };
}

void ses_text_table_style(ses_text_table *t, ses_style s)
{
    if (t->n && !t->err.code) t->cell[t->n - 1].style = s;
}

/* Writes *pending spaces, then text. Spaces are deferred, so that no line ends in spaces. */
static void put(FILE *f, const ses_term *term, const char *text, ses_style style, int *pending)
{
    if (!*text) return;
    fprintf(f, "%*s", *pending, "");
    *pending = 0;
    if (style != SES_PLAIN) fputs(ses_style_on(term, style), f);
    fputs(text, f);
    if (style != SES_PLAIN) fputs(ses_style_on(term, SES_PLAIN), f);
}

bool ses_text_table_print(const ses_text_table *t, FILE *f, const ses_term *term, int indent, ses_err *e)
{
    if (t->err.code) return ses_fail(e, t->err.code, "%s", t->err.msg);
    assert(t->n % t->n_cols == 0); /* complete rows */
    size_t *width = ses_alloc_array(t->n_cols, sizeof *width, e);
    if (!width) return false;
    size_t titles = 0;
    for (size_t i = 0; i < t->n_cols; i++) {
        width[i] = ses_text_width(t->col[i].title);
        titles += width[i];
    }
    for (size_t i = 0; i < t->n; i++) {
        size_t w = ses_text_width(t->cell[i].text);
        if (w > width[i % t->n_cols]) width[i % t->n_cols] = w;
    }
    int pending = 0;
    for (size_t i = titles ? 0 : t->n_cols; i < t->n_cols + t->n; i++) { /* the first n_cols are the titles */
        size_t c = i % t->n_cols;
        cell x = i < t->n_cols ? (cell){ t->col[c].title, SES_BOLD } : t->cell[i - t->n_cols];
        int pad = (int)(width[c] - ses_text_width(x.text));
        pending = c ? pending + 2 : indent;
        if (t->col[c].right) pending += pad;
        put(f, term, x.text, x.style, &pending);
        if (!t->col[c].right) pending += pad;
        if (c + 1 == t->n_cols) putc('\n', f);
    }
    ses_free(width);
    return true;
}
