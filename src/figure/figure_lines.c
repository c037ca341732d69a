/* Curves over a common axis, with intervals. */
#include "chart_axes.h"
#include "figure.h"

#include "markup.h"

#include <math.h>
#include <string.h>

enum {
    HEIGHT = 240,
    LEFT = 48,
    RIGHT = 12,
    TOP = 24,
    BOTTOM = 36,
    KEY_ROW = 18,
    SMALL = 480,
    SMALL_HEIGHT = 216
};
enum { LETTERS = 26, DOTS = 32 }; /* in a text; curves of at most DOTS points have dots */
enum { BINS = 240 };              /* longer curves are drawn in bins of neighboring points */

typedef struct lines {
    const char *x_label, *y_label;
    ses_figure_series *line;
    int n, cap;
    bool log_x;
} lines;

typedef struct range {
    double low, high;
} range;

/* A curve as it is drawn. */
typedef struct trace {
    const double *x, *y; /* [n]; y NaN: no point */
    int64_t n;
    bool is_binned, is_smooth;
    double bin_x[BINS], mean[BINS], low[BINS], high[BINS], smooth[BINS];
} trace;

/* Differences of drawn values are finite. */
static bool is_drawn(double x) { return fabs(x) < 1e300; }

static void extend(range *r, double x)
{
    if (is_drawn(x)) r->low = fmin(r->low, x), r->high = fmax(r->high, x);
}

/* ---- long curves ---- */

static void fill_bins(trace *t, const ses_figure_series *s)
{
    int64_t each = (s->n + BINS - 1) / BINS;
    t->n = (s->n + each - 1) / each;
    t->is_binned = each > 1;
    for (int64_t i = 0; i < t->n; i++) {
        double sum = 0, at = 0, count = 0, all = 0;
        range of = { INFINITY, -INFINITY };
        for (int64_t k = i * each; k < s->n && k < (i + 1) * each; k++, all++) {
            at += s->x[k];
            if (is_drawn(s->y[k])) sum += s->y[k], count++;
            extend(&of, s->y[k]);
        }
        t->bin_x[i] = at / all;
        t->mean[i] = count > 0 ? sum / count : NAN;
        t->low[i] = of.low, t->high[i] = of.high;
    }
    t->x = t->bin_x, t->y = t->mean;
}

/* Weighted means of neighbors: a Gaussian of a fortieth of the curve. Unlike an exponential mean, it has no
 * lag. */
static void smooth_bins(trace *t)
{
    double sigma = fmax(1.5, (double)t->n / 40);
    int64_t reach = (int64_t)(3 * sigma);
    for (int64_t i = 0; i < t->n; i++) {
        double sum = 0, weights = 0;
        for (int64_t k = i - reach; k <= i + reach; k++) {
            if (k < 0 || k >= t->n || isnan(t->mean[k])) continue;
            double w = exp(-0.5 * (double)((k - i) * (k - i)) / (sigma * sigma));
            sum += w * t->mean[k], weights += w;
        }
        t->smooth[i] = isnan(t->mean[i]) ? NAN : sum / weights;
    }
    t->y = t->smooth;
    t->is_smooth = true;
}

/* Curves with intervals, and on a logarithmic axis, are drawn point by point. */
static void trace_line(trace *t, const ses_figure *f, const ses_figure_series *s)
{
    const lines *l = f->data;
    bool smooth = f->show & SES_SHOW_SMOOTH && s->n >= SES_SMOOTHED_POINTS;
    t->x = s->x, t->y = s->y, t->n = s->n;
    t->is_binned = t->is_smooth = false;
    if (s->low || l->log_x || (s->n <= BINS && !smooth)) return;
    fill_bins(t, s);
    if (smooth) smooth_bins(t);
}

/* ---- ranges ---- */

/* x as a position on the axis. */
static double axis_x(const lines *l, double x) { return l->log_x ? log2(x) : x; }

