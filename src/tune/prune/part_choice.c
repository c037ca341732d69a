/* Chooses the layers, heads and rows that stay. */
#include "part_pruning_impl.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

typedef struct unit {
    double score;
    int64_t layer, index;
} unit;

static int by_score(const void *a, const void *b)
{
    const unit *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    if (x->layer != y->layer) return x->layer < y->layer ? 1 : -1; /* equal scores: upper layers first */
    return x->index < y->index ? 1 : -1;
}

/* ---- layers ---- */

static void remove_unimportant(ses_reduction *r, const ses_model *m, const double *score, int64_t n)
{
    while (n--) {
        int64_t worst = -1;
        for (int64_t l = 0; l < r->layers; l++)
            if (r->layer[l] && ses_reduction_may_remove_layer(m, l) && (worst < 0 || score[l] < score[worst]))
                worst = l;
        if (worst < 0) return;
        r->layer[worst] = 0;
    }
}

static void choose_layers(const ses_part_pruning_options *o, const ses_model *m, const ses_part_scores *s,
                          ses_reduction *r)
{
    int64_t L = r->layers, n = o->layers, first = !ses_reduction_may_remove_layer(m, 0);
    if (o->order == SES_LAYERS_BY_IMPORTANCE) {
        remove_unimportant(r, m, s->layer, L - n);
        return;
    }
    for (int64_t l = 0; l < L; l++) r->layer[l] = l < first;
    for (int64_t i = first; i < n; i++) {
        int64_t at = o->order == SES_LAYERS_FROM_TOP      ? i
                     : o->order == SES_LAYERS_FROM_BOTTOM ? L - n + i
                                                          : i * L / n;
        r->layer[at] = 1;
    }
}

/* ---- heads and rows ---- */

/* A list of all heads or rows of a layer (layer < 0: of all layers that stay), the least important first. */
static unit *list_units(const ses_reduction *r, const ses_model *m, const double *score, int64_t width,
                        bool heads, int64_t layer, int64_t *n, ses_err *e)
{
    unit *list = ses_alloc_array((size_t)((layer < 0 ? r->layers : 1) * width) + 1, sizeof *list, e);
    *n = 0;
    for (int64_t l = layer < 0 ? 0 : layer; list && l < (layer < 0 ? r->layers : layer + 1); l++) {
        int64_t own =
            heads ? ses_model_part_heads(m, SES_PART_MAIN, l) : ses_model_layer_neurons(m, SES_PART_MAIN, l);
        for (int64_t i = 0; r->layer[l] && i < own; i++) list[(*n)++] = (unit){ score[l * width + i], l, i };
    }
    if (list) qsort(list, (size_t)*n, sizeof *list, by_score);
    return list;
}

/* Removes a fraction of the units of a layer, or of all; each layer keeps its most important one. */
static bool remove_units(const ses_reduction *r, const ses_model *m, const double *score, int64_t width,
                         bool heads, int64_t layer, double fraction, uint8_t *keep, ses_err *e)
{
    int64_t n, removed = 0;
    unit *list = list_units(r, m, score, width, heads, layer, &n, e);
    int64_t *left = list ? ses_alloc_array((size_t)r->layers, sizeof *left, e) : NULL;
    int64_t wanted = (int64_t)floor(fraction * (double)n + 0.5);
    for (int64_t i = 0; left && i < n; i++) left[list[i].layer]++;
    for (int64_t i = 0; left && i < n && removed < wanted; i++) {
        if (left[list[i].layer] < 2) continue;
        left[list[i].layer]--, removed++;
        keep[list[i].layer * width + list[i].index] = 0;
    }
    bool ok = left != NULL;
    ses_free(left), ses_free(list);
    return ok;
}

static bool choose_units(const ses_part_pruning_options *o, const ses_reduction *r, const ses_model *m,
                         const double *score, int64_t width, bool heads, uint8_t *keep, ses_err *e)
{
    double fraction = heads ? o->heads : o->ffn;
    if (!o->by_layer) return remove_units(r, m, score, width, heads, -1, fraction, keep, e);
    for (int64_t l = 0; l < r->layers; l++)
        if (r->layer[l] && !remove_units(r, m, score, width, heads, l, fraction, keep, e)) return false;
    return true;
}

/* ---- widths ---- */

/* The nearest multiple, at least one and at most the width. Narrow blocks have smaller multiples. */
static int64_t rounded(int64_t kept, int64_t width, int64_t multiple)
{
    while (multiple > 1 && multiple > width / 8) multiple /= 2;
    if (multiple < 2) return kept;
    int64_t n = (kept + multiple / 2) / multiple * multiple;
    return n < multiple ? multiple : n > width ? width : n;
}

/* Adds or removes rows of a layer, by their importance, until the width is a multiple. */
static bool round_width(const ses_part_pruning_options *o, const ses_model *m, const double *score,
                        ses_reduction *r, int64_t layer, ses_err *e)
{
    int64_t n, width = ses_model_layer_neurons(m, SES_PART_MAIN, layer),
               kept = rounded(ses_reduction_rows(r, m, layer), width, o->multiple);
    unit *list = list_units(r, m, score, r->rows, false, layer, &n, e);
    for (int64_t i = 0; list && i < n; i++) r->row[layer * r->rows + list[i].index] = i >= n - kept;
    ses_free(list);
    return list != NULL;
}

bool ses_part_choice(const ses_part_pruning_options *o, const ses_model *m, const ses_part_scores *s,
                     ses_reduction *r, ses_err *e)
{
    if (o->layers) choose_layers(o, m, s, r);
    if (o->heads > 0 && !choose_units(o, r, m, s->head, r->heads[0], true, r->head[0], e)) return false;
    if (o->ffn > 0 && !choose_units(o, r, m, s->row, r->rows, false, r->row, e)) return false;
    for (int64_t l = 0; o->ffn > 0 && o->multiple > 1 && l < r->layers; l++)
        if (r->layer[l] && !round_width(o, m, s->row, r, l, e)) return false;
    return ses_reduction_check(r, m, e);
}
