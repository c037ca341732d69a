/* Writes the loss curves of a training run as SVG. */
#include "loss_curve_svg.h"

#include "analysis/figure/markup.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "io/text_reader.h"
#include "sesame/json.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 360, LEFT = 56, RIGHT = 150, TOP = 36, BOTTOM = 40, POINTS = 360, CURVES = 8 };

typedef struct curve {
    char name[48];
    double *x, *y;
    size_t n, cap;
} curve;

typedef struct chart {
    curve curve[CURVES];
    size_t n;
    double x1, y0, y1;
} chart;

/* Sums and differences of plotted values stay finite. */
static const double largest = 1e300;

static void add_point(chart *p, const char *name, double x, double y)
{
    size_t i = 0;
    while (i < p->n && strcmp(p->curve[i].name, name)) i++;
    if (i == CURVES || !(fabs(y) < largest) || !(fabs(x) < largest)) return;
    curve *c = &p->curve[i];
    if (i == p->n) {
        size_t len = strlen(name) < sizeof c->name - 1 ? strlen(name) : sizeof c->name - 1;
        memcpy(c->name, name, len);
        p->n++;
    }
    if (c->n == c->cap) {
        size_t cap = 2 * c->cap + 256;
        double *xs = ses_realloc_array(c->x, cap, sizeof *xs, NULL);
        if (xs) c->x = xs;
        double *ys = xs ? ses_realloc_array(c->y, cap, sizeof *ys, NULL) : NULL;
        if (!ys) return; /* out of memory: truncate the curve */
        c->y = ys;
        c->cap = cap;
    }
    c->x[c->n] = x;
    c->y[c->n++] = y;
}

static bool is_loss(const char *key, size_t n)
{
    return !strcmp(key, "loss") || (n > 5 && !strncmp(key, "eval_", 5) && !strcmp(key + n - 4, "loss"));
}

/* Adds the loss of an update, or all losses of an evaluation; with a single objective only its own loss. */
static void read_line(chart *p, const ses_json *line)
{
    double step, y;
    size_t n, losses = 0;
    if (!ses_json_real(ses_json_get(line, "step"), &step)) return;
    for (size_t i = 0; i < ses_json_len(line); i++) {
        const char *key = ses_json_key(line, i, &n);
        losses += is_loss(key, n);
    }
    for (size_t i = 0; i < ses_json_len(line); i++) {
        const char *key = ses_json_key(line, i, &n);
        if (!is_loss(key, n) || (losses == 2 && !strcmp(key, "eval_loss"))) continue;
        if (ses_json_real(ses_json_at(line, i), &y)) add_point(p, key, step, y);
    }
}

/* Averages the points of each column if there are more than POINTS. */
static void downsample(curve *c)
{
    if (c->n <= POINTS) return;
    for (size_t i = 0; i < POINTS; i++) {
        size_t from = i * c->n / POINTS, to = (i + 1) * c->n / POINTS;
        double x = 0, y = 0;
        for (size_t k = from; k < to; k++) x += c->x[k], y += c->y[k];
        c->x[i] = x / (double)(to - from);
        c->y[i] = y / (double)(to - from);
    }
    c->n = POINTS;
}

static void find_range(chart *p)
{
    p->x1 = 1;
    p->y0 = INFINITY;
    p->y1 = -INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        downsample(&p->curve[i]);
        for (size_t k = 0; k < p->curve[i].n; k++) {
            p->x1 = fmax(p->x1, p->curve[i].x[k]);
            p->y0 = fmin(p->y0, p->curve[i].y[k]);
            p->y1 = fmax(p->y1, p->curve[i].y[k]);
        }
    }
    if (p->y0 < p->y1) return;
    double at = isfinite(p->y0) ? p->y0 : 1, margin = fmax(1, fabs(at) / 1000);
    p->y0 = at - margin, p->y1 = at + margin;
}

static double svg_x(const chart *p, double x) { return LEFT + x / p->x1 * (WIDTH - LEFT - RIGHT); }