/* The x of a position; whole numbers stay whole. */
static double number_at(const lines *l, double at)
{
    double x = l->log_x ? exp2(at) : at;
    return l->log_x && fabs(x - rint(x)) < 1e-9 * x ? rint(x) : x;
}

/* The faint values of a smoothed curve count for half: outliers do not flatten the curve. */
static void find_ranges(const ses_figure *f, range *x, range *y)
{
    const lines *l = f->data;
    range faint = { INFINITY, -INFINITY };
    trace t;
    *x = *y = faint;
    for (int i = 0; i < l->n; i++) {
        const ses_figure_series *s = &l->line[i];
        trace_line(&t, f, s);
        for (int64_t k = 0; k < t.n; k++) {
            extend(x, axis_x(l, t.x[k]));
            extend(y, t.y[k]);
            if (s->low) extend(y, s->low[k]), extend(y, s->high[k]);
            if (t.is_smooth) extend(&faint, t.low[k]), extend(&faint, t.high[k]);
        }
    }
    double half = (y->high - y->low) / 2;
    if (faint.low < y->low) y->low = fmax(faint.low, y->low - half);
    if (faint.high > y->high) y->high = fmin(faint.high, y->high + half);
    if (f->show & SES_SHOW_ZERO && x->low <= x->high) extend(x, 0);
    if (!(x->low <= x->high)) *x = (range){ 0, 1 };
    if (!(y->low <= y->high)) *y = (range){ 0, 1 };
    if (x->high == x->low) x->high = x->low + 1;
    if (y->high == y->low)
        y->low = ses_chart_low_end(y->low, 0.5 * fmax(fabs(y->low), 1e-6)),
        y->high += 0.5 * fmax(fabs(y->high), 1e-6);
}

/* ---- text: a grid of characters, one letter per curve ---- */

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    enum { ROWS = 14, AXIS = 9, MAX_COLS = 240 };
    const lines *l = f->data;
    trace t;
    signed char grid[ROWS][MAX_COLS];
    char number[24];
    int cols = d->width - AXIS - 2;
    range x, y;
    if (cols > 100) cols = 100;
    if (cols < 16) cols = 16;
    find_ranges(f, &x, &y);
    memset(grid, -1, sizeof grid);
    for (int i = 0; i < l->n; i++) {
        trace_line(&t, f, &l->line[i]);
        for (int64_t k = 0; k < t.n; k++) {
            if (!is_drawn(t.y[k]) || !is_drawn(t.x[k])) continue;
            int c = (int)((axis_x(l, t.x[k]) - x.low) / (x.high - x.low) * (cols - 1) + 0.5),
                r = (int)((y.high - t.y[k]) / (y.high - y.low) * (ROWS - 1) + 0.5);
            if (grid[r][c] < 0) grid[r][c] = (signed char)(i % LETTERS);
        }
    }
    for (int r = 0; r < ROWS; r++) {
        bool labelled = r % 3 == 0 || r + 1 == ROWS;
        double at = y.high - (y.high - y.low) * r / (ROWS - 1);
        ses_draw_dim(out, d);
        ses_draw_cell(out, labelled ? ses_draw_number(number, at) : "", AXIS - 1, true);
        ses_buf_puts(out, d->unicode ? " \xE2\x94\x82" : " |");
        ses_draw_plain(out, d);
        ses_draw_grid_row(out, d, grid[r], cols, 0);
    }
    ses_draw_dim(out, d);
    ses_draw_cell(out, "", AXIS + 1, false);
    const char *low = ses_draw_number(number, number_at(l, x.low));
    int gap = cols - ses_draw_width(low) - ses_draw_width(l->x_label);
    ses_buf_puts(out, low);
    ses_draw_cell(out, "", gap / 2, false);
    ses_buf_puts(out, l->x_label);
    ses_draw_cell(out, ses_draw_number(number, number_at(l, x.high)), gap - gap / 2, true);
    ses_draw_plain(out, d);
    ses_buf_put(out, '\n');
    int used = 0;
    for (int i = 0; i < l->n; i++) ses_draw_key(out, d, (char)('a' + i % LETTERS), i, l->line[i].name, &used);
    ses_buf_put(out, '\n');
}

