/* Points in the plane, colored by group. */
#include "figure.h"

#include "base/strmap.h"
#include "markup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 12, HEIGHT = 460, KEY_ROW = 18, LABELLED = 60, TABLE_ROWS = 2000 };

typedef struct scatter {
    ses_figure_points p;
    const char *group[MAX_GROUPS]; /* names; the rest are "other" */
    int n_groups, *of_point;
    double x0, x1, y0, y1;
} scatter;

static int most_frequent(const uint32_t count[MAX_GROUPS])
{
    int best = 0;
    for (int g = 1; g < MAX_GROUPS; g++)
        if (count[g] > count[best]) best = g;
    return count[best] ? best : -1;
}

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    enum { ROWS = 24, MAX_COLS = 120 };
    const scatter *s = f->data;
    signed char grid[ROWS][MAX_COLS]; /* group of most points of a cell; -1: none */
    int cols = d->width < MAX_COLS ? d->width - 1 : MAX_COLS - 1;
    if (cols < 20) cols = 20;
    uint32_t(*count)[MAX_COLS][MAX_GROUPS] = ses_figure_alloc(f->report, ROWS, sizeof *count);
    if (!count) return;
    for (int64_t i = 0; i < s->p.n; i++) {
        int c = (int)((s->p.x[i] - s->x0) / (s->x1 - s->x0) * (cols - 1) + 0.5),
            r = (int)((s->y1 - s->p.y[i]) / (s->y1 - s->y0) * (ROWS - 1) + 0.5);
        count[r][c][s->of_point ? s->of_point[i] : 0]++;
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < cols; c++) grid[r][c] = (signed char)most_frequent(count[r][c]);
    for (int r = 0; r < ROWS; r++) ses_draw_grid_row(out, d, grid[r], cols, s->of_point ? 0 : 'o');
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

static void put_picture(const ses_figure *f, ses_buf *out)
{
    const double width = 688;
    ses_buf picture = { 0 };
    double height = svg(f, width, &picture);
    ses_buf_appendf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", width, height);
    ses_html_text(out, f->title);
    ses_buf_puts(out, "\">");
    ses_buf_append(out, picture.data ? picture.data : "", picture.len);
    ses_buf_puts(out, "</svg>");
    if (!ses_buf_ok(&picture, NULL)) out->wanted = picture.wanted;
    ses_buf_free(&picture);
}

static void put_points(const scatter *s, ses_buf *out)
{
    ses_buf_puts(out,
                 "<div class=\"wide\"><table><thead><tr><th>point</th><th>group</th><th class=\"n\">x</th>"
                 "<th class=\"n\">y</th></tr></thead><tbody>\n");
    for (int64_t i = 0; i < s->p.n && i < TABLE_ROWS; i++) {
        ses_buf_puts(out, "<tr><td>");
        ses_html_text(out, s->p.label ? s->p.label[i] : "");
        ses_buf_puts(out, "</td><td>");
        ses_html_text(out, s->p.group ? s->p.group[i] : "");
        ses_buf_appendf(out, "</td><td class=\"n\">%.3f</td><td class=\"n\">%.3f</td></tr>\n", s->p.x[i],
                        s->p.y[i]);
    }
    ses_buf_puts(out, "</tbody></table></div>");
    if (s->p.n > TABLE_ROWS)
        ses_buf_appendf(out, "<p class=\"note\">The table has the first %d of %lld points.</p>", TABLE_ROWS,
                        (long long)s->p.n);
}

static void html(const ses_figure *f, ses_buf *out)
{
    const scatter *s = f->data;
    if (s->p.has_page) ses_buf_puts(out, "<noscript>");
    ses_buf_puts(out, "<div class=\"wide\" tabindex=\"0\">");
    put_picture(f, out);
    ses_buf_puts(out, "</div>");
    if (s->p.has_page) put_points(s, out);
    if (s->p.has_page) ses_buf_puts(out, "</noscript>");
}

static const ses_figure_kind kind = { text, svg, html };

static int by_count(const void *a, const void *b) /* the most frequent first, then by the first point */
{
    const ses_strmap_entry *const *x = a, *const *y = b;
    if ((*x)->value != (*y)->value) return (*x)->value > (*y)->value ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* Numbers the groups by their sizes; the last one collects the rest. */
static void find_groups(ses_report *r, scatter *s)
{
    ses_strmap map = { 0 };
    ses_err e = { 0 };
    bool fresh, ok = true;
    for (int64_t i = 0; ok && i < s->p.n; i++) {
        int64_t *count = ses_strmap_insert(&map, s->p.group[i], strlen(s->p.group[i]), 0, &fresh, &e);
        ok = count != NULL;
        if (ok) ++*count;
    }
    ses_strmap_entry **order = ok ? ses_figure_alloc(r, map.count, sizeof *order) : NULL;
    s->of_point = order ? ses_figure_alloc(r, (size_t)s->p.n, sizeof *s->of_point) : NULL;
    for (size_t i = 0; s->of_point && i < map.count; i++) order[i] = &map.entry[i];
    if (s->of_point) qsort(order, map.count, sizeof *order, by_count);
    for (size_t i = 0; s->of_point && i < map.count; i++) {
        bool rest = map.count > MAX_GROUPS && i >= MAX_GROUPS - 1;
        s->n_groups = rest ? MAX_GROUPS : (int)i + 1;
        s->group[s->n_groups - 1] = rest ? "other" : ses_figure_string(r, order[i]->key);
        order[i]->value = s->n_groups - 1;
    }
    for (int64_t i = 0, g = 0; s->of_point && i < s->p.n; i++) {
        ses_strmap_find(&map, s->p.group[i], strlen(s->p.group[i]), &g);
        s->of_point[i] = (int)g;
    }
    ses_strmap_free(&map);
}

ses_figure *ses_report_scatter(ses_report *r, const char *title, const ses_figure_points *p)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(scatter));
    if (!f) return NULL;
    scatter *s = f->data;
    size_t n = (size_t)p->n;
    s->p = (ses_figure_points){ p->n,
                                ses_figure_copy(r, p->x, n, sizeof *p->x),
                                ses_figure_copy(r, p->y, n, sizeof *p->y),
                                ses_figure_strings(r, p->label, p->n),
                                ses_figure_strings(r, p->group, p->n),
                                p->has_page };
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
