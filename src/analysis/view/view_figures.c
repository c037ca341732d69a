/* Figures of an attention view: overview, strongest weights, matrices, neurons. */
#include "analysis/view/view_figures.h"

#include "analysis/heads/head_stats.h"
#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THUMBNAIL = 32, STRONGEST = 3 };

float *ses_view_mean(const ses_view_family *f, const ses_view_layer *l, const ses_layer_set *heads)
{
    int64_t n = f->rows * f->cols, chosen = 0;
    float *mean = ses_alloc_array((size_t)n, sizeof *mean, NULL);
    for (int64_t h = 0; mean && h < l->heads; h++) {
        if (!ses_layer_set_has(heads, h + 1)) continue;
        chosen++;
        for (int64_t i = 0; i < n; i++) mean[i] += l->weight[h * n + i];
    }
    for (int64_t i = 0; mean && chosen && i < n; i++) mean[i] /= (float)chosen;
    return mean;
}

static int64_t count_heads(const ses_view_layer *l, const ses_layer_set *heads)
{
    int64_t n = 0;
    for (int64_t h = 0; h < l->heads; h++) n += ses_layer_set_has(heads, h + 1);
    return n;
}

/* "Encoder attention, layer 3, head 5" */
static void put_title(char buf[160], const ses_view_family *f, const ses_view_layer *l,
                      const ses_layer_set *heads)
{
    int64_t n = count_heads(l, heads), first = 0;
    while (!ses_layer_set_has(heads, first + 1) && first < l->heads) first++;
    if (n == 1)
        snprintf(buf, 160, "%s, layer %" PRId64 ", head %" PRId64, f->title, l->number, first + 1);
    else
        snprintf(buf, 160, "%s, layer %" PRId64 ", mean of %" PRId64 " heads", f->title, l->number, n);
}

static const ses_view_layer *layer_of(const ses_view_family *f, int64_t number)
{
    return number >= 1 && number <= f->n_layers && f->layer[number - 1].chosen ? &f->layer[number - 1] : NULL;
}

/* ---- overview ---- */

/* The largest weights of a map in at most `rows` x `cols` cells. */
static void shrink(const float *w, const ses_view_family *f, float *out, int64_t rows, int64_t cols)
{
    memset(out, 0, (size_t)(rows * cols) * sizeof *out);
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t j = 0; j < f->cols; j++) {
            float *to = out + i * rows / f->rows * cols + j * cols / f->cols, x = w[i * f->cols + j];
            if (x > *to) *to = x;
        }
}

/* "next 61 %": where the head looks most. */
static void put_label(const ses_view_family *f, const float *w, char buf[48])
{
    ses_head_stats s = { 0 };
    int best = 0;
    bool square = f->from == f->to;
    ses_head_stats_add(&s, w, f->rows, f->cols, f->from->unit_special, f->to->unit_special, square,
                       f->causal);
    for (int p = 1; p < SES_ATTENDED_COUNT; p++)
        if (ses_head_stats_mean(&s, (ses_attended)p) > ses_head_stats_mean(&s, (ses_attended)best)) best = p;
    const char *label = ses_head_stats_label(&s);
    if (label && !strcmp(label, "broad"))
        snprintf(buf, 48, "broad");
    else
        snprintf(buf, 48, "%s %.0f %%", ses_attended_name((ses_attended)best),
                 100 * ses_head_stats_mean(&s, (ses_attended)best));
}

typedef struct overview {
    const char **row_name, **col_name, **label;
    char (*names)[12], (*labels)[48];
    float *value;
} overview;

static void overview_free(overview *o)
{
    ses_free(o->row_name);
    ses_free(o->col_name);
    ses_free(o->label);
    ses_free(o->names);
    ses_free(o->labels);
    ses_free(o->value);
}

static bool overview_alloc(overview *o, int64_t rows, int64_t cols, int64_t map)
{
    size_t n = (size_t)(rows * cols);
    o->row_name = ses_alloc_array((size_t)rows, sizeof *o->row_name, NULL);
    o->col_name = ses_alloc_array((size_t)cols, sizeof *o->col_name, NULL);
    o->label = ses_alloc_array(n, sizeof *o->label, NULL);
    o->names = ses_alloc_array((size_t)(rows + cols), sizeof *o->names, NULL);
    o->labels = ses_alloc_array(n, sizeof *o->labels, NULL);
    o->value = ses_alloc_array(n * (size_t)map, sizeof *o->value, NULL);
    return o->row_name && o->col_name && o->label && o->names && o->labels && o->value;
}

