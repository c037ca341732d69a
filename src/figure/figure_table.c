/* Tables. */
#include "figure.h"

#include "markup.h"

#include <string.h>

typedef struct cell {
    const char *text;
    int64_t line; /* the curve it names, from 1; 0: none */
} cell;

typedef struct table {
    const char *columns;
    size_t n_columns;
    cell *cell;
    size_t n, cap;
} table;

typedef struct column {
    char title[64];
    bool right;
    const char *style; /* class of its cells, "" */
    int width;
} column;

enum { LONG_CELL = 40, MAX_COLUMNS = 32, GAP = 2, ROW = 20 };

/* The class of a column by the first character of its title; NULL: the character is of the title. */
static const char *style_of(char first)
{
    switch (first) {
    case '>': return "n";
    case '`': return "c";
    case '+': return "good";
    case '-': return "bad";
    default: return NULL;
    }
}

/* Titles, styles and widths; returns their number. */
static size_t columns_of(const table *t, column col[MAX_COLUMNS])
{
    const char *item;
    size_t len, n = 0;
    for (; n < MAX_COLUMNS && ses_list_at(t->columns, n, &item, &len); n++) {
        const char *style = len ? style_of(*item) : NULL;
        if (style) item++, len--;
        col[n].style = style ? style : "";
        col[n].right = style && *style == 'n';
        if (len >= sizeof col[n].title) len = sizeof col[n].title - 1;
        memcpy(col[n].title, item, len);
        col[n].title[len] = 0;
        col[n].width = ses_draw_width(col[n].title);
        for (size_t i = n; i < t->n; i += t->n_columns) {
            int width = ses_draw_width(t->cell[i].text);
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
        ses_draw_cell(out, col[i].title, col[i].width, col[i].right);
    }
    ses_draw_plain(out, d);
    for (size_t i = 0; i < t->n; i++) {
        ses_buf_puts(out, i % n ? "  " : "\n");
        bool last = i % n + 1 == n && !col[i % n].right;
        int width = col[i % n].width, own = ses_draw_width(t->cell[i].text);
        ses_draw_cell(out, t->cell[i].text, last && own < width ? own : width, col[i % n].right);
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
        ses_svg_text(out, c->right ? x[i % n + 1] - 18 : x[i % n], y + 2, c->right ? "t e" : "t",
                     t->cell[i].text);
    }
    return y + 10;
}

static void put_html_titles(const column *col, size_t n, ses_buf *out)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) any |= *col[i].title != 0;
    if (!any) return;
    ses_buf_puts(out, "<thead><tr>");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(out, col[i].right ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">");
        ses_html_text(out, col[i].title);
        ses_buf_puts(out, "</th>");
    }
    ses_buf_puts(out, "</tr></thead>");
}

static void put_html_cell(const cell *x, const column *c, bool is_card, ses_buf *out)
{
    bool code = *c->style == 'c', is_long = !c->right && !code && strlen(x->text) > LONG_CELL;
    ses_buf_puts(out, "<td");
    if (*c->style || is_long)
        ses_buf_appendf(out, " class=\"%s%s%s\"", c->style, *c->style && is_long ? " " : "",
                        is_long ? "long" : "");
    if (is_card && *c->title) {
        ses_buf_puts(out, " data-label=\"");
        ses_html_text(out, c->title);
        ses_buf_put(out, '"');
    }
    ses_buf_puts(out, code && *x->text ? "><code>" : ">");
    if (x->line)
        ses_buf_appendf(out, "<span class=\"key\" style=\"background:var(--c%d)\"></span>",
                        (int)((x->line - 1) % SES_HUES));
    ses_html_text(out, x->text);
    ses_buf_puts(out, code && *x->text ? "</code></td>" : "</td>");
}

static void html(const ses_figure *f, ses_buf *out)
{
    const table *t = f->data;
    column col[MAX_COLUMNS];
    bool is_card = f->show & SES_SHOW_CARDS;
    size_t n = columns_of(t, col);
    ses_buf_puts(out, "<div class=\"wide\" tabindex=\"0\"><table");
    ses_buf_puts(out, is_card ? " class=\"cards\">" : ">");
    put_html_titles(col, n, out);
    ses_buf_puts(out, "<tbody>");
    for (size_t i = 0; i < t->n; i++) {
        if (i % n == 0) ses_buf_puts(out, i ? "</tr>\n<tr>" : "<tr>");
        put_html_cell(&t->cell[i], &col[i % n], is_card, out);
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
        cell *more = ses_figure_alloc(f->report, cap, sizeof *more);
        if (more && t->n) memcpy(more, t->cell, t->n * sizeof *more);
        if (more) t->cell = more, t->cap = cap;
    }
    char *copy = ses_figure_string(f->report, text_.data ? text_.data : "");
    if (copy && t->n < t->cap) t->cell[t->n++].text = copy;
    ses_buf_free(&text_);
}

void ses_figure_cell_key(ses_figure *f, int64_t line)
{
    table *t = f ? f->data : NULL;
    if (t && t->n) t->cell[t->n - 1].line = line + 1;
}
