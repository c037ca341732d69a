/* Curves over a common axis, with intervals. */
#include "chart_axes.h"
#include "figure.h"

#include "analysis/figure/markup.h"

#include <math.h>
#include <string.h>

enum { MAX_LINES = 26, HEIGHT = 240, LEFT = 48, RIGHT = 12, TOP = 18, BOTTOM = 36, KEY_ROW = 18 };

typedef struct lines {
    const char *x_label, *y_label;
    ses_figure_series line[MAX_LINES];
    int n;
    bool log_x;
} lines;

typedef struct range {
    double low, high;
} range;

static void extend(range *r, double x)
{
    if (isfinite(x)) r->low = fmin(r->low, x), r->high = fmax(r->high, x);
}

/* x as a position on the axis. */
static double axis_x(const lines *l, double x) { return l->log_x ? log2(x) : x; }

/* The x of a position; whole numbers stay whole. */
static double number_at(const lines *l, double at)
{
    double x = l->log_x ? exp2(at) : at;
    return l->log_x && fabs(x - rint(x)) < 1e-9 * x ? rint(x) : x;
}

static void find_ranges(const lines *l, range *x, range *y)
{
    *x = *y = (range){ INFINITY, -INFINITY };
    for (int i = 0; i < l->n; i++)
        for (int64_t k = 0; k < l->line[i].n; k++) {
            extend(x, axis_x(l, l->line[i].x[k]));
            extend(y, l->line[i].y[k]);
            if (l->line[i].low) extend(y, l->line[i].low[k]), extend(y, l->line[i].high[k]);
        }
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
    signed char grid[ROWS][MAX_COLS];
    char number[24];
    int cols = d->width - AXIS - 2;
    range x, y;
    if (cols > 100) cols = 100;
    if (cols < 16) cols = 16;
    find_ranges(l, &x, &y);
    memset(grid, -1, sizeof grid);
    for (int i = 0; i < l->n; i++)
        for (int64_t k = 0; k < l->line[i].n; k++) {
            if (!isfinite(l->line[i].y[k])) continue;
            int c = (int)((axis_x(l, l->line[i].x[k]) - x.low) / (x.high - x.low) * (cols - 1) + 0.5),
                r = (int)((y.high - l->line[i].y[k]) / (y.high - y.low) * (ROWS - 1) + 0.5);
            if (grid[r][c] < 0) grid[r][c] = (signed char)i;
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
    for (int i = 0; i < l->n; i++) ses_draw_key(out, d, (char)('a' + i), i, l->line[i].name, &used);
    ses_buf_put(out, '\n');
}

/* ---- SVG ---- */

typedef struct plot {
    const lines *l;
    ses_chart_axes axes;
} plot;

static double px(const plot *p, double x) { return ses_chart_x(&p->axes, axis_x(p->l, x)); }
static double py(const plot *p, double y) { return ses_chart_y(&p->axes, y); }

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
        ses_chart_put_x_ticks(&p->axes, 10, 1, out);
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

static void put_curve(const ses_figure_series *s, const plot *p, int hue, ses_buf *out)
{
    bool in_path = false;
    if (s->low) put_band(s, p, hue, out);
    ses_buf_appendf(out, "<path class=\"l s%d%s\" d=\"", hue, s->dashed ? " h" : "");
    for (int64_t k = 0; k < s->n; k++) {
        bool shown = isfinite(s->y[k]);
        if (shown) ses_buf_appendf(out, "%c%.1f %.1f", in_path ? 'L' : 'M', px(p, s->x[k]), py(p, s->y[k]));
        in_path = shown;
    }
    ses_buf_puts(out, "\"/>");
    for (int64_t k = 0; k < s->n && s->n <= 32; k++) {
        if (!isfinite(s->y[k])) continue;
        ses_buf_appendf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", hue,
                        px(p, s->x[k]), py(p, s->y[k]));
        ses_html_text(out, s->name);
        ses_buf_appendf(out, ": %.4g at %.4g</title></circle>", s->y[k], s->x[k]);
    }
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const lines *l = f->data;
    range h, v;
    find_ranges(l, &h, &v);
    double pad = 0.05 * (v.high - v.low), x = LEFT, y = HEIGHT + 12;
    plot p = { .l = l,
               .axes = { h.low, h.high, ses_chart_low_end(v.low, pad), v.high + pad, width, HEIGHT, LEFT,
                         RIGHT, TOP, BOTTOM, l->x_label, l->y_label } };
    put_axes(l, &p, out);
    for (int i = 0; i < l->n; i++) put_curve(&l->line[i], &p, i % SES_HUES, out);
    for (int i = 0; i < l->n; i++) {
        double key = 34 + ses_svg_text_width(l->line[i].name);
        if (x + key > width && x > LEFT) x = LEFT, y += KEY_ROW;
        ses_buf_appendf(out, "<path class=\"l s%d%s\" d=\"M%.1f %.1fh18\"/>", i % SES_HUES,
                        l->line[i].dashed ? " h" : "", x, y - 4);
        ses_svg_text(out, x + 24, y, "t", l->line[i].name);
        x += key + 8;
    }
    return y + 8;
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
    if (!l || l->n == MAX_LINES) return;
    ses_report *r = f->report;
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
