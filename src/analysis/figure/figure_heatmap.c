/* A matrix of colored cells. */
#include "figure.h"

#include "analysis/figure/markup.h"

#include <math.h>
#include <string.h>

enum { MAX_NAME = 14, LEFT = 96, TOP = 20, CELL_HEIGHT = 20, MIN_HEIGHT = 3, MIN_TEXT = 5, MAX_TEXT = 12 };

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

/* Wide matrices are drawn in blocks: the value of the largest size in each. */
/* Names of the axes, and behind the separator the range of the values. */
static void put_legend(const ses_figure_matrix *m, const ses_shades *s, const char *separator, ses_buf *out)
{
    char low[24], high[24];
    if (m->row_label && m->col_label)
        ses_buf_appendf(out, "rows: %s, columns: %s%s", m->row_label, m->col_label, separator);
    ses_buf_appendf(out, "values %s to %s", ses_draw_number(low, s->low), ses_draw_number(high, s->high));
}

/* The legend in one line, or in two if it is too wide. Returns the y behind it. */
static double put_svg_legend(const ses_figure_matrix *m, const ses_shades *s, double width, double y,
                             ses_buf *out)
{
    static const double letter = 6.5, line = 18; /* width of a letter, height of a line */
    ses_buf legend = { 0 };
    put_legend(m, s, "; ", &legend);
    bool fits = (double)legend.len * letter < width - LEFT;
    if (!fits) legend.len = 0, put_legend(m, s, "\n", &legend);
    for (char *at = legend.data, *end; at; at = end, y += line) {
        end = strchr(at, '\n');
        if (end) *end++ = 0;
        ses_svg_text(out, fits ? LEFT : 0, y + 16, "d", at);
    }
    ses_buf_free(&legend);
    return y + 4;
}

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

static void put_cell(const ses_figure_matrix *m, const ses_shades *s, int64_t i, int64_t j, double x,
                     double y, double w, double h, ses_buf *out)
{
    double v = (double)m->value[i * m->cols + j], strength = ses_shades_at(s, v);
    char row[24], col[24];
    if (isnan(v)) return;
    ses_buf_appendf(out,
                    "<rect class=\"f%d\" fill-opacity=\"%.3f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"%.1f\"><title>",
                    strength < 0, ses_svg_opacity(fabs(strength)), x, y, w, h);
    ses_html_text(out, name_of(m->row_name, i, row));
    ses_buf_puts(out, ", ");
    ses_html_text(out, name_of(m->col_name, j, col));
    ses_buf_appendf(out, ": %.4g</title></rect>", v);
    if (m->cell && w >= 14) ses_svg_text(out, x + 3, y + 14, "t", m->cell[i * m->cols + j]);
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    enum { MAX_CELLS = 40000 };
    const ses_figure_matrix *m = f->data;
    ses_shades s = ses_shades_of(m->scale, m->value, m->rows * m->cols);
    double w = m->cols ? (width - LEFT) / (double)m->cols : 0,
           h = m->rows > 64 ? MIN_HEIGHT * 2 : CELL_HEIGHT;
    char buf[24], short_name[64];
    if (w > 60) w = 60;
    int64_t step = w >= 24 ? 1 : (int64_t)(24 / (w > 0 ? w : 1)) + 1, row_step = h >= 12 ? 1 : 3;
    if (m->rows * m->cols > MAX_CELLS) {
        ses_svg_text(out, 0, 14, "d", "The matrix is too large for a picture: see the page or the JSON.");
        return 20;
    }
    for (int64_t j = 0; j < m->cols; j += step) {
        ses_buf name = { 0 };
        ses_draw_cell(&name, name_of(m->col_name, j, buf), (int)(w * (double)step / 6.5), false);
        snprintf(short_name, sizeof short_name, "%s", name.data ? name.data : "");
        ses_svg_text(out, LEFT + w * (double)j + 1, 13, "d", short_name);
        ses_buf_free(&name);
    }
    for (int64_t i = 0; i < m->rows; i++) {
        double y = TOP + h * (double)i;
        if (i % row_step == 0) {
            ses_buf name = { 0 };
            const char *full = name_of(m->row_name, i, buf);
            ses_draw_cell(&name, full, ses_draw_width(full) < MAX_NAME ? ses_draw_width(full) : MAX_NAME,
                          true);
            ses_svg_text(out, LEFT - 6, y + h / 2 + 4, "t e", name.data ? name.data : "");
            ses_buf_free(&name);
        }
        for (int64_t j = 0; j < m->cols; j++) put_cell(m, &s, i, j, LEFT + w * (double)j, y, w, h, out);
    }
    return put_svg_legend(m, &s, width, TOP + h * (double)m->rows, out);
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
