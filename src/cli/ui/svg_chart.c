/* Line charts as SVG. */
#include "svg_chart.h"

#include "analysis/figure/chart_axes.h"
#include "analysis/figure/markup.h"

#include <math.h>
#include <string.h>

/* Sizes in CSS pixels at the usual width of a chart. POINTS: bins of a long line; DOTS: shorter lines have
 * dots; SMOOTHED: lines of at least as many points are smoothed. */
enum { WIDTH = 344, HEIGHT = 216, LEFT = 46, RIGHT = 16, TOP = 24, BOTTOM = 38, POINTS = 240, DOTS = 25 };
enum { SMOOTHED = 30 };

typedef struct range {
    double low, high;
} range;

/* A line in at most POINTS bins of neighboring points. */
typedef struct bins {
    double step[POINTS], mean[POINTS], low[POINTS], high[POINTS], smooth[POINTS]; /* NaN: no finite value */
    size_t n, each;                                                               /* points per bin */
    bool is_smoothed;
} bins;

static void fill_bins(bins *b, const ses_series *s)
{
    b->each = s->n / POINTS + (s->n % POINTS != 0);
    b->n = (s->n + b->each - 1) / b->each;
    for (size_t i = 0; i < b->n; i++) {
        double sum = 0, steps = 0, count = 0, all = 0;
        b->low[i] = INFINITY, b->high[i] = -INFINITY;
        for (size_t k = i * b->each; k < s->n && k < (i + 1) * b->each; k++, all++) {
            steps += s->step[k];
            if (!isfinite(s->value[k])) continue;
            sum += s->value[k], count++;
            b->low[i] = fmin(b->low[i], s->value[k]), b->high[i] = fmax(b->high[i], s->value[k]);
        }
        b->step[i] = steps / all;
        b->mean[i] = b->smooth[i] = count > 0 ? sum / count : NAN;
    }
}

/* Weighted means of neighbors: a Gaussian of a fortieth of the line. Unlike an exponential mean, it has no
 * lag. */
static void smooth_bins(bins *b)
{
    double sigma = fmax(1.5, (double)b->n / 40);
    long reach = (long)(3 * sigma), n = (long)b->n;
    for (long i = 0; i < n; i++) {
        double sum = 0, weights = 0;
        for (long k = i - reach; k <= i + reach; k++) {
            if (k < 0 || k >= n || isnan(b->mean[k])) continue;
            double w = exp(-0.5 * (double)((k - i) * (k - i)) / (sigma * sigma));
            sum += w * b->mean[k], weights += w;
        }
        b->smooth[i] = isnan(b->mean[i]) ? NAN : sum / weights;
    }
    b->is_smoothed = true;
}

static void prepare(bins *b, const ses_chart *c, const ses_series *s)
{
    b->is_smoothed = false;
    fill_bins(b, s);
    if (c->smooth && s->n >= SMOOTHED) smooth_bins(b);
}

/* ---- axes ---- */

static void extend(range *r, double x)
{
    if (!isfinite(x)) return;
    r->low = fmin(r->low, x);
    r->high = fmax(r->high, x);
}

/* The faint values of a smoothed line count for half: outliers do not flatten the line. */
static void find_ranges(const ses_chart *c, range *x, range *y)
{
    range faint = { INFINITY, -INFINITY };
    *x = *y = faint;
    for (size_t i = 0; i < c->n; i++) {
        bins b;
        if (!c->line[i].series || !c->line[i].series->n) continue;
        prepare(&b, c, c->line[i].series);
        for (size_t k = 0; k < b.n; k++) {
            extend(x, b.step[k]);
            extend(y, b.smooth[k]);
            extend(&faint, b.low[k]), extend(&faint, b.high[k]);
        }
    }
    double extent = y->high - y->low;
    y->low = fmax(faint.low, y->low - extent / 2), y->high = fmin(faint.high, y->high + extent / 2);
}

static double svg_x(range r, double x)
{
    return LEFT + (x - r.low) / (r.high - r.low) * (WIDTH - LEFT - RIGHT);
}

static double svg_y(range r, double y)
{
    double inside = fmin(fmax(y, r.low), r.high);
    return HEIGHT - BOTTOM - (inside - r.low) / (r.high - r.low) * (HEIGHT - TOP - BOTTOM);
}