static double svg_y(const chart *p, double y)
{
    return TOP + (p->y1 - y) / (p->y1 - p->y0) * (HEIGHT - TOP - BOTTOM);
}

static void put_axes(const chart *p, ses_buf *b)
{
    ses_chart_ticks t = ses_chart_find_ticks(p->y0, p->y1, 5, 0);
    for (int i = 0; i < t.n; i++) {
        double y = (t.first + i) * t.step;
        ses_buf_appendf(
            b, "<path d='M%d %.1fH%d' stroke='#8884'/><text x='%d' y='%.1f' text-anchor='end'>%.4g</text>\n",
            LEFT, svg_y(p, y), WIDTH - RIGHT, LEFT - 6, svg_y(p, y) + 4, fabs(y) < t.step / 2 ? 0.0 : y);
    }
    t = ses_chart_find_ticks(0, p->x1, 5, 0);
    for (int i = 0; i < t.n; i++) {
        double x = i * t.step;
        ses_buf_appendf(b, "<text x='%.1f' y='%d' text-anchor='middle'>%.6g</text>\n", svg_x(p, x),
                        HEIGHT - BOTTOM + 18, x);
    }
    ses_buf_appendf(b, "<text x='%d' y='%d' text-anchor='end'>updates</text>\n", WIDTH - RIGHT, HEIGHT - 6);
}

static void put_curve(const chart *p, size_t i, ses_buf *b)
{
    static const char *const color[CURVES] = { "#8a8f98", "#1f6feb", "#d1242f", "#1a7f37",
                                               "#8250df", "#bf8700", "#0a7ea4", "#a0522d" };
    const curve *c = &p->curve[i];
    ses_buf_appendf(b, "<path fill='none' stroke='%s' stroke-width='%s' d='", color[i], i ? "2" : "1.2");
    for (size_t k = 0; k < c->n; k++)
        ses_buf_appendf(b, "%c%.1f %.1f", k ? 'L' : 'M', svg_x(p, c->x[k]), svg_y(p, c->y[k]));
    ses_buf_puts(b, "'/>\n");
    for (size_t k = 0; i && k < c->n && c->n <= 60; k++)
        ses_buf_appendf(b, "<circle cx='%.1f' cy='%.1f' r='2.5' fill='%s'/>\n", svg_x(p, c->x[k]),
                        svg_y(p, c->y[k]), color[i]);
    ses_buf_appendf(b, "<text x='%d' y='%d' fill='%s'>%s %.3f</text>\n", WIDTH - RIGHT + 8,
                    TOP + 12 + 18 * (int)i, color[i], c->name, c->n ? c->y[c->n - 1] : 0.0);
}

static void put_text(ses_buf *b, const char *s)
{
    for (; *s; s++)
        if (*s == '<' || *s == '&' || *s == '>')
            ses_buf_appendf(b, "&#%d;", *s);
        else
            ses_buf_put(b, *s);
}

bool ses_loss_curve_svg(const char *log, const char *path, const char *title, ses_err *e)
{
    chart p = { 0 };
    ses_text_reader f = { 0 };
    ses_buf b = { 0 };
    const char *s = NULL;
    size_t n;
    bool ok = ses_text_reader_open(&f, log, 1 << 20, e);
    while (ok && (ok = ses_text_reader_next(&f, &s, &n, e)) && s) {
        ses_json_doc *d = ses_json_parse(s, n, NULL);
        if (d) read_line(&p, ses_json_root(d));
        ses_json_free(d);
    }
    ses_text_reader_free(&f);
    find_range(&p);
    ses_buf_appendf(
        &b,
        "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
        "font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
        "<text x='%d' y='20' font-weight='bold'>",
        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put_text(&b, title);
    ses_buf_puts(&b, "</text>\n");
    put_axes(&p, &b);
    for (size_t i = 0; i < p.n; i++) put_curve(&p, i, &b);
    ses_buf_puts(&b, "</svg>\n");
    for (size_t i = 0; i < CURVES; i++) ses_free(p.curve[i].x), ses_free(p.curve[i].y);
    ok = ok && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, true, e);
    ses_buf_free(&b);
    return ok;
}
