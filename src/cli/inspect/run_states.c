/* Views of hidden states and attention for `sesame run`. */
#include "base/alloc.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "run_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ---- vectors ---- */

static void vector_cells(ses_text_table *t, const float *x, int64_t n, int max_values)
{
    char text[512] = "";
    size_t at = 0;
    ses_text_table_cell(t, "%.4g", sqrt(dot(x, x, n)));
    for (int64_t i = 0; i < n && i < max_values; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%8.4f", i ? " " : "", (double)x[i]);
    ses_text_table_cell(t, "%s%s", text, n > max_values ? " ..." : "");
}

static bool show_vectors(ses_run_view *r, const ses_output *states, const ses_output *pooled, int64_t s,
                         ses_err *e)
{
    char text[SES_TOKEN_TEXT];
    ses_token_slice at = ses_run_output_tokens(r, states, s);
    int64_t C = ses_run_cols(states);
    int fit = (r->term->width - 36) / 9, max_values = fit < 1 ? 1 : fit > 16 ? 16 : fit;
    const float *x = ses_run_rows(r, states, at.first, at.n, e);
    ses_text_table *t = x ? ses_text_table_new(">Position|>Token|>Norm|First values", e) : NULL;
    if (!t) return false;
    for (int64_t i = 0; i < at.n; i++) {
        ses_text_table_cell(t, "%" PRId64, i);
        ses_text_table_cell(t, "%s", ses_run_token_text(r, at.id[i], text));
        vector_cells(t, x + i * C, C, max_values);
    }
    x = pooled ? ses_run_rows(r, pooled, s, 1, e) : NULL;
    if (x) {
        ses_text_table_cell(t, "pooled");
        ses_text_table_cell(t, "%s", "");
        vector_cells(t, x, ses_run_cols(pooled), max_values);
    }
    bool ok = (x || !pooled) && ses_text_table_print(t, stdout, r->term, 2, e);
    ses_text_table_free(t);
    return ok;
}

/* Writes the rows of the sequence as [[...], ...]. */
static bool put_rows(ses_run_view *r, const ses_output *o, int64_t s, ses_err *e)
{
    ses_token_slice at = ses_run_output_tokens(r, o, s);
    ses_json_begin_array(r->w);
    for (int64_t i = 0; i < at.n; i++) {
        const float *x = ses_run_rows(r, o, at.first + i, 1, e);
        if (!x) return false;
        ses_json_put_floats(r->w, x, ses_run_cols(o));
    }
    ses_json_end_array(r->w);
    return true;
}

bool ses_view_vectors(ses_run_view *r, int64_t s, ses_err *e)
{
    const ses_output *states = ses_run_output(r, "last_hidden_state"),
                     *pooled = ses_run_find(r, "pooler_output");
    if (!r->w) return show_vectors(r, states, pooled, s, e);
    ses_json_put_key(r->w, states->name);
    if (!put_rows(r, states, s, e)) return false;
    if (!pooled) return true;
    const float *x = ses_run_rows(r, pooled, s, 1, e);
    if (!x) return false;
    ses_json_put_key(r->w, pooled->name);
    ses_json_put_floats(r->w, x, ses_run_cols(pooled));
    return true;
}

/* ---- layers ---- */

/* A family of outputs with one per layer: "hidden_states.0", "hidden_states.1", ... An encoder-decoder
 * has several, such as "encoder_hidden_states" and "decoder_hidden_states". */
typedef struct family {
    const char *name, *title;
} family;

static const family states[] = { { "hidden_states", "" },
                                 { "encoder_hidden_states", "Encoder" },
                                 { "decoder_hidden_states", "Decoder" } };
static const family attentions[] = { { "attentions", "Attention" },
                                     { "encoder_attentions", "Encoder attention" },
                                     { "decoder_attentions", "Decoder attention" },
                                     { "cross_attentions", "Cross-attention" } };

static const ses_output *layer(const ses_run_view *r, const family *f, int64_t i)
{
    char text[64];
    snprintf(text, sizeof text, "%s.%" PRId64, f->name, i);
    return ses_run_find(r, text);
}

/* ---- hidden states ---- */

/* Cells of a layer: norms of its hidden states, and their cosine to the previous layer. */
static void layer_cells(ses_text_table *t, const float *x, const float *previous, int64_t T, int64_t C)
{
    double sum = 0, min = INFINITY, max = 0, cosine = 0;
    for (int64_t i = 0; i < T; i++) {
        const float *a = x + i * C, *b = previous ? previous + i * C : a;
        double norm = sqrt(dot(a, a, C)), other = sqrt(dot(b, b, C));
        sum += norm;
        min = norm < min ? norm : min;
        max = norm > max ? norm : max;
        cosine += norm > 0 && other > 0 ? dot(a, b, C) / (norm * other) : 0;
    }
    ses_text_table_cell(t, "%.4g", sum / (double)T);
    ses_text_table_cell(t, "%.4g", min);
    ses_text_table_cell(t, "%.4g", max);
    ses_text_table_cell(t, previous ? "%.3f" : "", cosine / (double)T);
}

static bool show_layers(ses_run_view *r, const family *f, int64_t s, ses_err *e)
{
    const ses_output *o = layer(r, f, 0);
    ses_token_slice at = ses_run_output_tokens(r, o, s);
    size_t bytes = (size_t)(at.n * ses_run_cols(o)) * sizeof(float);
    float *previous = ses_alloc(bytes, e);
    ses_text_table *t =
        previous ? ses_text_table_new(">Layer|>Mean norm|>min|>max|>Cosine to previous layer", e) : NULL;
    bool ok = t != NULL;
    for (int64_t l = 0; ok && (o = layer(r, f, l)) != NULL && ses_run_cols(o) * at.n * 4 == (int64_t)bytes;
         l++) {
        const float *x = ses_run_rows(r, o, at.first, at.n, e);
        if (!(ok = x != NULL)) break;
        ses_text_table_cell(t, l ? "%" PRId64 : "embeddings", l - 1);
        layer_cells(t, x, l ? previous : NULL, at.n, ses_run_cols(o));
        memcpy(previous, x, bytes);
    }
    if (ok) printf(*f->title ? "\n  %s\n" : "%s\n", f->title);
    ok = ok && ses_text_table_print(t, stdout, r->term, 2, e);
    ses_text_table_free(t);
    ses_free(previous);
    return ok;
}

static bool put_layers(ses_run_view *r, const family *f, int64_t s, ses_err *e)
{
    const ses_output *o;
    ses_json_member_array(r->w, f->name);
    for (int64_t l = 0; (o = layer(r, f, l)) != NULL; l++)
        if (!put_rows(r, o, s, e)) return false;
    ses_json_end_array(r->w);
    return true;
}

bool ses_view_hidden_states(ses_run_view *r, int64_t s, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < SES_LEN(states); i++)
        if (layer(r, &states[i], 0))
            ok = r->w ? put_layers(r, &states[i], s, e) : show_layers(r, &states[i], s, e);
    return ok;
}