static const char *number_name(char buf[12], int64_t n)
{
    snprintf(buf, 12, "%d", (int)n);
    return buf;
}

static void fill_overview(const ses_view_family *f, overview *o, const ses_layer_set *heads, int64_t cols,
                          int64_t map_rows, int64_t map_cols)
{
    int64_t row = 0, map = map_rows * map_cols;
    for (int64_t i = 0; i < f->n_layers; i++) {
        const ses_view_layer *l = &f->layer[i];
        if (!l->chosen) continue;
        o->row_name[row] = number_name(o->names[row], l->number);
        for (int64_t k = 0, c = 0; k < SES_LAYER_SET_MAX && c < cols; k++) {
            if (!ses_layer_set_has(heads, k + 1)) continue;
            int64_t at = row * cols + c++;
            o->label[at] = o->labels[at];
            o->value[at * map] = NAN; /* a head that was removed */
            if (k >= l->heads) continue;
            const float *w = l->weight + k * f->rows * f->cols;
            shrink(w, f, o->value + at * map, map_rows, map_cols);
            put_label(f, w, o->labels[at]);
        }
        row++;
    }
}

static void draw_overview(const ses_view_family *f, ses_report *r, const ses_layer_set *heads)
{
    int64_t most = 0, cols = 0, rows = f->n_chosen, map_rows = f->rows < THUMBNAIL ? f->rows : THUMBNAIL,
            map_cols = f->cols < THUMBNAIL ? f->cols : THUMBNAIL;
    overview o = { 0 };
    for (int64_t i = 0; i < f->n_layers; i++)
        if (f->layer[i].heads > most) most = f->layer[i].heads;
    for (int64_t k = 1; k <= most; k++) cols += ses_layer_set_has(heads, k);
    if (rows && cols && overview_alloc(&o, rows, cols, map_rows * map_cols)) {
        for (int64_t k = 1, c = 0; k <= most; k++)
            if (ses_layer_set_has(heads, k)) o.col_name[c] = number_name(o.names[rows + c], k), c++;
        fill_overview(f, &o, heads, cols, map_rows, map_cols);
        ses_report_thumbnails(r, f->title,
                              &(ses_figure_thumbnails){ .rows = rows,
                                                        .cols = cols,
                                                        .map_rows = map_rows,
                                                        .map_cols = map_cols,
                                                        .value = o.value,
                                                        .row_name = o.row_name,
                                                        .col_name = o.col_name,
                                                        .label = o.label,
                                                        .row_label = "layers",
                                                        .col_label = "heads" });
    }
    overview_free(&o);
}

void ses_view_draw_overview(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads)
{
    for (int i = 0; i < v->n_families; i++) draw_overview(&v->family[i], r, heads);
}

/* ---- strongest weights ---- */

static void put_strongest(ses_figure *t, const ses_view_family *f, const float *w, int64_t i)
{
    int64_t used[STRONGEST];
    ses_figure_cell(t, "%s", f->from->unit[i]);
    for (int k = 0; k < STRONGEST; k++) {
        int64_t best = -1;
        for (int64_t j = 0; j < f->cols; j++) {
            bool taken = false;
            for (int u = 0; u < k; u++) taken = taken || used[u] == j;
            if (!taken && w[j] > 0 && (best < 0 || w[j] > w[best])) best = j;
        }
        used[k] = best;
        if (best < 0)
            ses_figure_cell(t, "%s", "");
        else
            ses_figure_cell(t, "%s %.2f", f->to->unit[best], (double)w[best]);
    }
}

void ses_view_draw_strongest(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads,
                             int64_t layer)
{
    for (int k = 0; k < v->n_families; k++) {
        const ses_view_family *f = &v->family[k];
        const ses_view_layer *l = layer_of(f, layer);
        char title[160];
        float *mean = l ? ses_view_mean(f, l, heads) : NULL;
        if (!mean) continue;
        put_title(title, f, l, heads);
        ses_figure *t = ses_report_table(
            r, title, v->words ? "Word|attends most to|second|third" : "Token|attends most to|second|third");
        for (int64_t i = 0; i < f->rows; i++) put_strongest(t, f, mean + i * f->cols, i);
        ses_free(mean);
    }
}

