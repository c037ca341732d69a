/* Score against cost: named points, the front of the best ones, the least score allowed. */
#include "figure.h"

#include "chart_axes.h"
#include "markup.h"

#include <math.h>
#include <string.h>

enum { HEIGHT = 320, LEFT = 48, RIGHT = 16, TOP = 22, BOTTOM = 40, LINE = 14 };

/* How a point is drawn: mark in a terminal, hue. */
typedef enum { OTHER, FRONT, ORIGINAL, CHOSEN, ROLES } role;
static const char *const role_name[ROLES] = { "beaten by another", "on the front", "original", "chosen" };
static const char mark[ROLES] = { '.', 'o', '+', '*' };
static const int hue[ROLES] = { 7, 0, 1, 2 };

typedef struct tradeoff {
    ses_figure_tradeoff t;
    const char *x_label, *y_label;
    double x0, x1, y0, y1;
} tradeoff;

static role role_of(const tradeoff *f, int64_t i)
{
    if (i == f->t.chosen) return CHOSEN;
    if (i == f->t.original) return ORIGINAL;
    return f->t.on_front[i] ? FRONT : OTHER;
}

static bool is_drawn(const tradeoff *f, int64_t i) { return isfinite(f->t.x[i]) && isfinite(f->t.y[i]); }

/* Whether the legend has the role: some plots have no original and none chosen. */
static bool is_used(const tradeoff *f, int k)
{
    return (k != CHOSEN || f->t.chosen >= 0) && (k != ORIGINAL || f->t.original >= 0);
}

/* ---- text ---- */

enum { ROWS = 18, AXIS = 9, MAX_COLS = 240 };

typedef struct canvas {
    char cell[ROWS][MAX_COLS];         /* 0: blank */
    signed char color[ROWS][MAX_COLS]; /* hue; -1: dim */
    int cols;
} canvas;

static bool is_free(const canvas *c, int row, int from, int n)
{
    if (from < 0 || from + n > c->cols) return false;
    for (int i = from; i < from + n; i++)
        if (c->cell[row][i]) return false;
    return true;
}

/* Writes a name right of a point, or left, or in the rows next to it, if a position is free. */
static void put_name(canvas *c, int row, int col, const char *name)
{
    int n = ses_draw_width(name), at[] = { col + 2, col - n - 1 };
    if ((size_t)n != strlen(name)) return; /* one byte per cell */
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            int r = row + (d == 0 ? 0 : d == 1 ? -1 : 1), from = at[side];
            if (r < 0 || r >= ROWS || !is_free(c, r, from - (from > 0), n + 1)) continue;
            memcpy(&c->cell[r][from], name, (size_t)n);
            memset(&c->color[r][from], -1, (size_t)n);
            return;
        }
}

static void fill_canvas(const tradeoff *f, canvas *c)
{
    for (int pass = 0; pass < 2; pass++) /* marks, then names */
        for (int k = ROLES - 1; k >= 0; k--)
            for (int64_t i = 0; i < f->t.n; i++) {
                if ((int)role_of(f, i) != k || !is_drawn(f, i)) continue;
                int col = (int)((f->t.x[i] - f->x0) / (f->x1 - f->x0) * (c->cols - 1) + 0.5),
                    row = (int)((f->y1 - f->t.y[i]) / (f->y1 - f->y0) * (ROWS - 1) + 0.5);
                if (pass) {
                    put_name(c, row, col, f->t.name[i]);
                } else if (!c->cell[row][col]) {
                    c->cell[row][col] = mark[k];
                    c->color[row][col] = (signed char)hue[k];
                }
            }
}

static void put_row(const canvas *c, int row, const ses_draw *d, ses_buf *out)
{
    int last = c->cols - 1;
    while (last >= 0 && !c->cell[row][last]) last--;
    for (int i = 0; i <= last; i++) {
        if (!c->cell[row][i]) {
            ses_buf_put(out, ' ');
            continue;
        }
        bool begins = !i || !c->cell[row][i - 1] || c->color[row][i] != c->color[row][i - 1],
             ends = !c->cell[row][i + 1] || c->color[row][i] != c->color[row][i + 1];
        if (begins && c->color[row][i] < 0) ses_draw_dim(out, d);
        if (begins && c->color[row][i] >= 0) ses_draw_hue(out, d, c->color[row][i]);
        ses_buf_put(out, c->cell[row][i]);
        if (ends) ses_draw_plain(out, d);
    }
    ses_buf_put(out, '\n');
}

