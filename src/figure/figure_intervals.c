/* Names with values and intervals on a common axis. */
#include "figure.h"

#include "chart_axes.h"
#include "markup.h"

#include <math.h>

enum { ROW = 22, MAX_LEFT = 260, RIGHT = 64, AXIS_ROW = 22, MAX_NAME = 36 };

typedef struct intervals {
    ses_figure_intervals x;
    double low, high; /* ends of the axis */
} intervals;

static double position(const intervals *v, double x) { return (x - v->low) / (v->high - v->low); }

/* ---- text ---- */

static void put_row(const intervals *v, int64_t i, int cols, const ses_draw *d, ses_buf *out)
{
    const ses_figure_intervals *x = &v->x;
    if (!isfinite(x->value[i])) return;
    int at = (int)(position(v, x->value[i]) * (cols - 1) + 0.5), from = at, to = at;
    if (isfinite(x->low[i])) {
        from = (int)(position(v, x->low[i]) * (cols - 1) + 0.5);
        to = (int)(position(v, x->high[i]) * (cols - 1) + 0.5);
    }
    ses_draw_cell(out, "", from, false);
    ses_draw_hue(out, d, 0);
    for (int k = from; k <= to; k++) {
        const char *mark = d->unicode ? "\xE2\x94\x80" : "-"; /* a horizontal line */
        if (k == from || k == to) mark = d->unicode ? k == from ? "\xE2\x94\x9C" : "\xE2\x94\xA4" : "|";
        if (k == at) mark = d->unicode ? "\xE2\x97\x8F" : "o";
        ses_buf_puts(out, mark);
    }
    ses_draw_plain(out, d);
}

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const intervals *v = f->data;
    int left = 0;
    char number[24];
    for (int64_t i = 0; i < v->x.n; i++) {
        int width = ses_draw_width(v->x.name[i]);
        if (width > left) left = width < MAX_NAME ? width : MAX_NAME;
    }
    int cols = d->width - left - 14;
    if (cols > 60) cols = 60;
    if (cols < 12) cols = 12;
    for (int64_t i = 0; i < v->x.n; i++) {
        ses_draw_cell(out, v->x.name[i], left, false);
        ses_buf_puts(out, "  ");
        ses_draw_cell(out, ses_draw_number(number, v->x.value[i]), 8, true);
        ses_buf_puts(out, "  ");
        put_row(v, i, cols, d, out);
        ses_buf_put(out, '\n');
    }
    ses_draw_dim(out, d);
    ses_draw_cell(out, "", left + 12, false);
    const char *low = ses_draw_number(number, v->low);
    int used = ses_draw_width(low);
    ses_buf_puts(out, low);
    ses_draw_cell(out, ses_draw_number(number, v->high), cols - used, true);
    ses_draw_plain(out, d);
    ses_buf_put(out, '\n');
}

/* ---- SVG ---- */

static double left_of(const intervals *v)
{
    double left = 40;
    for (int64_t i = 0; i < v->x.n; i++) left = fmax(left, ses_svg_text_width(v->x.name[i]) + 16);
    return fmin(left, MAX_LEFT);
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const intervals *v = f->data;
    double left = left_of(v), full = width - left - RIGHT, bottom = (double)(v->x.n * ROW);
    char number[24];
    ses_chart_ticks t = ses_chart_find_ticks(v->low, v->high, 6, 0);
    for (int i = 0; i < t.n; i++) {
        double at = (t.first + i) * t.step, x = left + position(v, at) * full;
        ses_buf_appendf(out,
                        "<path class=\"g\" d=\"M%.1f 0V%.1f\"/><text x=\"%.1f\" y=\"%.1f\" class=\"d m\">", x,
                        bottom + 2, x, bottom + 16);
        ses_chart_tick_put(out, at, t.step);
        ses_buf_puts(out, "</text>");
    }
    for (int64_t i = 0; i < v->x.n; i++) {
        double y = (double)(i * ROW) + ROW / 2.0, value = v->x.value[i], low = v->x.low[i],
               high = v->x.high[i];
        ses_svg_text(out, left - 8, y + 4, "t e", v->x.name[i]);
        if (!isfinite(value)) continue;
        double x = left + position(v, value) * full;
        if (isfinite(low) && isfinite(high)) {
            double a = left + position(v, low) * full, b = left + position(v, high) * full;
            ses_buf_appendf(out,
                            "<path class=\"l s0\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"><title>%.5g "
                            "to %.5g</title></path>",
                            a, y, b, a, y - 4, b, y - 4, low, high);
        }
        ses_buf_appendf(out, "<circle class=\"f0\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>", x, y);
        ses_html_text(out, v->x.name[i]);
        ses_buf_appendf(out, ": %.5g</title></circle>", value);
        ses_svg_text(out, width - RIGHT + 10, y + 4, "d", ses_draw_number(number, value));
    }
    return bottom + AXIS_ROW;
}

static const ses_figure_kind kind = { text, svg, NULL };

/* The axis spans all values and intervals, with a margin. */
static void find_axis(intervals *v)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < v->x.n; i++) {
        const double x[] = { v->x.value[i], v->x.low[i], v->x.high[i] };
        for (size_t k = 0; k < SES_LEN(x); k++)
            if (isfinite(x[k])) low = fmin(low, x[k]), high = fmax(high, x[k]);
    }
    if (!(low <= high)) low = 0, high = 1;
    double margin = fmax(0.04 * (high - low), 1e-3 * fmax(fabs(high), 1e-6));
    v->low = ses_chart_low_end(low, margin);
    v->high = high + margin;
}

ses_figure *ses_report_intervals(ses_report *r, const char *title, const ses_figure_intervals *x)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(intervals));
    if (!f) return NULL;
    intervals *v = f->data;
    size_t n = (size_t)x->n;
    v->x.name = ses_figure_strings(r, x->name, x->n);
    v->x.value = ses_figure_copy(r, x->value, n, sizeof *x->value);
    v->x.low = ses_figure_copy(r, x->low, n, sizeof *x->low);
    v->x.high = ses_figure_copy(r, x->high, n, sizeof *x->high);
    v->x.n = v->x.name && v->x.value && v->x.low && v->x.high ? x->n : 0;
    find_axis(v);
    return f;
}
