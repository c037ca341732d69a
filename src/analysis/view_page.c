/* The page of an attention view: its data in inert blocks, as src/analysis/page/view_data.js reads them. */
#include "attention_view.h"
#include "base/alloc.h"
#include "base/base64.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Weights beyond this keep the largest of each row only. Queries and keys are left out if the page would become
 * larger than a plain one of 64 tokens and 72 heads. */
enum { MAX_WEIGHTS = 15 << 20, MAX_WITH_NEURONS = 380 << 10, MIN_TOP = 8 };

typedef struct page {
    const ses_attention_view *v;
    ses_report *r;
    ses_json_writer *w;
    int64_t top; /* weights kept of a row; 0: all */
    uint8_t *bytes;
    char *text;
    size_t cap_bytes, cap_text;
} page;

/* ---- blocks ---- */

static int64_t maps_in(const ses_view_layer *l) { return l->heads + (l->rollout != NULL); }

static bool is_top(const page *p, const ses_view_family *f) { return p->top && f->cols > p->top; }

/* Weights of a map that are stored. */
static int64_t map_bytes(const page *p, const ses_view_family *f)
{
    if (is_top(p, f)) return f->rows * p->top;
    return f->causal ? f->rows * (f->rows + 1) / 2 : f->rows * f->cols;
}

static uint8_t byte_of(double weight)
{
    return (uint8_t)lround(255 * sqrt(weight < 0 ? 0 : weight > 1 ? 1 : weight));
}

static bool reserve(page *p, size_t n, ses_err *e)
{
    return ses_array_reserve(&p->bytes, &p->cap_bytes, n, 1, e);
}

/* Writes p->bytes as a block of the page. */
static bool put_block(page *p, const char *id, size_t n, ses_err *e)
{
    size_t size = ses_base64_encoded_size(n);
    if (!ses_array_reserve(&p->text, &p->cap_text, size + 3, 1, e)) return false;
    p->text[0] = '"';
    ses_base64_encode(p->bytes, n, p->text + 1);
    p->text[size + 1] = '"';
    ses_report_page_data(p->r, id, p->text, size + 2);
    return true;
}

static double weight_at(const ses_view_family *f, const ses_view_layer *l, int64_t map, int64_t i, int64_t j)
{
    return map < l->heads ? (double)l->weight[(map * f->rows + i) * f->cols + j]
                          : l->rollout[i * f->cols + j];
}

/* The largest bytes of a row in falling order, and their columns; equal ones from the left. Returns the sum of
 * the weights that are kept. */
static double top_of_row(const uint8_t *row, int64_t cols, int64_t top, uint8_t *bytes, uint8_t *columns)
{
    int64_t count[257] = { 0 };
    double kept = 0;
    for (int64_t j = 0; j < cols; j++) count[255 - row[j] + 1]++;
    for (int u = 0; u < 256; u++) count[u + 1] += count[u];
    for (int64_t j = 0; j < cols; j++) {
        int64_t at = count[255 - row[j]]++;
        if (at >= top) continue;
        bytes[at] = row[j];
        columns[2 * at] = (uint8_t)j, columns[2 * at + 1] = (uint8_t)(j >> 8);
        kept += (double)row[j] * row[j] / (255.0 * 255.0);
    }
    return kept;
}

