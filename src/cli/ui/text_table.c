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
    bool right, hidden;
    size_t max_width; /* longer cells are truncated; 0: any width */
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

/* ---- widths ---- */

enum { GAP = 2, MIN_TEXT = 12 };

/* Width of the widest cell, or of the title. */
static size_t natural_width(const ses_text_table *t, size_t c)
{
    size_t width = ses_text_width(t->col[c].title);
    for (size_t i = c; i < t->n; i += t->n_cols) {
        size_t w = ses_text_width(t->cell[i].text);
        if (w > width) width = w;
    }
    return width;
}

static size_t column_width(const ses_text_table *t, size_t c)
{
    size_t width = natural_width(t, c), max = t->col[c].max_width;
    return max && width > max ? max : width;
}

static size_t table_width(const ses_text_table *t)
{
    size_t sum = 0;
    for (size_t c = 0; c < t->n_cols; c++)
        if (!t->col[c].hidden) sum += (sum ? GAP : 0) + column_width(t, c);
    return sum;
}

void ses_text_table_fit(ses_text_table *t, int width, const int *importance)
{
    size_t max = width > 1 ? (size_t)width : 1;
    for (;;) {
        size_t least = t->n_cols, total = table_width(t);
        if (total <= max) return;
        for (size_t c = 0; c < t->n_cols; c++)
            if (!t->col[c].hidden && importance[c] &&
                (least == t->n_cols || importance[c] < importance[least]))
                least = c;
        if (least == t->n_cols) break;
        t->col[least].hidden = true;
    }
    for (size_t c = 0; c < t->n_cols && table_width(t) > max; c++) {
        size_t over = table_width(t) - max, w = column_width(t, c);
        if (!t->col[c].right && !t->col[c].hidden && w > MIN_TEXT)
            t->col[c].max_width = w > MIN_TEXT + over ? w - over : MIN_TEXT;
    }
}

const char *ses_text_table_hidden(const ses_text_table *t, size_t i)
{
    for (size_t c = 0; c < t->n_cols; c++)
        if (t->col[c].hidden && i-- == 0) return t->col[c].title;
    return NULL;
}

/* ---- output ---- */

/* The text in at most `width` columns; a longer one ends in "...". */
static const char *clip_text(char buf[512], const char *text, size_t width)
{
    if (ses_text_width(text) <= width) return text;
    size_t n = 0, shown = 0, keep = width > 3 ? width - 3 : 0;
    for (const char *s = text; *s; s++) {
        shown += ((unsigned char)*s & 0xC0) != 0x80;
        if (shown > keep) break;
        n++;
    }
    snprintf(buf, 512, "%.*s...", (int)n, text);
    return buf;
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

/* One row: its cells, or the titles if row is NULL. */
static void put_row(const ses_text_table *t, FILE *f, const ses_term *term, const cell *row,
                    const size_t *width, int indent)
{
    int pending = indent;
    bool first = true;
    for (size_t c = 0; c < t->n_cols; c++) {
        if (t->col[c].hidden) continue;
        char buf[512];
        cell x = row ? row[c] : (cell){ t->col[c].title, SES_BOLD };
        const char *text = clip_text(buf, x.text, width[c]);
        int pad = (int)(width[c] - ses_text_width(text));
        if (!first) pending += GAP;
        first = false;
        if (t->col[c].right) pending += pad;
        put(f, term, text, x.style, &pending);
        if (!t->col[c].right) pending += pad;
    }
    putc('\n', f);
}

bool ses_text_table_print(const ses_text_table *t, FILE *f, const ses_term *term, int indent, ses_err *e)
{
    if (t->err.code) return ses_fail(e, t->err.code, "%s", t->err.msg);
    assert(t->n % t->n_cols == 0); /* complete rows */
    size_t *width = ses_alloc_array(t->n_cols, sizeof *width, e);
    if (!width) return false;
    size_t titles = 0;
    for (size_t c = 0; c < t->n_cols; c++) {
        width[c] = column_width(t, c);
        titles += strlen(t->col[c].title);
    }
    if (titles) put_row(t, f, term, NULL, width, indent);
    for (size_t i = 0; i < t->n; i += t->n_cols) put_row(t, f, term, t->cell + i, width, indent);
    ses_free(width);
    return true;
}