static void text(const ses_figure *figure, const ses_draw *d, ses_buf *out)
{
    const tradeoff *f = figure->data;
    char number[24];
    canvas *c = ses_figure_alloc(figure->report, 1, sizeof *c);
    if (!c) return;
    c->cols = d->width - AXIS - 3;
    if (c->cols > 110) c->cols = 110;
    if (c->cols < 20) c->cols = 20;
    fill_canvas(f, c);
    for (int r = 0; r < ROWS; r++) {
        bool labelled = r % 4 == 0 || r + 1 == ROWS;
        double at = f->y1 - (f->y1 - f->y0) * r / (ROWS - 1);
        ses_draw_dim(out, d);
        ses_draw_cell(out, labelled ? ses_draw_number(number, at) : "", AXIS - 1, true);
        ses_buf_puts(out, d->unicode ? " \xE2\x94\x82" : " |");
        ses_draw_plain(out, d);
        put_row(c, r, d, out);
    }
    ses_draw_dim(out, d);
    ses_draw_cell(out, "", AXIS + 1, false);
    const char *low = ses_draw_number(number, f->x0);
    int gap = c->cols - ses_draw_width(low) - ses_draw_width(f->x_label);
    ses_buf_puts(out, low);
    ses_draw_cell(out, "", gap / 2, false);
    ses_buf_puts(out, f->x_label);
    ses_draw_cell(out, ses_draw_number(number, f->x1), gap - gap / 2, true);
    ses_draw_plain(out, d);
    ses_buf_put(out, '\n');
    int used = 0;
    for (int k = ROLES - 1; k >= 0; k--)
        if (is_used(f, k)) ses_draw_key(out, d, mark[k], hue[k], role_name[k], &used);
    ses_buf_put(out, '\n');
}

/* ---- SVG ---- */

typedef struct box {
    double x0, y0, x1, y1;
} box;

typedef struct plot {
    const tradeoff *f;
    ses_chart_axes axes;
    box *taken; /* points, then names that were placed */
    int64_t n_taken;
} plot;

static double px(const plot *p, double x) { return ses_chart_x(&p->axes, x); }
static double py(const plot *p, double y) { return ses_chart_y(&p->axes, y); }

static bool collides(const plot *p, box b)
{
    if (b.x0 < LEFT || b.x1 > p->axes.width || b.y0 < 0 || b.y1 > HEIGHT - BOTTOM + LINE / 2) return true;
    for (int64_t i = 0; i < p->n_taken; i++) {
        box t = p->taken[i];
        if (b.x0 < t.x1 && t.x0 < b.x1 && b.y0 < t.y1 && t.y0 < b.y1) return true;
    }
    return false;
}

/* Tries positions around the point, ever farther above and below; a name without one is in the table only. */
static void put_label(plot *p, double x, double y, const char *name, ses_buf *out)
{
    double w = ses_svg_text_width(name);
    for (int k = 0; k < 14; k++) {
        double up = (k / 2 % 2 ? 1 : -1) * ((k + 2) / 4) * LINE, left = k % 2 ? x - 8 - w : x + 8;
        box b = { left, y + up - LINE / 2.0, left + w, y + up + LINE / 2.0 };
        if (collides(p, b)) continue;
        p->taken[p->n_taken++] = b;
        if (up != 0)
            ses_buf_appendf(out, "<path class=\"g\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x, y, k % 2 ? b.x1 : b.x0,
                            y + up);
        ses_svg_text(out, left, y + up + 4, "d", name);
        return;
    }
}

/* Points of the front in the order of their cost, joined by a line. */
static void put_front(const plot *p, ses_buf *out)
{
    const ses_figure_tradeoff *t = &p->f->t;
    double after = -INFINITY;
    bool begun = false;
    for (;;) {
        int64_t next = -1;
        for (int64_t i = 0; i < t->n; i++)
            if (t->on_front[i] && is_drawn(p->f, i) && t->x[i] > after && (next < 0 || t->x[i] < t->x[next]))
                next = i;
        if (next < 0) break;
        ses_buf_appendf(out, "%s%.1f %.1f", begun ? "L" : "<path class=\"l s0\" d=\"M", px(p, t->x[next]),
                        py(p, t->y[next]));
        begun = true;
        after = t->x[next];
    }
    if (begun) ses_buf_puts(out, "\"/>");
}

