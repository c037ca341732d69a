/* Words in a row, colored by a signed value that is written below. */
#include "figure.h"

#include "markup.h"

#include <math.h>

enum { LINE = 48, PAD = 5, GAP = 4 };

typedef struct strip {
    int64_t n;
    const char *const *word;
    const double *value;
} strip;

/* One line of words from *at on: words, then values below. */
static void put_line(const strip *s, const ses_draw *d, double max, int64_t *at, ses_buf *out)
{
    ses_buf below = { 0 };
    int used = 0;
    char number[24], short_number[24];
    int64_t i = *at;
    for (; i < s->n; i++) {
        double x = s->value[i];
        snprintf(short_number, sizeof short_number, "%s", isnan(x) ? "" : ses_draw_number(number, x));
        int word = ses_draw_width(s->word[i]), value = ses_draw_width(short_number),
            width = word > value ? word : value;
        if (used && used + width + 1 > d->width) break;
        if (used) ses_buf_put(out, ' '), ses_buf_put(&below, ' ');
        ses_draw_on_shade(out, d, isnan(x) ? 0 : x / max, s->word[i]);
        ses_draw_cell(out, "", width - word, false);
        ses_draw_cell(&below, short_number, width, false);
        used += width + 1;
    }
    *at = i;
    ses_buf_put(out, '\n');
    ses_draw_dim(out, d);
    ses_buf_append(out, below.data ? below.data : "", below.len);
    ses_draw_plain(out, d);
    ses_buf_put(out, '\n');
    ses_buf_free(&below);
}

static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const strip *s = f->data;
    double max = ses_draw_largest(s->value, s->n);
    for (int64_t i = 0; i < s->n;) put_line(s, d, max, &i, out);
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const strip *s = f->data;
    double max = ses_draw_largest(s->value, s->n), x = 0, y = 0;
    char number[24];
    for (int64_t i = 0; i < s->n; i++) {
        double v = s->value[i], w = ses_svg_text_width(s->word[i]) + 2 * PAD;
        const char *below = isnan(v) ? "" : ses_draw_number(number, v);
        double least = 5.8 * ses_draw_width(below) + 4;
        if (w < least) w = least;
        if (x > 0 && x + w > width) x = 0, y += LINE;
        if (!isnan(v))
            ses_buf_appendf(out,
                            "<rect class=\"f%d\" fill-opacity=\"%.3f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                            "height=\"22\" rx=\"3\"/>",
                            v < 0, 0.4 * ses_svg_opacity(fabs(v) / max), x, y, w);
        ses_svg_text(out, x + w / 2, y + 15, "t m", s->word[i]);
        if (*below)
            ses_buf_appendf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"d m k\">%s</text>", x + w / 2, y + 35,
                            below);
        x += w + GAP;
    }
    return y + LINE;
}

/* Words that wrap, each above its value. */
static void html(const ses_figure *f, ses_buf *out)
{
    const strip *s = f->data;
    double max = ses_draw_largest(s->value, s->n);
    char number[24];
    ses_buf_puts(out, "<div class=\"strip\" role=\"group\">");
    for (int64_t i = 0; i < s->n; i++) {
        double v = s->value[i];
        if (isnan(v))
            ses_buf_puts(out, "<span><bdi>");
        else
            ses_buf_appendf(out, "<span class=\"f%d\" style=\"--part:%.1f%%\"><bdi>", v < 0,
                            55 * ses_svg_opacity(fabs(v) / max));
        ses_html_text(out, s->word[i]);
        ses_buf_appendf(out, "</bdi><small>%s</small></span>\n", isnan(v) ? "" : ses_draw_number(number, v));
    }
    ses_buf_puts(out, "</div>");
}

static const ses_figure_kind kind = { text, svg, html };

ses_figure *ses_report_strip(ses_report *r, const char *title, int64_t n, const char *const *word,
                             const double *value)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(strip));
    if (!f) return NULL;
    strip *s = f->data;
    s->word = ses_figure_strings(r, word, n);
    s->value = ses_figure_copy(r, value, (size_t)n, sizeof *value);
    s->n = s->word && s->value ? n : 0;
    return f;
}