/* ---- attention ---- */

/* Position of [heads, queries, keys] of a sequence in an attention output. */
typedef struct maps {
    ses_token_slice q, k;
    int64_t heads, first;
} maps;

static ses_token_slice queries_of(const ses_run_view *r, const ses_output *o, int64_t s)
{
    return o->axis == SES_PER_QUERY_KEY ? ses_run_input_tokens(r, s) : ses_run_target_tokens(r, s);
}

static ses_token_slice keys_of(const ses_run_view *r, const ses_output *o, int64_t s)
{
    return o->axis == SES_PER_TARGET_QUERY_KEY ? ses_run_target_tokens(r, s) : ses_run_input_tokens(r, s);
}

static maps maps_of(const ses_run_view *r, const ses_output *o, int64_t s)
{
    int64_t pairs = 0, before = 0;
    for (int64_t i = 0; i < r->batch.seqs; i++) {
        if (i == s) before = pairs;
        pairs += queries_of(r, o, i).n * keys_of(r, o, i).n;
    }
    int64_t heads = ses_count(o->tensor) / pairs;
    return (maps){ queries_of(r, o, s), keys_of(r, o, s), heads, heads * before };
}

static bool put_attentions(ses_run_view *r, const family *f, int64_t s, ses_err *e)
{
    const ses_output *o;
    ses_json_member_array(r->w, f->name);
    for (int64_t l = 0; (o = layer(r, f, l)) != NULL; l++) {
        maps m = maps_of(r, o, s);
        const float *p = ses_run_values(r, o, m.first, m.heads * m.q.n * m.k.n, e);
        if (!p) return false;
        ses_json_begin_array(r->w);
        for (int64_t h = 0; h < m.heads; h++) {
            ses_json_begin_array(r->w);
            for (int64_t q = 0; q < m.q.n; q++, p += m.k.n) ses_json_put_floats(r->w, p, m.k.n);
            ses_json_end_array(r->w);
        }
        ses_json_end_array(r->w);
    }
    ses_json_end_array(r->w);
    return true;
}

/* Draws the map of a head, or the mean over heads. */
static bool show_attention(ses_run_view *r, const family *f, int64_t s, ses_err *e)
{
    int64_t l = r->a->layer, head = r->a->head;
    if (l < 0)
        while (layer(r, f, l + 1)) l++; /* the last */
    const ses_output *o = layer(r, f, l);
    if (!o) return true; /* the other stack may have more layers */
    maps m = maps_of(r, o, s);
    int64_t n = m.q.n * m.k.n;
    const float *p = ses_run_values(r, o, m.first, m.heads * n, e);
    float *map = p ? ses_alloc_array((size_t)n, sizeof *map, e) : NULL;
    if (!map) return false;
    for (int64_t h = 0; h < m.heads; h++)
        for (int64_t i = 0; i < n; i++)
            if (head < 0 || h == head) map[i] += p[h * n + i] / (head < 0 ? (float)m.heads : 1);
    printf("\n  %s, layer %" PRId64 ", ", f->title, l);
    if (head < 0)
        printf("mean of %" PRId64 " heads", m.heads);
    else
        printf("head %" PRId64, head);
    ses_heatmap_print(r, map, m.q.n, m.k.n, m.q.id);
    ses_free(map);
    return true;
}

bool ses_view_attentions(ses_run_view *r, int64_t s, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < SES_LEN(attentions); i++)
        if (layer(r, &attentions[i], 0))
            ok = r->w ? put_attentions(r, &attentions[i], s, e) : show_attention(r, &attentions[i], s, e);
    return ok;
}