/* ---- matrices ---- */

static void heatmap(const ses_view_family *f, ses_report *r, const char *title, const float *value)
{
    ses_report_heatmap(r, title,
                       &(ses_figure_matrix){ .rows = f->rows,
                                             .cols = f->cols,
                                             .value = value,
                                             .row_name = f->from->unit,
                                             .col_name = f->to->unit,
                                             .row_label = "queries",
                                             .col_label = "keys",
                                             .scale = SES_SCALE_RANGE });
}

void ses_view_draw_matrix(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads,
                          int64_t layer)
{
    for (int k = 0; k < v->n_families; k++) {
        const ses_view_layer *l = layer_of(&v->family[k], layer);
        float *mean = l ? ses_view_mean(&v->family[k], l, heads) : NULL;
        char title[160];
        if (!mean) continue;
        put_title(title, &v->family[k], l, heads);
        heatmap(&v->family[k], r, title, mean);
        ses_free(mean);
    }
}

static void draw_doubles(const ses_view_family *f, ses_report *r, const char *title, const double *x)
{
    float *value = x ? ses_alloc_array((size_t)(f->rows * f->cols), sizeof *value, NULL) : NULL;
    for (int64_t i = 0; value && i < f->rows * f->cols; i++) value[i] = (float)x[i];
    if (value) heatmap(f, r, title, value);
    ses_free(value);
}

void ses_view_draw_rollout(const ses_attention_view *v, ses_report *r, int64_t layer)
{
    char title[160];
    for (int k = 0; k < v->n_families; k++) {
        const ses_view_layer *l = layer_of(&v->family[k], layer);
        snprintf(title, sizeof title, "%s: rollout to layer %" PRId64, v->family[k].title, layer);
        if (l) draw_doubles(&v->family[k], r, title, l->rollout);
    }
}

void ses_view_draw_flow(const ses_attention_view *v, ses_report *r)
{
    char title[160];
    for (int k = 0; k < v->n_families; k++) {
        snprintf(title, sizeof title, "%s: flow to the last layer", v->family[k].title);
        draw_doubles(&v->family[k], r, title, v->family[k].flow);
    }
}

/* ---- neurons ---- */

void ses_view_draw_neurons(const ses_view_family *f, ses_report *r, int64_t layer, int64_t head, int64_t row)
{
    const ses_view_layer *l = layer_of(f, layer);
    int64_t width = l ? l->heads * f->dim : 0, keys = f->causal ? row + 1 : f->cols;
    float *product = l && l->q ? ses_alloc_array((size_t)(keys * f->dim), sizeof *product, NULL) : NULL;
    char title[256];
    if (!product) return;
    snprintf(title, sizeof title, "%s, layer %" PRId64 ", head %" PRId64 ": what \"%.80s\" attends to",
             f->title, layer, head + 1, f->from->unit[row]);
    ses_figure *t =
        ses_report_table(r, title, l->bias ? "Key|>q.k*scale|>bias|>softmax" : "Key|>q.k*scale|>softmax");
    for (int64_t j = 0; j < keys; j++) {
        double score = 0;
        for (int64_t d = 0; d < f->dim; d++) {
            product[j * f->dim + d] =
                l->q[row * width + head * f->dim + d] * l->k[j * width + head * f->dim + d];
            score += (double)product[j * f->dim + d];
        }
        int64_t at = (head * f->rows + row) * f->cols + j;
        ses_figure_cell(t, "%s", f->to->unit[j]);
        ses_figure_cell(t, "%.3f", score * l->scale);
        if (l->bias) ses_figure_cell(t, "%.3f", (double)l->bias[at]);
        ses_figure_cell(t, "%.4f", (double)l->weight[at]);
    }
    ses_report_heatmap(r, "q * k, number by number",
                       &(ses_figure_matrix){ .rows = keys,
                                             .cols = f->dim,
                                             .value = product,
                                             .row_name = f->to->unit,
                                             .row_label = "keys",
                                             .col_label = "numbers of the head",
                                             .scale = SES_SCALE_SIGNED });
    ses_free(product);
}
