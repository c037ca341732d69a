/* Small maps in rows and columns: every head of every layer. */
#include "figure.h"
#include "markup.h"

#include <math.h>
#include <string.h>

enum { MIN_COLUMNS = 4, MAX_COLUMNS = 14, GAP = 4, LEFT = 28, TOP = 18, MAX_SIDE = 120, LEVELS = 10 };

static const float *map_at(const ses_figure_thumbnails *t, int64_t row, int64_t col)
{
    const float *m = t->value + (row * t->cols + col) * t->map_rows * t->map_cols;
    return isnan(m[0]) ? NULL : m;
}

/* The largest value of a cell in a picture of `rows` x `cols` cells. */
static double cell_of(const ses_figure_thumbnails *t, const float *m, int64_t i, int64_t rows, int64_t j,
                      int64_t cols)
{
    int64_t i0 = i * t->map_rows / rows, i1 = (i + 1) * t->map_rows / rows, j0 = j * t->map_cols / cols,
            j1 = (j + 1) * t->map_cols / cols;
    double most = 0;
    for (int64_t a = i0; a < (i1 > i0 ? i1 : i0 + 1); a++)
        for (int64_t b = j0; b < (j1 > j0 ? j1 : j0 + 1); b++)
            most = fmax(most, (double)m[a * t->map_cols + b]);
    return most;
}

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const ses_figure_thumbnails *t = f->data;
    int width = t->cols ? (int)((d->width - 4) / t->cols) - 1 : MAX_COLUMNS;
    width = width < MIN_COLUMNS ? MIN_COLUMNS : width > MAX_COLUMNS ? MAX_COLUMNS : width;
    int lines = (width + 1) / 2;
    ses_draw_dim(out, d);
    ses_draw_cell(out, "", 4, false);
    for (int64_t k = 0; k < t->cols; k++) {
        ses_draw_cell(out, t->col_name[k], width, false);
        ses_buf_put(out, ' ');
    }
    ses_draw_plain(out, d);
    ses_buf_put(out, '\n');
    for (int64_t r = 0; r < t->rows; r++) {
        for (int line = 0; line < lines; line++) {
            ses_draw_dim(out, d);
            ses_draw_cell(out, line ? "" : t->row_name[r], 3, true);
            ses_draw_plain(out, d);
            for (int64_t k = 0; k < t->cols; k++) {
                const float *m = map_at(t, r, k);
                ses_buf_put(out, ' ');
                for (int c = 0; c < width; c++)
                    ses_draw_shade(out, d, m ? pow(cell_of(t, m, line, lines, c, width), 0.85) : 0, 1);
            }
            ses_buf_put(out, '\n');
        }
        if (r + 1 < t->rows) ses_buf_put(out, '\n');
    }
    ses_buf_appendf(out, "(%s down, %s across; in each, rows read columns)\n", t->row_label, t->col_label);
}

/* One path for each level of opacity, in cells. */
static void put_map(const ses_figure_thumbnails *t, const float *m, double x, double y, double side,
                    int64_t head, ses_buf *out)
{
    double cell = side / (double)(t->map_rows > t->map_cols ? t->map_rows : t->map_cols);
    ses_buf_appendf(out, "<rect class=\"g\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x, y,
                    cell * (double)t->map_cols, cell * (double)t->map_rows);
    ses_buf_appendf(out, "<g class=\"f%d\" transform=\"translate(%.1f %.1f) scale(%.3f)\">", (int)(head % 8),
                    x, y, cell);
    for (int level = 1; level <= LEVELS; level++) {
        bool any = false;
        for (int64_t i = 0; i < t->map_rows; i++)
            for (int64_t j = 0; j < t->map_cols; j++) {
                if ((int)(sqrt((double)m[i * t->map_cols + j]) * LEVELS + 0.5) != level) continue;
                if (!any) ses_buf_appendf(out, "<path fill-opacity=\"%.1f\" d=\"", (double)level / LEVELS);
                any = true;
                ses_buf_appendf(out, "M%d %dh1v1h-1z", (int)j, (int)i);
            }
        if (any) ses_buf_puts(out, "\"/>");
    }
    ses_buf_puts(out, "</g>");
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const ses_figure_thumbnails *t = f->data;
    double step = t->cols ? (width - LEFT) / (double)t->cols : width;
    if (step > MAX_SIDE + GAP) step = MAX_SIDE + GAP;
    for (int64_t k = 0; k < t->cols; k++)
        ses_svg_text(out, LEFT + step * (double)k + (step - GAP) / 2, 12, "d m", t->col_name[k]);
    for (int64_t r = 0; r < t->rows; r++) {
        double y = TOP + step * (double)r;
        ses_svg_text(out, LEFT - 6, y + step / 2, "d e", t->row_name[r]);
        for (int64_t k = 0; k < t->cols; k++) {
            const float *m = map_at(t, r, k);
            if (m) put_map(t, m, LEFT + step * (double)k, y, step - GAP, k, out);
        }
    }
    return TOP + step * (double)t->rows;
}

static void html(const ses_figure *f, ses_buf *out)
{
    const ses_figure_thumbnails *t = f->data;
    ses_buf_puts(out, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">");
    ses_html_text(out, t->row_label);
    for (int64_t k = 0; k < t->cols; k++) {
        ses_buf_puts(out, "</th><th scope=\"col\">");
        ses_html_text(out, t->col_label);
        ses_buf_put(out, ' ');
        ses_html_text(out, t->col_name[k]);
    }
    ses_buf_puts(out, "</th></tr></thead><tbody>\n");
    for (int64_t r = 0; r < t->rows; r++) {
        ses_buf_puts(out, "<tr><th scope=\"row\">");
        ses_html_text(out, t->row_name[r]);
        ses_buf_puts(out, "</th>");
        for (int64_t k = 0; k < t->cols; k++) {
            ses_buf_puts(out, "<td>");
            ses_html_text(out, t->label[r * t->cols + k]);
            ses_buf_puts(out, "</td>");
        }
        ses_buf_puts(out, "</tr>\n");
    }
    ses_buf_puts(out, "</tbody></table></div>");
}

static const ses_figure_kind kind = { text, svg, html };

ses_figure *ses_report_thumbnails(ses_report *r, const char *title, const ses_figure_thumbnails *t)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof *t);
    ses_figure_thumbnails *copy = f ? f->data : NULL;
    if (!copy) return NULL;
    size_t n = (size_t)(t->rows * t->cols);
    *copy = *t;
    copy->value = ses_figure_copy(r, t->value, n * (size_t)(t->map_rows * t->map_cols), sizeof *t->value);
    copy->row_name = ses_figure_strings(r, t->row_name, t->rows);
    copy->col_name = ses_figure_strings(r, t->col_name, t->cols);
    copy->label = ses_figure_strings(r, t->label, (int64_t)n);
    copy->row_label = ses_figure_string(r, t->row_label);
    copy->col_label = ses_figure_string(r, t->col_label);
    bool ok =
        copy->value && copy->row_name && copy->col_name && copy->label && copy->row_label && copy->col_label;
    if (!ok) copy->rows = copy->cols = 0;
    return f;
}
