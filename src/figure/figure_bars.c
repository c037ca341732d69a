/* Names with bars. */
#include "figure.h"

#include "markup.h"

#include <math.h>

enum { ROW = 22, LEFT = 150, MAX_NAME = 28 };

typedef struct bars {
    int64_t n;
    const char *const *name;
    const double *value;
} bars;

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const bars *b = f->data;
    double max = ses_draw_largest(b->value, b->n);
    int left = 0;
    char number[24];
    for (int64_t i = 0; i < b->n; i++) {
        int width = ses_draw_width(b->name[i]);
        if (width > left) left = width < MAX_NAME ? width : MAX_NAME;
    }
    int columns = d->width - left - 12 < 40 ? d->width - left - 12 : 40;
    for (int64_t i = 0; i < b->n; i++) {
        ses_draw_cell(out, b->name[i], left, false);
        ses_buf_puts(out, "  ");
        ses_draw_cell(out, ses_draw_number(number, b->value[i]), 8, true);
        ses_buf_puts(out, "  ");
        ses_draw_hue(out, d, b->value[i] < 0);
        int n = isfinite(b->value[i]) ? (int)(fabs(b->value[i]) / max * columns + 0.5) : 0;
        for (int k = 0; k < n; k++) ses_buf_puts(out, d->unicode ? "\xE2\x96\x88" : "#");
        ses_draw_plain(out, d);
        ses_buf_put(out, '\n');
    }
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const bars *b = f->data;
    double max = ses_draw_largest(b->value, b->n), full = width - LEFT - 60;
    char number[24];
    for (int64_t i = 0; i < b->n; i++) {
        double y = (double)(i * ROW), w = isfinite(b->value[i]) ? fabs(b->value[i]) / max * full : 0;
        ses_svg_text(out, LEFT - 8, y + 15, "t e", b->name[i]);
        ses_buf_appendf(out,
                        "<rect class=\"f%d\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>",
                        b->value[i] < 0, LEFT, y + 3, w, ROW - 6);
        ses_svg_text(out, LEFT + w + 6, y + 15, "d", ses_draw_number(number, b->value[i]));
    }
    return (double)(b->n * ROW) + 4;
}

static const ses_figure_kind kind = { text, svg, NULL };

ses_figure *ses_report_bars(ses_report *r, const char *title, int64_t n, const char *const *name,
                            const double *value)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(bars));
    if (!f) return NULL;
    bars *b = f->data;
    b->name = ses_figure_strings(r, name, n);
    b->value = ses_figure_copy(r, value, (size_t)n, sizeof *value);
    b->n = b->name && b->value ? n : 0;
    return f;
}