static void put_points(plot *p, ses_buf *out)
{
    const ses_figure_tradeoff *t = &p->f->t;
    for (int64_t i = 0; i < t->n; i++) {
        if (!is_drawn(p->f, i)) continue;
        role k = role_of(p->f, i);
        double x = px(p, t->x[i]), y = py(p, t->y[i]);
        ses_buf_appendf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>", hue[k], x, y,
                        k == CHOSEN ? "6" : "4");
        ses_html_text(out, t->name[i]);
        ses_buf_appendf(out, ": %.4g at %.4g</title></circle>", t->y[i], t->x[i]);
        p->taken[p->n_taken++] = (box){ x - 5, y - 5, x + 5, y + 5 };
    }
    for (int k = ROLES - 1; k >= 0; k--) /* the chosen one first */
        for (int64_t i = 0; i < t->n; i++)
            if ((int)role_of(p->f, i) == k && is_drawn(p->f, i))
                put_label(p, px(p, t->x[i]), py(p, t->y[i]), t->name[i], out);
}

static double svg(const ses_figure *figure, double width, ses_buf *out)
{
    const tradeoff *f = figure->data;
    plot p = { .f = f,
               .axes = { f->x0, f->x1, f->y0, f->y1, width, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, f->x_label,
                         f->y_label } };
    double x = LEFT, y = HEIGHT + LINE;
    p.taken = ses_figure_alloc(figure->report, (size_t)(2 * f->t.n + 1), sizeof *p.taken);
    if (!p.taken) return HEIGHT;
    ses_chart_put_grid(&p.axes, 5, out);
    ses_chart_put_x_ticks(&p.axes, 8, 0, out);
    ses_chart_put_names(&p.axes, out);
    if (f->t.limit >= f->y0 && f->t.limit <= f->y1)
        ses_buf_appendf(out, "<path class=\"l s5 h\" d=\"M%d %.1fH%.1f\"><title>least score</title></path>",
                        LEFT, py(&p, f->t.limit), width - RIGHT);
    put_front(&p, out);
    put_points(&p, out);
    for (int k = ROLES - 1; k >= 0; k--) {
        double key = 30 + ses_svg_text_width(role_name[k]);
        if (!is_used(f, k)) continue;
        if (x + key > width && x > LEFT) x = LEFT, y += LINE + 4;
        ses_buf_appendf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", hue[k], x + 5, y - 4);
        ses_svg_text(out, x + 14, y, "t", role_name[k]);
        x += key;
    }
    if (f->t.limit >= f->y0 && f->t.limit <= f->y1) {
        ses_buf_appendf(out, "<path class=\"l s5 h\" d=\"M%.1f %.1fh18\"/>", x, y - 4);
        ses_svg_text(out, x + 24, y, "t", "least score");
    }
    return y + 8;
}

static const ses_figure_kind kind = { text, svg, NULL };

static void extend(double *low, double *high, double x)
{
    *low = fmin(*low, x);
    *high = fmax(*high, x);
}

ses_figure *ses_report_tradeoff(ses_report *r, const char *title, const char *x_label, const char *y_label,
                                const ses_figure_tradeoff *t)
{
    ses_figure *figure = ses_figure_new(r, &kind, title, sizeof(tradeoff));
    if (!figure) return NULL;
    tradeoff *f = figure->data;
    size_t n = (size_t)t->n;
    f->t = *t;
    f->t.x = ses_figure_copy(r, t->x, n, sizeof *t->x);
    f->t.y = ses_figure_copy(r, t->y, n, sizeof *t->y);
    f->t.on_front = ses_figure_copy(r, t->on_front, n, sizeof *t->on_front);
    f->t.name = ses_figure_strings(r, t->name, t->n);
    f->x_label = ses_figure_string(r, x_label);
    f->y_label = ses_figure_string(r, y_label);
    if (!f->t.x || !f->t.y || !f->t.on_front || !f->t.name || !f->y_label) return NULL;
    f->x0 = f->y0 = INFINITY, f->x1 = f->y1 = -INFINITY;
    for (int64_t i = 0; i < t->n; i++)
        if (is_drawn(f, i)) extend(&f->x0, &f->x1, t->x[i]), extend(&f->y0, &f->y1, t->y[i]);
    if (isfinite(t->limit)) extend(&f->y0, &f->y1, t->limit);
    if (!isfinite(f->x0)) f->x0 = f->x1 = 0; /* no point */
    if (!isfinite(f->y0)) f->y0 = f->y1 = 0;
    double dx = fmax(0.06 * (f->x1 - f->x0), 0.01 * fabs(f->x1) + 1e-9),
           dy = fmax(0.06 * (f->y1 - f->y0), 0.01 * fabs(f->y1) + 1e-9);
    f->x0 = fmax(fmin(f->x0, 0), f->x0 - dx), f->x1 += dx; /* costs stay above 0 */
    f->y0 = ses_chart_low_end(f->y0, dy), f->y1 += dy;
    return figure;
}
