/* A matrix of colored cells. */
#include "figure.h"

#include "markup.h"

#include <math.h>
#include <string.h>

enum {
    MAX_NAME = 14,
    MAX_SVG_NAME = 24,
    LEFT = 96,
    TOP = 20,
    CELL_HEIGHT = 20,
    TWO_LINES = 44,
    MIN_HEIGHT = 3,
    MIN_TEXT = 5,
    MAX_TEXT = 12
};

static const char *name_of(const char *const *name, int64_t i, char buf[24])
{
    if (name) return name[i];
    snprintf(buf, 24, "%lld", (long long)i);
    return buf;
}

static double max_abs_in(const ses_figure_matrix *m, int64_t row, int64_t col, int64_t block)
{
    double best = NAN;
    for (int64_t i = row; i < row + block && i < m->rows; i++)
        for (int64_t j = col; j < col + block && j < m->cols; j++) {
            double x = (double)m->value[i * m->cols + j];
            if (isnan(best) || fabs(x) > fabs(best)) best = x;
        }
    return best;
}

/* The text of a cell on its shade, and a space. */
static void draw_text_cell(const ses_figure_matrix *m, const ses_draw *d, int64_t i, int64_t j, double shade,
                           int width, ses_buf *out)
{
    ses_buf text = { 0 };
    ses_draw_cell(&text, m->cell[i * m->cols + j], width - 1, false);
    ses_draw_on_shade(out, d, shade, text.data ? text.data : "");
    ses_buf_put(out, ' ');
    ses_buf_free(&text);
}

/* Names of the axes, and behind the separator the range of the values. */
static void put_legend(const ses_figure_matrix *m, const ses_shades *s, const char *separator, ses_buf *out)
{
    char low[24], high[24];
    if (m->row_label && m->col_label)
        ses_buf_appendf(out, "rows: %s, columns: %s%s", m->row_label, m->col_label,
                        m->scale == SES_SCALE_MATCH ? "" : separator);
    if (m->scale == SES_SCALE_MATCH) return;
    ses_buf_appendf(out, "values %s to %s", ses_draw_number(low, s->low), ses_draw_number(high, s->high));
}

/* Wide matrices are drawn in blocks: the value of the largest size in each. */
static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const ses_figure_matrix *m = f->data;
    ses_shades s = ses_shades_of(m->scale, m->value, m->rows * m->cols);
    char buf[24];
    int left = 3;
    for (int64_t i = 0; i < m->rows; i++) {
        int width = ses_draw_width(name_of(m->row_name, i, buf));
        if (width > left) left = width < MAX_NAME ? width : MAX_NAME;
    }
    int64_t available = d->width - left - 1 > 8 ? d->width - left - 1 : 8,
            block = (m->cols + available - 1) / available;
    if (block < 1) block = 1;
    int width = (int)(available / ((m->cols + block - 1) / block + (m->cols == 0)));
    bool cells = m->cell && block == 1 && width >= MIN_TEXT;
    if (width > (cells ? MAX_TEXT : 6)) width = cells ? MAX_TEXT : 6;
    ses_draw_dim(out, d);
    ses_draw_cell(out, "", left + 1, false);
    for (int64_t j = 0; j < m->cols; j += block) {
        bool fits = width >= 2 || j / block % 10 == 0;
        ses_draw_cell(out, fits ? name_of(m->col_name, j, buf) : "", width, false);
    }
    ses_draw_plain(out, d);
    ses_buf_put(out, '\n');
    for (int64_t i = 0; i < m->rows; i += block) {
        ses_draw_cell(out, name_of(m->row_name, i, buf), left, true);
        ses_buf_put(out, ' ');
        for (int64_t j = 0; j < m->cols; j += block) {
            double shade = ses_shades_at(&s, max_abs_in(m, i, j, block));
            if (cells)
                draw_text_cell(m, d, i, j, shade, width, out);
            else
                ses_draw_shade(out, d, shade, width);
        }
        ses_buf_put(out, '\n');
    }
    ses_buf_put(out, '(');
    put_legend(m, &s, "; ", out);
    ses_buf_puts(out, ")\n");
}