/* One layer's maps, or with l NULL the flow. *kept: sum of the weights that are stored. */
static bool put_weights(page *p, const ses_view_family *f, const ses_view_layer *l, const char *id,
                        double *kept, ses_err *e)
{
    ses_view_layer flow = { .rollout = f->flow };
    if (!l) l = &flow;
    int64_t maps = maps_in(l), per_map = map_bytes(p, f), all = maps * per_map;
    bool top = is_top(p, f);
    uint8_t *row = ses_alloc((size_t)f->cols, e);
    if (!row || !reserve(p, (size_t)all * (top ? 3 : 1), e)) return ses_free(row), false;
    int64_t at = 0;
    for (int64_t map = 0; map < maps; map++)
        for (int64_t i = 0; i < f->rows; i++) {
            int64_t n = f->causal && !top ? i + 1 : f->cols;
            for (int64_t j = 0; j < n; j++) row[j] = byte_of(weight_at(f, l, map, i, j));
            if (top) {
                *kept += top_of_row(row, n, p->top, p->bytes + at, p->bytes + all + 2 * at);
                n = p->top;
            } else {
                memcpy(p->bytes + at, row, (size_t)n);
            }
            at += n;
        }
    ses_free(row);
    return put_block(p, id, (size_t)all * (top ? 3 : 1), e);
}

/* ---- neurons ---- */

static double largest(const float *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; x && i < n; i++)
        if (isfinite(x[i])) most = fmax(most, fabs((double)x[i]));
    return most;
}

static void put_int16(uint8_t *to, const float *x, int64_t n, double step)
{
    for (int64_t i = 0; i < n; i++) {
        long v = step > 0 && isfinite(x[i]) ? lround((double)x[i] / step) : 0;
        uint16_t u = (uint16_t)(int16_t)(v < -32767 ? -32767 : v > 32767 ? 32767 : v);
        to[2 * i] = (uint8_t)u, to[2 * i + 1] = (uint8_t)(u >> 8);
    }
}

typedef struct neuron_sizes {
    int64_t q, k, bias;
} neuron_sizes;

static neuron_sizes sizes_of(const ses_view_family *f, const ses_view_layer *l)
{
    return (neuron_sizes){ f->rows * l->heads * f->dim, f->cols * l->heads * f->dim,
                           l->bias ? l->heads * f->rows * f->cols : 0 };
}

static bool put_neurons(page *p, const ses_view_family *f, const ses_view_layer *l, const char *id,
                        ses_err *e)
{
    neuron_sizes n = sizes_of(f, l);
    if (!reserve(p, 2 * (size_t)(n.q + n.k + n.bias), e)) return false;
    put_int16(p->bytes, l->q, n.q, largest(l->q, n.q) / 32767);
    put_int16(p->bytes + 2 * n.q, l->k, n.k, largest(l->k, n.k) / 32767);
    if (n.bias) put_int16(p->bytes + 2 * (n.q + n.k), l->bias, n.bias, largest(l->bias, n.bias) / 32767);
    return put_block(p, id, 2 * (size_t)(n.q + n.k + n.bias), e);
}

static bool has_neurons(const ses_view_family *f)
{
    bool all = f->dim > 0;
    for (int64_t i = 0; i < f->n_layers; i++) all = all && (!f->layer[i].chosen || f->layer[i].q);
    return all;
}

/* Base64 characters of all weights, and of all queries, keys and biases. */
static void count_sizes(const page *p, double *weights, double *neurons)
{
    *weights = *neurons = 0;
    for (int k = 0; k < p->v->n_families; k++) {
        const ses_view_family *f = &p->v->family[k];
        for (int64_t i = 0; i < f->n_layers; i++) {
            const ses_view_layer *l = &f->layer[i];
            if (!l->chosen) continue;
            neuron_sizes n = sizes_of(f, l);
            *weights += (double)(maps_in(l) * map_bytes(p, f)) * (is_top(p, f) ? 3 : 1) * 4 / 3;
            *neurons += l->q ? (double)(n.q + n.k + n.bias) * 2 * 4 / 3 : 0;
        }
    }
}

/* ---- the description ---- */

static const char *block_id(char buf[48], const ses_view_family *f, const char *what, int64_t i)
{
    snprintf(buf, 48, "%s-%s-%lld", f->id, what, (long long)i);
    return buf;
}

static void put_numbers(const page *p, const char *key, const ses_view_family *f,
                        double (*of)(const ses_view_family *f, const ses_view_layer *l))
{
    ses_json_member_array(p->w, key);
    for (int64_t i = 0; i < f->n_layers; i++)
        if (f->layer[i].chosen) ses_json_put_float(p->w, (float)of(f, &f->layer[i]));
    ses_json_end_array(p->w);
}