static void put_axes(ses_buf *out, const ses_chart *c, range x, range y)
{
    ses_chart_ticks t = ses_chart_find_ticks(y.low, y.high, 4, 0);
    for (int i = 0; i < t.n; i++) {
        double v = (t.first + i) * t.step, at = svg_y(y, v);
        ses_buf_appendf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" class=\"y\">",
                        LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4);
        ses_chart_tick_put(out, v, t.step);
        ses_buf_puts(out, "</text>");
    }
    t = ses_chart_find_ticks(x.low, x.high, 5, 1);
    for (int i = 0; i < t.n; i++) {
        double v = (t.first + i) * t.step;
        ses_buf_appendf(out, "<text x=\"%.1f\" y=\"%d\" class=\"x\">", svg_x(x, v), HEIGHT - BOTTOM + 16);
        ses_chart_tick_put(out, v, t.step);
        ses_buf_puts(out, "</text>");
    }
    ses_buf_appendf(out, "<path class=\"axis\" d=\"M%d %dH%d\"/>", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT);
    ses_buf_appendf(out, "<text x=\"%d\" y=\"%d\" class=\"x label\">", (LEFT + WIDTH - RIGHT) / 2,
                    HEIGHT - 4);
    ses_html_text(out, c->x_label);
    ses_buf_puts(out, "</text><text x=\"2\" y=\"12\" class=\"label\">");
    ses_html_text(out, c->y_label);
    ses_buf_puts(out, "</text>");
}

/* ---- lines ---- */

static void put_point(ses_buf *out, bool *in_path, double x, double y)
{
    ses_buf_appendf(out, "%c%.1f %.1f", *in_path ? 'L' : 'M', x, y);
    *in_path = true;
}

static void put_path(ses_buf *out, const char *class, const bins *b, bool smooth, range x, range y)
{
    bool in_path = false;
    ses_buf_appendf(out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < b->n; i++) {
        if (isnan(b->mean[i])) {
            in_path = false;
            continue;
        }
        double at = svg_x(x, b->step[i]);
        if (smooth || b->each == 1) {
            put_point(out, &in_path, at, svg_y(y, smooth ? b->smooth[i] : b->mean[i]));
        } else { /* several values: their range */
            put_point(out, &in_path, at, svg_y(y, b->low[i]));
            put_point(out, &in_path, at, svg_y(y, b->high[i]));
        }
    }
    ses_buf_puts(out, "\"/>");
}

static void put_line(ses_buf *out, const ses_chart *c, const ses_chart_line *l, range x, range y)
{
    bins b;
    size_t color = l->color % SES_CHART_COLORS;
    prepare(&b, c, l->series);
    ses_buf_appendf(out, "<g stroke=\"var(--c%zu)\" fill=\"var(--c%zu)\"><title>", color, color);
    ses_html_text(out, l->name);
    ses_buf_puts(out, "</title>");
    if (b.is_smoothed) put_path(out, "raw", &b, false, x, y);
    put_path(out, "line", &b, true, x, y);
    for (size_t i = 0; l->series->n <= DOTS && i < b.n; i++)
        if (!isnan(b.mean[i]))
            ses_buf_appendf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\"/>", svg_x(x, b.step[i]),
                            svg_y(y, b.mean[i]));
    ses_buf_puts(out, "</g>");
}

/* The title, and the last value of a single line. */
static void put_caption(ses_buf *out, const ses_chart *c)
{
    ses_buf_puts(out, "<figcaption><span class=\"title\">");
    ses_html_text(out, c->title);
    ses_buf_puts(out, "</span>");
    const ses_series *s = c->n == 1 ? c->line[0].series : NULL;
    if (s && s->n) {
        ses_buf_puts(out, "<span class=\"last\">last ");
        ses_chart_tick_put(out, s->value[s->n - 1], 0);
        ses_buf_puts(out, "</span>");
    }
    ses_buf_puts(out, "</figcaption>");
}

void ses_chart_put(ses_buf *out, const ses_chart *c)
{
    range x, y;
    bool smoothed = false;
    find_ranges(c, &x, &y);
    if (!(x.low <= x.high) || !(y.low <= y.high)) return;
    double pad = y.high > y.low ? 0.05 * (y.high - y.low) : fmax(fabs(y.high) * 0.1, 1e-6);
    y = (range){ ses_chart_low_end(y.low, pad), y.high + pad };
    x.low = fmin(x.low, 0);
    if (x.high <= x.low) x.high = x.low + 1;
    ses_buf_puts(out, "<figure>");
    put_caption(out, c);
    ses_buf_appendf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    ses_html_text(out, c->title);
    ses_buf_puts(out, "\">");
    put_axes(out, c, x, y);
    for (size_t i = 0; i < c->n; i++) {
        if (!c->line[i].series || !c->line[i].series->n) continue;
        put_line(out, c, &c->line[i], x, y);
        smoothed |= c->smooth && c->line[i].series->n >= SMOOTHED;
    }
    ses_buf_puts(out, "</svg>");
    if (smoothed) ses_buf_puts(out, "<p class=\"note\">Line: smoothed. Faint: every update.</p>");
    ses_buf_puts(out, "</figure>\n");
}
