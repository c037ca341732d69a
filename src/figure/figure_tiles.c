/* Headline numbers: the beginning of a part of a page. */
#include "figure.h"

#include "markup.h"

enum { MAX_TILES = 16, COLUMNS = 4, NAME = 18, TILE = 62 };

typedef struct tile {
    const char *name, *value, *more;
} tile;

typedef struct tiles {
    const char *sub;
    tile tile[MAX_TILES];
    int n;
} tiles;

static void put_plain(ses_buf *out, const char *s) { ses_draw_cell(out, s, ses_draw_width(s), false); }

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const tiles *t = f->data;
    put_plain(out, t->sub);
    if (*t->sub) ses_buf_put(out, '\n');
    for (int i = 0; i < t->n; i++) {
        ses_draw_cell(out, t->tile[i].name, NAME, false);
        ses_draw_bold(out, d);
        put_plain(out, t->tile[i].value);
        ses_draw_plain(out, d);
        ses_buf_puts(out, *t->tile[i].more ? "  " : "");
        put_plain(out, t->tile[i].more);
        ses_buf_put(out, '\n');
    }
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const tiles *t = f->data;
    double top = 0;
    if (*t->sub) ses_svg_text(out, 0, 12, "d", t->sub), top = 24;
    for (int i = 0; i < t->n; i++) {
        double x = width / COLUMNS * (i % COLUMNS), y = top + TILE * (double)(i / COLUMNS);
        ses_svg_text(out, x, y + 12, "d", t->tile[i].name);
        ses_svg_text(out, x, y + 30, "t b", t->tile[i].value);
        ses_svg_text(out, x, y + 46, "d", t->tile[i].more);
    }
    return top + TILE * (double)((t->n + COLUMNS - 1) / COLUMNS);
}

static void put_element(ses_buf *out, const char *begin, const char *s, const char *end)
{
    if (!*s) return;
    ses_buf_puts(out, begin);
    ses_html_text(out, s);
    ses_buf_puts(out, end);
}

static void html(const ses_figure *f, ses_buf *out)
{
    const tiles *t = f->data;
    put_element(out, "<h2 class=\"part\">", f->title, "</h2>\n");
    put_element(out, "<p class=\"sub\">", t->sub, "</p>\n");
    if (t->n) ses_buf_puts(out, "<dl class=\"tiles\">\n");
    for (int i = 0; i < t->n; i++) {
        put_element(out, "<div><dt>", t->tile[i].name, "</dt>");
        put_element(out, "<dd>", t->tile[i].value, "</dd>");
        put_element(out, "<dd class=\"more\">", t->tile[i].more, "</dd>");
        ses_buf_puts(out, "</div>\n");
    }
    if (t->n) ses_buf_puts(out, "</dl>\n");
}

static const ses_figure_kind kind = { text, svg, html };

ses_figure *ses_report_tiles(ses_report *r, const char *title, const char *sub)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(tiles));
    if (!f) return NULL;
    tiles *t = f->data;
    f->is_part = true;
    t->sub = ses_figure_string(r, sub);
    return t->sub ? f : NULL;
}

void ses_figure_tile(ses_figure *f, const char *name, const char *value, const char *more)
{
    tiles *t = f ? f->data : NULL;
    if (!t || t->n == MAX_TILES || !*name) return;
    tile x = { ses_figure_string(f->report, name), ses_figure_string(f->report, value),
               ses_figure_string(f->report, more ? more : "") };
    if (x.name && x.value && x.more) t->tile[t->n++] = x;
}
