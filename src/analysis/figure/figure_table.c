/* Tables. */
#include "figure.h"

#include "analysis/figure/markup.h"

#include <string.h>

typedef struct table {
    const char *columns;
    size_t n_columns;
    const char **cell;
    size_t n, cap;
} table;

typedef struct column {
    char title[64];
    bool right;
    int width;
} column;

enum { LONG_CELL = 40, MAX_COLUMNS = 32, GAP = 2, ROW = 20 };

/* Titles, alignment and widths; returns their number. */
static size_t columns_of(const table *t, column col[MAX_COLUMNS])
{
    const char *item;
    size_t len, n = 0;
    for (; n < MAX_COLUMNS && ses_list_at(t->columns, n, &item, &len); n++) {
        col[n].right = len && *item == '>';
        if (col[n].right) item++, len--;
        if (len >= sizeof col[n].title) len = sizeof col[n].title - 1;
        memcpy(col[n].title, item, len);
        col[n].title[len] = 0;
        col[n].width = ses_draw_width(col[n].title);
        for (size_t i = n; i < t->n; i += t->n_columns) {
            int width = ses_draw_width(t->cell[i]);
            if (width > col[n].width) col[n].width = width;
        }
    }
    return n;
}

/* Makes the widest left-aligned column narrower until the row fits. */
static void fit(column *col, size_t n, int width)
{
    enum { LEAST = 12 };
    int total = GAP * (int)(n - 1);
    for (size_t i = 0; i < n; i++) total += col[i].width;
    while (total > width) {
        size_t widest = n;
        for (size_t i = 0; i < n; i++)
            if (!col[i].right && col[i].width > LEAST && (widest == n || col[i].width > col[widest].width))
                widest = i;
        if (widest == n) return;
        int less = total - width < col[widest].width - LEAST ? total - width : col[widest].width - LEAST;
        col[widest].width -= less, total -= less;
    }
}

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const table *t = f->data;
    column col[MAX_COLUMNS];
    size_t n = columns_of(t, col);
    fit(col, n, d->width);
    ses_draw_dim(out, d);
    for (size_t i = 0; i < n; i++) {
        if (i) ses_buf_puts(out, "  ");
        ses_draw_cell(out, col[i].title, i + 1 < n || col[i].right ? col[i].width : col[i].width,
                      col[i].right);
    }
    ses_draw_plain(out, d);
    for (size_t i = 0; i < t->n; i++) {
        ses_buf_puts(out, i % n ? "  " : "\n");
        bool last = i % n + 1 == n && !col[i % n].right;
        int width = col[i % n].width, own = ses_draw_width(t->cell[i]);
        ses_draw_cell(out, t->cell[i], last && own < width ? own : width, col[i % n].right);
    }
    ses_buf_put(out, '\n');
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const table *t = f->data;
    column col[MAX_COLUMNS];
    size_t n = columns_of(t, col);
    double x[MAX_COLUMNS + 1] = { 0 }, y = 14;
    for (size_t i = 0; i < n; i++) x[i + 1] = x[i] + 6.9 * col[i].width + 18;
    for (size_t i = 0; i < n; i++)
        ses_svg_text(out, col[i].right ? x[i + 1] - 18 : x[i], y, col[i].right ? "d e" : "d", col[i].title);
    ses_buf_appendf(out, "<path class=\"g\" d=\"M0 %.1fH%.1f\"/>", y + 6, x[n] < width ? x[n] : width);
    for (size_t i = 0; i < t->n; i++) {
        if (i % n == 0) y += ROW;
        const column *c = &col[i % n];
        ses_svg_text(out, c->right ? x[i % n + 1] - 18 : x[i % n], y + 2, c->right ? "t e" : "t", t->cell[i]);
    }
    return y + 10;
}

static void html(const ses_figure *f, ses_buf *out)
{
    const table *t = f->data;
    column col[MAX_COLUMNS];
    size_t n = columns_of(t, col);
    ses_buf_puts(out, "<div class=\"wide\" tabindex=\"0\"><table><thead><tr>");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(out, col[i].right ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">");
        ses_html_text(out, col[i].title);
        ses_buf_puts(out, "</th>");
    }
    ses_buf_puts(out, "</tr></thead><tbody>");
    for (size_t i = 0; i < t->n; i++) {
        if (i % n == 0) ses_buf_puts(out, i ? "</tr><tr>" : "<tr>");
        bool is_long = strlen(t->cell[i]) > LONG_CELL;
        ses_buf_puts(out, col[i % n].right ? "<td class=\"n\">" : is_long ? "<td class=\"long\">" : "<td>");
        ses_html_text(out, t->cell[i]);
        ses_buf_puts(out, "</td>");
    }
    ses_buf_puts(out, t->n ? "</tr></tbody></table></div>" : "</tbody></table></div>");
}

static const ses_figure_kind kind = { text, svg, html };

ses_figure *ses_report_table(ses_report *r, const char *title, const char *columns)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(table));
    if (!f) return NULL;
    table *t = f->data;
    t->columns = ses_figure_string(r, columns);
    t->n_columns = ses_list_len(columns);
    return t->columns ? f : NULL;
}

void ses_figure_cell(ses_figure *f, const char *fmt, ...)
{
    if (!f) return;
    table *t = f->data;
    ses_buf text_ = { 0 };
    va_list ap;
    va_start(ap, fmt);
    ses_buf_vappendf(&text_, fmt, ap);
    va_end(ap);
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        const char **cell = ses_figure_alloc(f->report, cap, sizeof *cell);
        if (cell && t->n) memcpy(cell, t->cell, t->n * sizeof *cell);
        if (cell) t->cell = cell, t->cap = cap;
    }
    char *copy = ses_figure_string(f->report, text_.data ? text_.data : "");
    if (copy && t->n < t->cap) t->cell[t->n++] = copy;
    ses_buf_free(&text_);
}
