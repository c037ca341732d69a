/* What is inside a model: vectors of tokens, hidden states of layers, attention. */
#include "base/alloc.h"
#include "run.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static int64_t length(const ses_runner *r, int64_t s) { return r->lines.cu[s + 1] - r->lines.cu[s]; }

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ---- vectors ---- */

static void vector_cells(ses_table *t, const float *x, int64_t n, int numbers)
{
    char text[512] = "";
    size_t at = 0;
    ses_table_cell(t, "%.4g", sqrt(dot(x, x, n)));
    for (int64_t i = 0; i < n && i < numbers; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%8.4f", i ? " " : "", (double)x[i]);
    ses_table_cell(t, "%s%s", text, n > numbers ? " ..." : "");
}

static bool show_vectors(ses_runner *r, const ses_output *states, const ses_output *pooled, int64_t s,
                         ses_err *e)
{
    char text[SES_TOKEN_TEXT];
    int64_t C = ses_run_cols(states), T = length(r, s);
    int room = (r->term->width - 36) / 9, numbers = room < 1 ? 1 : room > 16 ? 16 : room;
    const float *x = ses_run_rows(r, states, r->lines.cu[s], T, e);
    ses_table *t = x ? ses_table_new(">Position|>Token|>Norm|First numbers", e) : NULL;
    if (!t) return false;
    for (int64_t i = 0; i < T; i++) {
        ses_table_cell(t, "%" PRId64, i);
        ses_table_cell(t, "%s", ses_run_token(r, r->lines.ids[r->lines.cu[s] + i], text));
        vector_cells(t, x + i * C, C, numbers);
    }
    x = pooled ? ses_run_rows(r, pooled, s, 1, e) : NULL;
    if (x) {
        ses_table_cell(t, "pooled");
        ses_table_cell(t, "%s", "");
        vector_cells(t, x, C, numbers);
    }
    bool ok = (x || !pooled) && ses_table_print(t, stdout, r->term, 2, e);
    ses_table_free(t);
    return ok;
}

/* [[...], ...] of the sequence's rows, under a key or as an element. */
static bool put_rows(ses_runner *r, const ses_output *o, int64_t first, int64_t n, ses_err *e)
{
    ses_json_begin_array(r->w);
    for (int64_t i = 0; i < n; i++) {
        const float *x = ses_run_rows(r, o, first + i, 1, e);
        if (!x) return false;
        ses_json_floats(r->w, x, ses_run_cols(o));
    }
    ses_json_end_array(r->w);
    return true;
}

bool ses_view_vectors(ses_runner *r, int64_t s, ses_err *e)
{
    const ses_output *states = ses_run_output(r, "last_hidden_state");
    const ses_output *pooled = r->model->class->pooler ? ses_run_output(r, "pooler_output") : NULL;
    if (!r->w) return show_vectors(r, states, pooled, s, e);
    ses_json_put_key(r->w, states->name);
    if (!put_rows(r, states, r->lines.cu[s], length(r, s), e)) return false;
    if (!pooled) return true;
    const float *x = ses_run_rows(r, pooled, s, 1, e);
    if (!x) return false;
    ses_json_put_key(r->w, pooled->name);
    ses_json_floats(r->w, x, ses_run_cols(pooled));
    return true;
}

/* ---- hidden states ---- */

static const ses_output *numbered(const ses_runner *r, const char *name, int64_t i)
{
    char text[64];
    snprintf(text, sizeof text, "%s.%" PRId64, name, i);
    return ses_run_output(r, text);
}

/* A layer's row: how long its vectors are, and how much they turned from the layer below. */
static void layer_cells(ses_table *t, const float *x, const float *below, int64_t T, int64_t C)
{
    double sum = 0, least = INFINITY, most = 0, turn = 0;
    for (int64_t i = 0; i < T; i++) {
        const float *a = x + i * C, *b = below ? below + i * C : a;
        double norm = sqrt(dot(a, a, C)), other = sqrt(dot(b, b, C));
        sum += norm;
        least = norm < least ? norm : least;
        most = norm > most ? norm : most;
        turn += norm > 0 && other > 0 ? dot(a, b, C) / (norm * other) : 0;
    }
    ses_table_cell(t, "%.4g", sum / (double)T);
    ses_table_cell(t, "%.4g", least);
    ses_table_cell(t, "%.4g", most);
    ses_table_cell(t, below ? "%.3f" : "", turn / (double)T);
}

static bool show_layers(ses_runner *r, int64_t s, ses_err *e)
{
    int64_t T = length(r, s), C = r->model->c.hidden;
    float *below = ses_alloc_array((size_t)(T * C), sizeof *below, e);
    ses_table *t =
        below ? ses_table_new(">Layer|>Mean norm|>least|>most|>Cosine to the layer below", e) : NULL;
    bool ok = t != NULL;
    for (int64_t l = 0; ok && l <= r->model->c.layers; l++) {
        const float *x = ses_run_rows(r, numbered(r, "hidden_states", l), r->lines.cu[s], T, e);
        if (!(ok = x != NULL)) break;
        ses_table_cell(t, l ? "%" PRId64 : "embeddings", l - 1);
        layer_cells(t, x, l ? below : NULL, T, C);
        for (int64_t i = 0; i < T * C; i++) below[i] = x[i];
    }
    if (ok) putchar('\n');
    ok = ok && ses_table_print(t, stdout, r->term, 2, e);
    ses_table_free(t);
    ses_free(below);
    return ok;
}

bool ses_view_hidden_states(ses_runner *r, int64_t s, ses_err *e)
{
    if (!r->w) return show_layers(r, s, e);
    ses_json_array(r->w, "hidden_states");
    for (int64_t l = 0; l <= r->model->c.layers; l++)
        if (!put_rows(r, numbered(r, "hidden_states", l), r->lines.cu[s], length(r, s), e)) return false;
    ses_json_end_array(r->w);
    return true;
}

/* ---- attention ---- */

/* Where sequence s's [heads, len, len] begin. */
static int64_t pairs_before(const ses_runner *r, int64_t s)
{
    int64_t at = 0;
    for (int64_t i = 0; i < s; i++) at += r->model->c.heads * length(r, i) * length(r, i);
    return at;
}

static bool put_attentions(ses_runner *r, int64_t s, ses_err *e)
{
    int64_t T = length(r, s), H = r->model->c.heads;
    ses_json_array(r->w, "attentions");
    for (int64_t l = 0; l < r->model->c.layers; l++) {
        const float *p = ses_run_numbers(r, numbered(r, "attentions", l), pairs_before(r, s), H * T * T, e);
        if (!p) return false;
        ses_json_begin_array(r->w);
        for (int64_t h = 0; h < H; h++) {
            ses_json_begin_array(r->w);
            for (int64_t q = 0; q < T; q++, p += T) ses_json_floats(r->w, p, T);
            ses_json_end_array(r->w);
        }
        ses_json_end_array(r->w);
    }
    ses_json_end_array(r->w);
    return true;
}

/* One head's map, or the mean of all. */
static bool show_attention(ses_runner *r, int64_t s, ses_err *e)
{
    int64_t T = length(r, s), H = r->model->c.heads, n = T * T;
    int64_t layer = r->a->layer < 0 ? r->model->c.layers - 1 : r->a->layer, head = r->a->head;
    const float *p = ses_run_numbers(r, numbered(r, "attentions", layer), pairs_before(r, s), H * n, e);
    float *map = p ? ses_alloc_array((size_t)n, sizeof *map, e) : NULL;
    if (!map) return false;
    for (int64_t h = 0; h < H; h++)
        for (int64_t i = 0; i < n; i++)
            if (head < 0 || h == head) map[i] += p[h * n + i] / (head < 0 ? (float)H : 1);
    printf("\n  Attention of layer %" PRId64 ", ", layer);
    if (head < 0)
        printf("mean of %" PRId64 " heads", H);
    else
        printf("head %" PRId64, head);
    ses_heatmap_print(r, map, T, T, r->lines.ids + r->lines.cu[s]);
    ses_free(map);
    return true;
}

bool ses_view_attentions(ses_runner *r, int64_t s, ses_err *e)
{
    return r->w ? put_attentions(r, s, e) : show_attention(r, s, e);
}
