/* Dependency trees as arcs: one tree above the words, another below. */
#include "figure.h"

#include "markup.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 14, LEVEL = 17, MAX_LEVELS = 9 };

typedef struct arcs {
    int64_t n;
    const char *const *word;
    const int32_t *head, *predicted;
} arcs;

static bool same_edge(const int32_t *tree, int64_t i, int32_t head)
{
    if (!tree || head < 0) return true;
    return tree[i] == head || tree[head] == (int32_t)i;
}

/* Each word with its heads: readable for any length. */
static void text(const ses_figure *f, const ses_draw *d, ses_buf *out)
{
    const arcs *a = f->data;
    int width = 4;
    for (int64_t i = 0; i < a->n; i++) {
        int w = ses_draw_width(a->word[i]);
        if (w > width) width = w < 24 ? w : 24;
    }
    for (int64_t i = 0; i < a->n; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i + 1);
        ses_draw_dim(out, d);
        ses_draw_cell(out, number, 3, true);
        ses_draw_plain(out, d);
        ses_buf_put(out, ' ');
        ses_draw_cell(out, a->word[i], width, false);
        const int32_t *tree[] = { a->head, a->predicted };
        for (int k = 0; k < 2; k++) {
            if (!tree[k]) continue;
            int32_t h = tree[k][i];
            ses_buf_puts(out, d->unicode ? "  \xE2\x86\x90 " : "  <- ");
            bool wrong = k == 1 && !same_edge(a->head, i, h);
            if (wrong) ses_draw_hue(out, d, 5);
            ses_draw_cell(out, h < 0 ? "(root)" : a->word[h], width + 2, false);
            if (wrong) ses_draw_plain(out, d);
        }
        ses_buf_put(out, '\n');
    }
    if (a->head && a->predicted) ses_buf_puts(out, "(word, its head, its predicted head)\n");
}

/* Height of the arc between two words: their distance, up to a limit. */
static int level_of(int64_t i, int64_t j)
{
    int64_t n = llabs((long long)(i - j));
    return n < MAX_LEVELS ? (int)n : MAX_LEVELS;
}

static int highest(const int32_t *tree, int64_t n)
{
    int max = 0;
    for (int64_t i = 0; tree && i < n; i++)
        if (tree[i] >= 0 && level_of(i, tree[i]) > max) max = level_of(i, tree[i]);
    return max;
}

static void put_arcs(const arcs *a, const int32_t *tree, const double *x, double y, int up, ses_buf *out)
{
    for (int64_t i = 0; i < a->n; i++) {
        int32_t h = tree[i];
        if (h < 0) continue;
        bool wrong = tree == a->predicted && !same_edge(a->head, i, h);
        double top = y - up * LEVEL * level_of(i, h);
        ses_buf_appendf(
            out,
            "<path class=\"l s%d\" stroke-width=\"1.5\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>",
            wrong             ? 1
            : tree == a->head ? 0
                              : 2,
            x[h], y, x[h], top, x[i], top, x[i], y);
    }
}

static double svg(const ses_figure *f, double width, ses_buf *out)
{
    const arcs *a = f->data;
    double *x = malloc((size_t)(a->n ? a->n : 1) * sizeof *x), at = GAP / 2;
    if (!x) {
        out->wanted = 1;
        return 0;
    }
    for (int64_t i = 0; i < a->n; i++) {
        double w = ses_svg_text_width(a->word[i]);
        x[i] = at + w / 2;
        at += w + GAP;
    }
    double fit = at > width ? width / at : 1, above = LEVEL * highest(a->head, a->n),
           below = LEVEL * highest(a->predicted, a->n);
    ses_buf_appendf(out, "<g transform=\"scale(%.4f)\">", fit);
    if (a->head) put_arcs(a, a->head, x, above + 4, 1, out);
    for (int64_t i = 0; i < a->n; i++) ses_svg_text(out, x[i], above + 20, "t m", a->word[i]);
    if (a->predicted) put_arcs(a, a->predicted, x, above + 28, -1, out);
    ses_buf_puts(out, "</g>");
    free(x);
    return fit * (above + below + 36);
}

static const ses_figure_kind kind = { text, svg, NULL };

ses_figure *ses_report_arcs(ses_report *r, const char *title, int64_t n, const char *const *word,
                            const int32_t *head, const int32_t *predicted)
{
    ses_figure *f = ses_figure_new(r, &kind, title, sizeof(arcs));
    if (!f) return NULL;
    arcs *a = f->data;
    a->word = ses_figure_strings(r, word, n);
    a->head = ses_figure_copy(r, head, (size_t)n, sizeof *head);
    a->predicted = ses_figure_copy(r, predicted, (size_t)n, sizeof *predicted);
    a->n = a->word ? n : 0;
    return f;
}