/* ---- SVG ---- */

typedef struct grid {
    const ses_figure_matrix *m;
    ses_shades shades;
    double left, top, w, h; /* h, w: of a cell */
    int letters;            /* longest name of a row */
    bool is_upright;        /* names of columns that are wider than a cell */
} grid;

static int longest_name(const char *const *name, int64_t n)
{
    int longest = 0;
    for (int64_t i = 0; name && i < n; i++) {
        int width = ses_draw_width(name[i]);
        if (width > longest) longest = width;
    }
    return longest < MAX_SVG_NAME ? longest : MAX_SVG_NAME;
}

static bool has_two_lines(const ses_figure_matrix *m)
{
    for (int64_t i = 0; m->cell && i < m->rows * m->cols; i++)
        if (strchr(m->cell[i], '\n')) return true;
    return false;
}

static grid grid_of(const ses_figure_matrix *m, double width)
{
    static const double letter = 6.5, row_letter = 7.2, widest = 60, widest_of_two_lines = 96;
    bool two = has_two_lines(m);
    int row_name = m->row_name ? longest_name(m->row_name, m->rows) : 3,
        col_name = longest_name(m->col_name, m->cols);
    grid g = { .m = m, .shades = ses_shades_of(m->scale, m->value, m->rows * m->cols), .top = TOP };
    g.left = fmin(fmax(LEFT, 0.27 * width), 10 + row_letter * fmax(row_name, 3));
    g.letters = (int)((g.left - 6) / row_letter);
    g.w = fmin(m->cols ? (width - g.left) / (double)m->cols : 0, two ? widest_of_two_lines : widest);
    g.h = m->rows > 64 ? MIN_HEIGHT * 2 : two ? TWO_LINES : CELL_HEIGHT;
    g.is_upright = g.w >= 12 && letter * col_name > g.w;
    if (g.is_upright) g.top = 8 + letter * col_name;
    return g;
}

/* The legend in one line, or in two if it is too wide. Returns the y behind it. */
static double put_svg_legend(const grid *g, double width, double y, ses_buf *out)
{
    static const double letter = 6.5, line = 18; /* width of a letter, height of a line */
    ses_buf legend = { 0 };
    put_legend(g->m, &g->shades, "; ", &legend);
    bool fits = (double)legend.len * letter < width - g->left;
    if (!fits) legend.len = 0, put_legend(g->m, &g->shades, "\n", &legend);
    for (char *at = legend.data, *end; at; at = end, y += line) {
        end = strchr(at, '\n');
        if (end) *end++ = 0;
        ses_svg_text(out, fits ? g->left : 0, y + 16, "d", at);
    }
    ses_buf_free(&legend);
    return y + 4;
}

/* The text of a cell: at its left end, or in its middle in one or two lines. */
static void put_cell_text(const grid *g, const char *s, double x, double y, ses_buf *out)
{
    enum { SMALL_CELL = 28 };
    const char *second = strchr(s, '\n');
    char first[64];
    if (g->m->scale != SES_SCALE_MATCH) {
        ses_svg_text(out, x + 3, y + 14, "t", s);
        return;
    }
    snprintf(first, sizeof first, "%.*s", (int)(second ? second - s : (long)strlen(s)), s);
    ses_svg_text(out, x + g->w / 2, y + 4 + (second ? 13 : g->h / 2), g->w < SMALL_CELL ? "t m k" : "t m",
                 first);
    if (second) ses_svg_text(out, x + g->w / 2, y + g->h - 7, "d m k", second + 1);
}