static double number_of(const ses_view_family *f, const ses_view_layer *l)
{
    return (void)f, (double)l->number;
}
static double heads_of(const ses_view_family *f, const ses_view_layer *l)
{
    return (void)f, (double)l->heads;
}
static double scale_of(const ses_view_family *f, const ses_view_layer *l) { return (void)f, l->scale; }
static double q_step(const ses_view_family *f, const ses_view_layer *l)
{
    return largest(l->q, sizes_of(f, l).q) / 32767;
}
static double k_step(const ses_view_family *f, const ses_view_layer *l)
{
    return largest(l->k, sizes_of(f, l).k) / 32767;
}
static double bias_step(const ses_view_family *f, const ses_view_layer *l)
{
    return l->bias ? largest(l->bias, sizes_of(f, l).bias) / 32767 : 0;
}

static void put_ids(const page *p, const char *key, const ses_view_family *f, const char *what)
{
    char id[48];
    ses_json_member_array(p->w, key);
    for (int64_t i = 0; i < f->n_layers; i++)
        if (f->layer[i].chosen) ses_json_put_string(p->w, block_id(id, f, what, i));
    ses_json_end_array(p->w);
}

static void describe_neurons(const page *p, const ses_view_family *f, bool fits)
{
    ses_json_writer *w = p->w;
    if (!fits || !has_neurons(f)) {
        ses_json_member_string(w, "neuron_why",
                               p->v->words ? "Queries and keys belong to tokens: the page was written by "
                                             "word. Write it without --words to see them."
                               : !has_neurons(f)
                                   ? "The page was written without queries and keys."
                                   : "Queries and keys would make this page large: write it with "
                                     "--neurons, or with fewer --layers, to see them.");
        return;
    }
    ses_json_member_object(w, "neuron");
    ses_json_member_int(w, "dim", f->dim);
    put_numbers(p, "scale", f, scale_of);
    put_numbers(p, "q", f, q_step);
    put_numbers(p, "k", f, k_step);
    put_numbers(p, "bias", f, bias_step);
    put_ids(p, "blocks", f, "neurons");
    ses_json_end_object(w);
}

static void describe_flow(const page *p, const ses_view_family *f)
{
    char id[48];
    if (f->flow)
        ses_json_member_string(p->w, "flow", block_id(id, f, "flow", 0));
    else
        ses_json_member_string(
            p->w, "flow_why",
            "Flow takes long for a text of this length: write the page with --mode flow to "
            "compute it.");
}

static void describe_family(const page *p, const ses_view_family *f, bool neurons, double hidden)
{
    ses_json_writer *w = p->w;
    bool rollout = true;
    for (int64_t i = 0; i < f->n_layers; i++) rollout = rollout && f->layer[i].rollout;
    ses_json_begin_object(w);
    ses_json_member_string(w, "id", f->id);
    ses_json_member_string(w, "title", f->title);
    ses_json_member_string(w, "short", f->name);
    ses_json_member_string(w, "rows", f->from == &p->v->target ? "target" : "source");
    ses_json_member_string(w, "cols", f->to == &p->v->target ? "target" : "source");
    ses_json_member_bool(w, "causal", f->causal);
    put_numbers(p, "layers", f, number_of);
    put_numbers(p, "heads", f, heads_of);
    put_ids(p, "layer", f, "weights");
    ses_json_member_int(w, "top", is_top(p, f) ? p->top : 0);
    ses_json_member_real(w, "hidden", hidden);
    ses_json_member_bool(w, "rollout", rollout);
    describe_flow(p, f);
    describe_neurons(p, f, neurons);
    ses_json_end_object(w);
}

