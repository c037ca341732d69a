/* Points in the plane, colored by group. */
#include "figure.h"

#include "analysis/figure/markup.h"

#include <math.h>
#include <string.h>

enum { MAX_GROUPS = 12, HEIGHT = 460, KEY_ROW = 18, LABELLED = 60 };

typedef struct scatter {
    ses_figure_points p;
    const char *group[MAX_GROUPS]; /* names; the rest are "other" */
    int n_groups, *of_point;
    double x0, x1, y0, y1;
} scatter;

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    enum { ROWS = 24, MAX_COLS = 120 };
    const scatter *s = f->data;
    char grid[ROWS][MAX_COLS];
    int cols = d->width < MAX_COLS ? d->width - 1 : MAX_COLS - 1;
    if (cols < 20) cols = 20;
    memset(grid, -1, sizeof grid);
    for (int64_t i = 0; i < s->p.n; i++) {
        int c = (int)((s->p.x[i] - s->x0) / (s->x1 - s->x0) * (cols - 1) + 0.5),
            r = (int)((s->y1 - s->p.y[i]) / (s->y1 - s->y0) * (ROWS - 1) + 0.5);
        if (grid[r][c] < 0) grid[r][c] = (char)(s->of_point ? s->of_point[i] : 0);
    }
    for (int r = 0; r < ROWS; r++) {
        int last = cols - 1;
        while (last >= 0 && grid[r][last] < 0) last--;
        for (int c = 0; c <= last; c++) {
            if (grid[r][c] < 0) {
                ses_buf_put(out, ' ');
                continue;
            }
            ses_draw_hue(out, d, grid[r][c]);
            ses_buf_put(out, s->of_point ? (char)('a' + grid[r][c]) : 'o');
            ses_draw_plain(out, d);
        }
        ses_buf_put(out, '\n');
    }
    int used = 0;
    for (int g = 0; g < s->n_groups; g++) ses_draw_key(out, d, (char)('a' + g), g, s->group[g], &used);
    if (s->n_groups) ses_buf_put(out, '\n');
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const scatter *s = f->data;
    double x = 0, y = HEIGHT + 14;
    for (int64_t i = 0; i < s->p.n; i++) {
        double px = 8 + (s->p.x[i] - s->x0) / (s->x1 - s->x0) * (width - 16),
               py = 8 + (s->y1 - s->p.y[i]) / (s->y1 - s->y0) * (HEIGHT - 16);
        ses_buf_appendf(out, "<circle class=\"f%d\" fill-opacity=\".75\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">",
                        (s->of_point ? s->of_point[i] : 0) % SES_HUES, px, py, s->p.n > 2000 ? "1.6" : "3");
        if (s->p.label) {
            ses_buf_puts(out, "<title>");
            ses_html_text(out, s->p.label[i]);
            ses_buf_puts(out, "</title>");
        }
        ses_buf_puts(out, "</circle>");
        if (s->p.label && s->p.n <= LABELLED) ses_svg_text(out, px + 5, py + 4, "d", s->p.label[i]);
    }
    for (int g = 0; g < s->n_groups; g++) {
        double key = 26 + ses_svg_text_width(s->group[g]);
        if (x + key > width && x > 0) x = 0, y += KEY_ROW;
        ses_buf_appendf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", g % SES_HUES, x + 5,
                        y - 4);
        ses_svg_text(out, x + 14, y, "t", s->group[g]);
        x += key;
    }
    return s->n_groups ? y + 8 : HEIGHT;
}

static const ses_figure_kind kind = { text, svg, NULL };

/* Numbers the groups in the order of their first points; the last one collects the rest. */
static void find_groups(ses_report *r, scatter *s)
{
    s->of_point = ses_figure_alloc(r, (size_t)s->p.n, sizeof *s->of_point);
    for (int64_t i = 0; s->of_point && i < s->p.n; i++) {
        int g = 0;
        while (g < s->n_groups && strcmp(s->group[g], s->p.group[i]) != 0) g++;
        if (g == s->n_groups && g < MAX_GROUPS) s->group[s->n_groups++] = s->p.group[i];
        if (g == MAX_GROUPS) s->group[--g] = "other";
        s->of_point[i] = g;
    }
}

ses_figure *ses_report_scatter(ses_report *r, const char *title, const ses_figure_points *p)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(scatter));
    if (!f) return NULL;
    scatter *s = f->data;
    size_t n = (size_t)p->n;
    s->p =
        (ses_figure_points){ p->n, ses_figure_copy(r, p->x, n, sizeof *p->x),
                             ses_figure_copy(r, p->y, n, sizeof *p->y), ses_figure_strings(r, p->label, p->n),
                             ses_figure_strings(r, p->group, p->n) };
    if (!s->p.x || !s->p.y) s->p.n = 0;
    s->x0 = s->y0 = INFINITY, s->x1 = s->y1 = -INFINITY;
    for (int64_t i = 0; i < s->p.n; i++) {
        s->x0 = fmin(s->x0, p->x[i]), s->x1 = fmax(s->x1, p->x[i]);
        s->y0 = fmin(s->y0, p->y[i]), s->y1 = fmax(s->y1, p->y[i]);
    }
    if (!(s->x1 > s->x0)) s->x0 -= 1, s->x1 = s->x0 + 2;
    if (!(s->y1 > s->y0)) s->y0 -= 1, s->y1 = s->y0 + 2;
    if (s->p.group) find_groups(r, s);
    return f;
}