static void put_cell(const grid *g, int64_t i, int64_t j, ses_buf *out)
{
    const ses_figure_matrix *m = g->m;
    double v = (double)m->value[i * m->cols + j], strength = ses_shades_at(&g->shades, v),
           opacity = ses_svg_opacity(fabs(strength)), x = g->left + g->w * (double)j,
           y = g->top + g->h * (double)i;
    bool other = strength < 0 || (m->scale == SES_SCALE_MATCH && i != j);
    char row[24], col[24];
    if (isnan(v)) return;
    if (m->scale == SES_SCALE_MATCH) opacity = 0.04 + 0.4 * opacity; /* the text stays readable */
    ses_buf_appendf(out,
                    "<rect class=\"f%d\" fill-opacity=\"%.3f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"%.1f\"%s><title>",
                    other, opacity, x, y, m->scale == SES_SCALE_MATCH ? g->w - 2 : g->w,
                    m->scale == SES_SCALE_MATCH ? g->h - 2 : g->h,
                    m->scale == SES_SCALE_MATCH ? " rx=\"4\"" : "");
    ses_html_text(out, name_of(m->row_name, i, row));
    ses_buf_puts(out, ", ");
    ses_html_text(out, name_of(m->col_name, j, col));
    ses_buf_appendf(out, ": %.4g</title></rect>", v);
    if (m->cell && g->w >= 14) put_cell_text(g, m->cell[i * m->cols + j], x, y, out);
}

/* The name in at most `most` letters. */
static void put_clipped(ses_buf *out, const char *s, int most)
{
    ses_buf name = { 0 };
    int width = ses_draw_width(s);
    ses_draw_cell(&name, s, width < most ? width : most, false);
    ses_html_text(out, name.data ? name.data : "");
    ses_buf_free(&name);
}

/* Names of columns; upright ones end at the matrix. */
static void put_col_names(const grid *g, ses_buf *out)
{
    int64_t step = g->w >= 24 || g->is_upright ? 1 : (int64_t)(24 / (g->w > 0 ? g->w : 1)) + 1;
    char buf[24];
    for (int64_t j = 0; j < g->m->cols; j += step) {
        double x = g->left + g->w * (double)j + 1;
        const char *full = name_of(g->m->col_name, j, buf);
        bool middle = g->m->scale == SES_SCALE_MATCH;
        if (g->is_upright)
            ses_buf_appendf(out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" class=\"d\">",
                            x + g->w / 2 + 3, g->top - 4);
        else
            ses_buf_appendf(out, "<text x=\"%.1f\" y=\"13\" class=\"%s\">", middle ? x + g->w / 2 : x,
                            middle ? "d m" : "d");
        put_clipped(out, full, g->is_upright ? MAX_SVG_NAME : (int)(g->w * (double)step / 6.5));
        ses_buf_puts(out, "</text>");
    }
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    enum { MAX_CELLS = 40000 };
    const ses_figure_matrix *m = f->data;
    if (m->rows * m->cols > MAX_CELLS) {
        ses_svg_text(out, 0, 14, "d", "The matrix is too large for a picture: see the page or the JSON.");
        return 20;
    }
    grid g = grid_of(m, width);
    int64_t row_step = g.h >= 12 ? 1 : 3;
    char buf[24];
    put_col_names(&g, out);
    for (int64_t i = 0; i < m->rows; i++) {
        if (i % row_step == 0) {
            ses_buf_appendf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"t e\">", g.left - 6,
                            g.top + g.h * ((double)i + 0.5) + 4);
            put_clipped(out, name_of(m->row_name, i, buf), g.letters);
            ses_buf_puts(out, "</text>");
        }
        for (int64_t j = 0; j < m->cols; j++) put_cell(&g, i, j, out);
    }
    return put_svg_legend(&g, width, g.top + g.h * (double)m->rows, out);
}

static const ses_figure_kind kind = { text, svg, NULL };

ses_figure *ses_report_heatmap(ses_report *r, const char *title, const ses_figure_matrix *m)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof *m);
    if (!f) return NULL;
    ses_figure_matrix *copy = f->data;
    size_t n = (size_t)(m->rows * m->cols);
    *copy = *m;
    copy->value = ses_figure_copy(r, m->value, n, sizeof *m->value);
    copy->row_name = ses_figure_strings(r, m->row_name, m->rows);
    copy->col_name = ses_figure_strings(r, m->col_name, m->cols);
    copy->cell = ses_figure_strings(r, m->cell, (int64_t)n);
    copy->row_label = ses_figure_string(r, m->row_label);
    copy->col_label = ses_figure_string(r, m->col_label);
    if (!copy->value) copy->rows = copy->cols = 0;
    return f;
}