static void put_side(const page *p, const char *key, const ses_view_side *s)
{
    ses_json_member_array(p->w, key);
    for (int64_t i = 0; i < s->units.n; i++) {
        ses_json_begin_object(p->w);
        ses_json_member_string(p->w, "t", s->unit[i]);
        if (s->unit_special[i]) ses_json_member_int(p->w, "s", 1);
        if (s->unit_pair[i]) ses_json_member_int(p->w, "p", 1);
        ses_json_end_object(p->w);
    }
    ses_json_end_array(p->w);
}

/* ---- the page ---- */

/* Blocks of a family; returns the mean weight of a row that is not stored. */
static bool put_family(page *p, const ses_view_family *f, bool neurons, double *hidden, ses_err *e)
{
    char id[48];
    double kept = 0, rows = 0;
    for (int64_t i = 0; i < f->n_layers; i++) {
        const ses_view_layer *l = &f->layer[i];
        if (!l->chosen) continue;
        rows += (double)(maps_in(l) * f->rows);
        if (!put_weights(p, f, l, block_id(id, f, "weights", i), &kept, e)) return false;
        if (neurons && has_neurons(f) && !put_neurons(p, f, l, block_id(id, f, "neurons", i), e))
            return false;
    }
    *hidden = is_top(p, f) && rows > 0 ? fmax(0, 1 - kept / rows) : 0;
    return !f->flow || put_weights(p, f, NULL, block_id(id, f, "flow", 0), &kept, e);
}

/* Most weights of a row that fit. */
static int64_t choose_top(page *p)
{
    double rows = 0, weights, neurons;
    count_sizes(p, &weights, &neurons);
    if (weights <= MAX_WEIGHTS) return 0;
    for (int k = 0; k < p->v->n_families; k++)
        for (int64_t i = 0; i < p->v->family[k].n_layers; i++)
            if (p->v->family[k].layer[i].chosen)
                rows += (double)(maps_in(&p->v->family[k].layer[i]) * p->v->family[k].rows);
    int64_t top = (int64_t)(MAX_WEIGHTS / (rows * 4));
    return top < MIN_TOP ? MIN_TOP : top;
}

static bool put_all(page *p, const char *mode, bool neurons, ses_err *e)
{
    double weights, size;
    p->top = choose_top(p);
    count_sizes(p, &weights, &size);
    bool fits = !p->v->words && (neurons || weights + size <= MAX_WITH_NEURONS);
    ses_json_begin_object(p->w);
    ses_json_member_string(p->w, "unit", p->v->words ? "word" : "token");
    if (mode) ses_json_member_string(p->w, "tab", mode);
    put_side(p, "source", &p->v->source);
    if (p->v->target.tokens) put_side(p, "target", &p->v->target);
    ses_json_member_array(p->w, "families");
    for (int i = 0; i < p->v->n_families; i++) {
        double hidden = 0;
        if (!p->v->family[i].n_chosen) continue;
        if (!put_family(p, &p->v->family[i], fits, &hidden, e)) return false;
        describe_family(p, &p->v->family[i], fits, hidden);
    }
    ses_json_end_array(p->w);
    ses_json_end_object(p->w);
    size_t n = 0;
    const char *json = ses_json_writer_text(p->w, &n, e);
    if (json) ses_report_page_data(p->r, "view", json, n);
    return json != NULL;
}

bool ses_view_put_page(const ses_attention_view *v, ses_report *r, const char *mode, bool neurons, ses_err *e)
{
    static const char *const script[] = { "view_data.js", "view_draw.js", "view_panels.js", "view_neuron.js",
                                          "view.js" };
    page p = { .v = v, .r = r, .w = ses_json_writer_new(0, e) };
    bool ok = p.w && put_all(&p, mode, neurons, e);
    for (size_t i = 0; i < SES_LEN(script); i++) ses_report_page(r, script[i], i ? NULL : "view.css");
    ses_json_writer_free(p.w);
    ses_free(p.bytes);
    ses_free(p.text);
    return ok;
}
