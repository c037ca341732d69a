/* Line charts as SVG. */
#include "svg_chart.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 250, LEFT = 62, RIGHT = 12, TOP = 30, BOTTOM = 30, POINTS = 320, DOTS = 40 };

void ses_html_text(ses_buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        switch (c) {
        case '&': ses_buf_puts(out, "&amp;"); break;
        case '<': ses_buf_puts(out, "&lt;"); break;
        case '>': ses_buf_puts(out, "&gt;"); break;
        case '"': ses_buf_puts(out, "&quot;"); break;
        case '\'': ses_buf_puts(out, "&#39;"); break;
        default: ses_buf_put(out, c < 0x20 || c == 0x7F ? ' ' : (char)c);
        }
    }
}

typedef struct range {
    double low, high;
} range;

static range find_range(const ses_chart_line *line, size_t n, bool steps)
{
    range r = { INFINITY, -INFINITY };
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; line[i].series && k < line[i].series->n; k++) {
            double x = steps ? line[i].series->step[k] : line[i].series->value[k];
            if (!isfinite(x)) continue;
            r.low = fmin(r.low, x);
            r.high = fmax(r.high, x);
        }
    return r;
}

double ses_chart_tick_step(double extent, int parts)
{
    double raw = extent / parts, unit = pow(10, floor(log10(raw))), x = raw / unit;
    return unit * (x < 1.5 ? 1 : x < 3.5 ? 2 : x < 7.5 ? 5 : 10);
}

static double svg_x(range r, double x)
{
    return LEFT + (x - r.low) / (r.high - r.low) * (WIDTH - LEFT - RIGHT);
}

static double svg_y(range r, double y)
{
    return HEIGHT - BOTTOM - (y - r.low) / (r.high - r.low) * (HEIGHT - TOP - BOTTOM);
}

/* Rounds values near zero to 0, never -0. */
static double snap_zero(double x, double step) { return fabs(x) < 1e-9 * step ? 0 : x; }

static void put_axes(ses_buf *out, range x, range y)
{
    double step = ses_chart_tick_step(y.high - y.low, 4);
    for (double v = ceil(y.low / step - 1e-9) * step; v <= y.high + 1e-9 * step; v += step) {
        double at = svg_y(y, v);
        ses_buf_appendf(
            out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" class=\"y\">%.4g</text>",
            LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4, snap_zero(v, step));
    }
    step = fmax(1, ses_chart_tick_step(x.high - x.low, 6));
    for (double v = ceil(x.low / step - 1e-9) * step; v <= x.high + 1e-9 * step; v += step)
        ses_buf_appendf(out, "<text x=\"%.1f\" y=\"%d\" class=\"x\">%.6g</text>", svg_x(x, v), HEIGHT - 10,
                        snap_zero(v, step));
}

/* Neighboring points are averaged if there are more than POINTS. */
static void put_line(ses_buf *out, const ses_chart_line *l, range x, range y)
{
    const ses_series *s = l->series;
    size_t each = (s->n + POINTS - 1) / POINTS, color = l->color % SES_CHART_COLORS;
    bool in_path = false;
    ses_buf_appendf(out, "<g stroke=\"var(--c%zu)\" fill=\"var(--c%zu)\"><title>", color, color);
    ses_html_text(out, l->name);
    ses_buf_puts(out, "</title><path class=\"line\" d=\"");
    for (size_t i = 0; i < s->n; i += each) {
        double step = 0, value = 0, n = 0;
        for (size_t k = i; k < s->n && k < i + each; k++, n++) step += s->step[k], value += s->value[k];
        if (!isfinite(value)) {
            in_path = false;
            continue;
        }
        ses_buf_appendf(out, "%c%.1f %.1f", in_path ? 'L' : 'M', svg_x(x, step / n), svg_y(y, value / n));
        in_path = true;
    }
    ses_buf_puts(out, "\"/>");
    for (size_t i = 0; s->n <= DOTS && i < s->n; i++)
        if (isfinite(s->value[i]))
            ses_buf_appendf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", svg_x(x, s->step[i]),
                            svg_y(y, s->value[i]));
    ses_buf_puts(out, "</g>");
}

void ses_chart_put(ses_buf *out, const char *title, const ses_chart_line *line, size_t n)
{
    range x = find_range(line, n, true), y = find_range(line, n, false);
    if (!(x.low <= x.high) || !(y.low <= y.high)) return;
    double pad = y.high > y.low ? 0.05 * (y.high - y.low) : fmax(fabs(y.high) * 0.1, 1e-6);
    y = (range){ y.low - pad, y.high + pad };
    x.low = fmin(x.low, 0);
    if (x.high <= x.low) x.high = x.low + 1;
    ses_buf_appendf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><text x=\"%d\" y=\"16\" class=\"title\">",
                    WIDTH, HEIGHT, LEFT);
    ses_html_text(out, title);
    ses_buf_puts(out, "</text>");
    put_axes(out, x, y);
    for (size_t i = 0; i < n; i++)
        if (line[i].series) put_line(out, &line[i], x, y);
    ses_buf_puts(out, "</svg>\n");
}