/* ---- SVG ---- */

typedef struct plot {
    const lines *l;
    ses_chart_axes axes;
} plot;

static double px(const plot *p, double x) { return ses_chart_x(&p->axes, axis_x(p->l, x)); }
static double py(const plot *p, double y)
{
    return ses_chart_y(&p->axes, fmin(fmax(y, p->axes.y0), p->axes.y1));
}

/* The x of the first curve, unless a label would touch the one before it. */
static void put_log_ticks(const lines *l, const plot *p, ses_buf *out)
{
    char number[24];
    double end = -INFINITY;
    for (int64_t k = 0; l->n && k < l->line[0].n; k++) {
        const char *s = ses_draw_number(number, l->line[0].x[k]);
        double at = px(p, l->line[0].x[k]), half = ses_svg_text_width(s) / 2;
        if (!isfinite(at) || at - half < end + 4) continue;
        ses_svg_text(out, at, ses_chart_tick_y(&p->axes), "d m", s);
        end = at + half;
    }
}

static void put_axes(const lines *l, const plot *p, ses_buf *out)
{
    ses_chart_put_grid(&p->axes, 4, out);
    if (l->log_x)
        put_log_ticks(l, p, out);
    else
        ses_chart_put_x_ticks(&p->axes, p->axes.width < SMALL ? 5 : 10, 1, out);
    ses_chart_put_names(&p->axes, out);
}

static void put_band(const ses_figure_series *s, const plot *p, int hue, ses_buf *out)
{
    ses_buf_appendf(out, "<path class=\"f%d\" fill-opacity=\".14\" d=\"", hue);
    for (int64_t k = 0; k < s->n; k++)
        ses_buf_appendf(out, "%c%.1f %.1f", k ? 'L' : 'M', px(p, s->x[k]), py(p, s->high[k]));
    for (int64_t k = s->n; k-- > 0;) ses_buf_appendf(out, "L%.1f %.1f", px(p, s->x[k]), py(p, s->low[k]));
    ses_buf_puts(out, "Z\"/>");
}

/* One value of each x, or two: low and high. */
static void put_path(const double *x, const double *low, const double *high, int64_t n, const plot *p,
                     ses_buf *out)
{
    bool in_path = false;
    for (int64_t k = 0; k < n; k++) {
        bool shown = is_drawn(low[k]) && is_drawn(x[k]);
        if (shown) ses_buf_appendf(out, "%c%.1f %.1f", in_path ? 'L' : 'M', px(p, x[k]), py(p, low[k]));
        if (shown && high) ses_buf_appendf(out, "L%.1f %.1f", px(p, x[k]), py(p, high[k]));
        in_path = shown;
    }
}

static void put_curve(const ses_figure *f, const ses_figure_series *s, const plot *p, int hue, ses_buf *out)
{
    trace t;
    trace_line(&t, f, s);
    if (s->low) put_band(s, p, hue, out);
    if (t.is_smooth) {
        ses_buf_appendf(out, "<path class=\"l r s%d\" d=\"", hue);
        put_path(t.x, t.is_binned ? t.low : t.mean, t.is_binned ? t.high : NULL, t.n, p, out);
        ses_buf_puts(out, "\"/>");
    }
    ses_buf_appendf(out, "<path class=\"l s%d%s\" d=\"", hue, s->dashed ? " h" : "");
    put_path(t.x, t.y, NULL, t.n, p, out);
    ses_buf_puts(out, "\"/>");
    for (int64_t k = 0; k < s->n && s->n <= DOTS; k++) {
        if (!is_drawn(s->y[k]) || !is_drawn(s->x[k])) continue;
        ses_buf_appendf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", hue,
                        px(p, s->x[k]), py(p, s->y[k]));
        ses_html_text(out, s->name);
        ses_buf_appendf(out, ": %.4g at %.4g</title></circle>", s->y[k], s->x[k]);
    }
}

