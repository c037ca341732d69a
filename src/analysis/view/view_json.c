/* The JSON of an attention view. */
#include "analysis/view/attention_view.h"

#include <math.h>
#include <string.h>

static void put_row(ses_json_writer *w, const float *x, int64_t n)
{
    ses_json_begin_array(w);
    for (int64_t i = 0; i < n; i++) ses_json_put_float(w, x[i]);
    ses_json_end_array(w);
}

static void put_matrix(ses_json_writer *w, const float *x, int64_t rows, int64_t cols)
{
    ses_json_begin_array(w);
    for (int64_t i = 0; i < rows; i++) put_row(w, x + i * cols, cols);
    ses_json_end_array(w);
}

static void put_doubles(ses_json_writer *w, const double *x, int64_t rows, int64_t cols)
{
    ses_json_begin_array(w);
    for (int64_t i = 0; i < rows; i++) {
        ses_json_begin_array(w);
        for (int64_t j = 0; j < cols; j++) ses_json_put_real(w, x[i * cols + j]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

static void put_units(ses_json_writer *w, const char *key, const ses_view_side *s)
{
    ses_json_member_array(w, key);
    for (int64_t i = 0; i < s->units.n; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "text", s->unit[i]);
        ses_json_member_bool(w, "special", s->unit_special[i]);
        ses_json_member_bool(w, "second", s->unit_pair[i]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

/* Part of a row of columns of one head: rows of x [rows, heads * dim]. */
static void put_vectors(ses_json_writer *w, const char *key, const float *x, int64_t rows, int64_t width,
                        int64_t first, int64_t dim)
{
    ses_json_member_array(w, key);
    for (int64_t i = 0; i < rows; i++) put_row(w, x + i * width + first, dim);
    ses_json_end_array(w);
}

/* q.k*scale of a head. */
static void put_scores(ses_json_writer *w, const ses_view_family *f, const ses_view_layer *l, int64_t h)
{
    int64_t width = l->heads * f->dim;
    ses_json_member_array(w, "scores");
    for (int64_t i = 0; i < f->rows; i++) {
        ses_json_begin_array(w);
        for (int64_t j = 0; j < f->cols; j++) {
            double sum = 0;
            for (int64_t d = 0; d < f->dim; d++)
                sum += (double)l->q[i * width + h * f->dim + d] * (double)l->k[j * width + h * f->dim + d];
            ses_json_put_float(w, (float)(sum * l->scale));
        }
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

static void put_neurons(ses_json_writer *w, const ses_view_family *f, const ses_view_layer *l, int64_t h)
{
    int64_t width = l->heads * f->dim, map = f->rows * f->cols;
    ses_json_member_real(w, "scale", l->scale);
    put_vectors(w, "queries", l->q, f->rows, width, h * f->dim, f->dim);
    put_vectors(w, "keys", l->k, f->cols, width, h * f->dim, f->dim);
    put_scores(w, f, l, h);
    if (!l->bias) return;
    ses_json_put_key(w, "bias");
    put_matrix(w, l->bias + h * map, f->rows, f->cols);
}

static void put_heads(ses_json_writer *w, const ses_view_family *f, const ses_view_layer *l,
                      const ses_layer_set *heads, bool neurons)
{
    ses_json_member_array(w, "heads");
    for (int64_t h = 0; h < l->heads; h++) {
        if (!ses_layer_set_has(heads, h + 1)) continue;
        ses_json_begin_object(w);
        ses_json_member_int(w, "head", h + 1);
        ses_json_put_key(w, "weights");
        put_matrix(w, l->weight + h * f->rows * f->cols, f->rows, f->cols);
        if (neurons && l->q) put_neurons(w, f, l, h);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_family(ses_json_writer *w, const ses_attention_view *v, const ses_view_family *f,
                       const char *mode, const ses_layer_set *heads)
{
    bool rollout = !strcmp(mode, "rollout"), flow = !strcmp(mode, "flow");
    ses_json_begin_object(w);
    ses_json_member_string(w, "family", f->id);
    ses_json_member_string(w, "rows", f->from == &v->target ? "target" : "source");
    ses_json_member_string(w, "columns", f->to == &v->target ? "target" : "source");
    ses_json_member_bool(w, "causal", f->causal);
    if (flow) {
        ses_json_put_key(w, "flow");
        put_doubles(w, f->flow, f->rows, f->cols);
    } else {
        ses_json_member_array(w, "layers");
        for (int64_t i = 0; i < f->n_layers; i++) {
            const ses_view_layer *l = &f->layer[i];
            if (!l->chosen) continue;
            ses_json_begin_object(w);
            ses_json_member_int(w, "layer", l->number);
            if (rollout) {
                ses_json_put_key(w, "rollout");
                put_doubles(w, l->rollout, f->rows, f->cols);
            } else {
                put_heads(w, f, l, heads, !strcmp(mode, "neuron"));
            }
            ses_json_end_object(w);
        }
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

void ses_view_put_json(const ses_attention_view *v, ses_report *r, const char *mode,
                       const ses_layer_set *heads)
{
    ses_json_writer *w = ses_report_json(r);
    const ses_view_side *s = &v->source;
    for (int64_t i = 0; i < s->tokens; i++)
        ses_report_token(r, s->token[i], strlen(s->token[i]), s->bytes[i].begin, s->bytes[i].end, s->word[i]);
    ses_json_begin_object(w);
    ses_json_member_string(w, "unit", v->words ? "word" : "token");
    ses_json_member_int(w, "truncated", v->truncated);
    put_units(w, "source", s);
    if (v->target.tokens) put_units(w, "target", &v->target);
    ses_json_member_array(w, "attention");
    for (int i = 0; i < v->n_families; i++) put_family(w, v, &v->family[i], mode, heads);
    ses_json_end_array(w);
    ses_json_end_object(w);
}