/* The name of a curve in the key, with its last value. */
static void put_name(const ses_figure *f, const ses_figure_series *s, const char *name, ses_buf *out)
{
    out->len = 0;
    ses_buf_puts(out, name);
    int64_t last = f->show & SES_SHOW_LAST ? s->n - 1 : -1;
    while (last >= 0 && !is_drawn(s->y[last])) last--;
    if (last < 0) return;
    ses_buf_put(out, ' ');
    ses_chart_tick_put(out, s->y[last], 0);
}

/* The key below the plot; a single curve with its last value needs none. Returns the y behind it. */
static double put_key(const ses_figure *f, double width, double height, ses_buf *out)
{
    const lines *l = f->data;
    ses_buf name = { 0 };
    double x = LEFT, y = height + 12;
    bool one = l->n == 1 && f->show & SES_SHOW_LAST, has_key = !(f->show & SES_SHOW_NO_KEY) && !one;
    if (one) {
        put_name(f, l->line, "last", &name);
        if (name.data) ses_svg_text(out, width, 10, "d e", name.data);
    }
    for (int i = 0; i < l->n && has_key; i++) {
        put_name(f, &l->line[i], l->line[i].name, &name);
        if (!name.data) break;
        double key = 34 + ses_svg_text_width(name.data);
        if (x + key > width && x > LEFT) x = LEFT, y += KEY_ROW;
        ses_buf_appendf(out, "<path class=\"l s%d%s\" d=\"M%.1f %.1fh18\"/>", i % SES_HUES,
                        l->line[i].dashed ? " h" : "", x, y - 4);
        ses_svg_text(out, x + 24, y, "t", name.data);
        x += key + 8;
    }
    if (!ses_buf_ok(&name, NULL)) out->wanted = name.wanted;
    ses_buf_free(&name);
    return has_key ? y + 8 : height;
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const lines *l = f->data;
    range h, v;
    find_ranges(f, &h, &v);
    double pad = 0.05 * (v.high - v.low), height = width < SMALL ? SMALL_HEIGHT : HEIGHT;
    plot p = { .l = l,
               .axes = { h.low, h.high, ses_chart_low_end(v.low, pad), v.high + pad, width, height, LEFT,
                         RIGHT, TOP, BOTTOM, l->x_label, l->y_label } };
    put_axes(l, &p, out);
    for (int i = 0; i < l->n; i++) put_curve(f, &l->line[i], &p, i % SES_HUES, out);
    return put_key(f, width, height, out);
}

static const ses_figure_kind kind = { text, svg, NULL };

ses_figure *ses_report_lines(ses_report *r, const char *title, const char *x_label, const char *y_label)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(lines));
    if (!f) return NULL;
    lines *l = f->data;
    l->x_label = ses_figure_string(r, x_label);
    l->y_label = ses_figure_string(r, y_label);
    return l->x_label && l->y_label ? f : NULL;
}

void ses_figure_log_x(ses_figure *f)
{
    lines *l = f ? f->data : NULL;
    if (l) l->log_x = true;
}

void ses_figure_line(ses_figure *f, const ses_figure_series *s)
{
    lines *l = f ? f->data : NULL;
    if (!l) return;
    ses_report *r = f->report;
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 8;
        ses_figure_series *more = ses_figure_alloc(r, (size_t)cap, sizeof *more);
        if (!more) return;
        if (l->n) memcpy(more, l->line, (size_t)l->n * sizeof *more);
        l->line = more, l->cap = cap;
    }
    size_t n = (size_t)s->n;
    ses_figure_series copy = { ses_figure_string(r, s->name),
                               s->dashed,
                               s->n,
                               ses_figure_copy(r, s->x, n, sizeof *s->x),
                               ses_figure_copy(r, s->y, n, sizeof *s->y),
                               ses_figure_copy(r, s->low, n, sizeof *s->low),
                               ses_figure_copy(r, s->high, n, sizeof *s->high) };
    if (!copy.high) copy.low = NULL;
    if (copy.name && copy.x && copy.y) l->line[l->n++] = copy;
}
