/* The page of an attention view: its data in inert blocks, as src/analysis/page/view_data.js reads them. */
#include "analysis/view/attention_view.h"
#include "base/alloc.h"
#include "base/base64.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Weights beyond this keep the largest of each row only. Queries and keys are left out if the page would
 * become larger than a plain one of 64 tokens and 72 heads. */
enum { MAX_WEIGHTS = 15 << 20, MAX_WITH_NEURONS = 340 << 10, MIN_TOP = 8 };

typedef struct page {
    const ses_attention_view *v;
    ses_report *r;
    ses_json_writer *w;
    int64_t top;         /* weights kept of a row of a head; 0: all */
    int64_t rollout_top; /* weights kept of a row of a rollout */
    uint8_t *bytes;      /* a block of queries and keys */
    char *text;          /* a block as text; at: its length */
    size_t cap_bytes, cap_text, at;
} page;

/* ---- weights as text ---- */

/* A number as one character: 1 byte below 90, 2 below 1977. Characters that JSON or HTML would escape are
 * left out. The caller has reserved 3 bytes. */
static void put_number(page *p, uint32_t x)
{
    char *to = p->text + p->at;
    uint32_t c = x < 25 ? x + 35 : x < 56 ? x + 36 : x < 90 ? x + 37 : x + 71; /* without < and \\ */
    if (c < 0x80) {
        to[0] = (char)c;
        p->at += 1;
    } else if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6), to[1] = (char)(0x80 | (c & 63));
        p->at += 2;
    } else {
        to[0] = (char)(0xE0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63));
        p->at += 3;
    }
}

static bool begin_block(page *p, int64_t numbers, ses_err *e)
{
    if (!ses_array_reserve(&p->text, &p->cap_text, 3 * (size_t)numbers + 3, 1, e)) return false;
    p->text[0] = '"';
    p->at = 1;
    return true;
}

static void end_block(page *p, const char *id)
{
    p->text[p->at++] = '"';
    ses_report_page_data(p->r, id, p->text, p->at);
}

static bool is_top(int64_t top, const ses_view_family *f) { return top && f->cols > top; }

/* Numbers of a map that are stored. */
static int64_t map_numbers(int64_t top, const ses_view_family *f)
{
    if (is_top(top, f)) return 2 * f->rows * top;
    return f->causal ? f->rows * (f->rows + 1) / 2 : f->rows * f->cols;
}

static uint8_t byte_of(double weight)
{
    return (uint8_t)lround(255 * sqrt(weight < 0 ? 0 : weight > 1 ? 1 : weight));
}

/* Writes the largest bytes of a row in falling order, each followed by its column; equal ones from the
 * left. order: [cols]. Returns the sum of the weights that are kept. */
static double put_top(page *p, const uint8_t *row, int64_t cols, int64_t top, int32_t *order)
{
    int64_t count[257] = { 0 };
    double kept = 0;
    for (int64_t j = 0; j < cols; j++) count[255 - row[j] + 1]++;
    for (int u = 0; u < 256; u++) count[u + 1] += count[u];
    for (int64_t j = 0; j < cols; j++) order[count[255 - row[j]]++] = (int32_t)j;
    for (int64_t k = 0; k < top; k++) {
        uint8_t u = row[order[k]];
        put_number(p, u);
        put_number(p, (uint32_t)order[k]);
        kept += (double)u * u / (255.0 * 255.0);
    }
    return kept;
}

/* Writes one map of weights, in float or double (the other NULL). Returns the sum of the weights kept. */
static double put_map(page *p, const ses_view_family *f, const float *x, const double *xx, int64_t top,
                      uint8_t *row, int32_t *order)
{
    double kept = 0;
    for (int64_t i = 0; i < f->rows; i++) {
        int64_t at = i * f->cols, n = f->causal && !is_top(top, f) ? i + 1 : f->cols;
        for (int64_t j = 0; j < n; j++) row[j] = byte_of(x ? (double)x[at + j] : xx[at + j]);
        if (is_top(top, f))
            kept += put_top(p, row, n, top, order);
        else
            for (int64_t j = 0; j < n; j++) put_number(p, row[j]);
    }
    return kept;
}

/* A block of maps. kept: grows by the sum of the weights that are stored, if not all are. */
static bool put_maps(page *p, const ses_view_family *f, int64_t maps, const float *x, const double *xx,
                     int64_t top, const char *id, double *kept, ses_err *e)
{
    uint8_t *row = ses_alloc((size_t)f->cols, e);
    int32_t *order = row ? ses_alloc_array((size_t)f->cols, sizeof *order, e) : NULL;
    bool ok = order && begin_block(p, maps * map_numbers(top, f), e);
    for (int64_t m = 0; ok && m < maps; m++)
        *kept += put_map(p, f, x ? x + m * f->rows * f->cols : NULL, xx, top, row, order);
    if (ok) end_block(p, id);
    ses_free(order);
    ses_free(row);
    return ok;
}

/* Writes p->bytes as base64. */
static bool put_base64(page *p, const char *id, size_t n, ses_err *e)
{
    size_t size = ses_base64_encoded_size(n);
    if (!begin_block(p, (int64_t)(size / 3) + 1, e)) return false;
    ses_base64_encode(p->bytes, n, p->text + 1);
    p->at = size + 1;
    end_block(p, id);
    return true;
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
    if (!ses_array_reserve(&p->bytes, &p->cap_bytes, 2 * (size_t)(n.q + n.k + n.bias), 1, e)) return false;
    put_int16(p->bytes, l->q, n.q, largest(l->q, n.q) / 32767);
    put_int16(p->bytes + 2 * n.q, l->k, n.k, largest(l->k, n.k) / 32767);
    if (n.bias) put_int16(p->bytes + 2 * (n.q + n.k), l->bias, n.bias, largest(l->bias, n.bias) / 32767);
    return put_base64(p, id, 2 * (size_t)(n.q + n.k + n.bias), e);
}

static bool has_neurons(const ses_view_family *f)
{
    bool all = f->dim > 0;
    for (int64_t i = 0; i < f->n_layers; i++) all = all && (!f->layer[i].chosen || f->layer[i].q);
    return all;
}

/* Mean bytes of a stored weight (weights above 0.125 take 2), and of one with its column. */
static const double plain_bytes = 1.06, top_bytes = 3.2;

typedef struct page_sizes {
    double heads, rollouts, neurons; /* about these bytes */
    double rows;                     /* rows of all heads */
} page_sizes;

static page_sizes sizes(const page *p)
{
    page_sizes x = { 0 };
    for (int k = 0; k < p->v->n_families; k++) {
        const ses_view_family *f = &p->v->family[k];
        double head = (double)map_numbers(p->top, f) * (is_top(p->top, f) ? top_bytes / 2 : plain_bytes),
               rollout = (double)map_numbers(p->rollout_top, f) *
                         (is_top(p->rollout_top, f) ? top_bytes / 2 : plain_bytes);
        for (int64_t i = 0; i < f->n_layers; i++) {
            const ses_view_layer *l = &f->layer[i];
            if (!l->chosen) continue;
            neuron_sizes n = sizes_of(f, l);
            x.heads += (double)l->heads * head;
            x.rollouts += l->rollout ? rollout : 0;
            x.neurons += l->q ? (double)(n.q + n.k + n.bias) * 2 * 4 / 3 : 0;
            x.rows += (double)(l->heads * f->rows);
        }
    }
    return x;
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
    ses_json_member_int(w, "top", is_top(p->top, f) ? p->top : 0);
    ses_json_member_real(w, "hidden", hidden);
    if (rollout) put_ids(p, "rollout", f, "rollout");
    ses_json_member_int(w, "rollout_top", is_top(p->rollout_top, f) ? p->rollout_top : 0);
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

/* Blocks of a family. *hidden: mean weight of a row that is not stored. */
static bool put_family(page *p, const ses_view_family *f, bool neurons, double *hidden, ses_err *e)
{
    char id[48];
    double kept = 0, rows = 0, ignored = 0;
    for (int64_t i = 0; i < f->n_layers; i++) {
        const ses_view_layer *l = &f->layer[i];
        if (!l->chosen) continue;
        rows += (double)(l->heads * f->rows);
        if (!put_maps(p, f, l->heads, l->weight, NULL, p->top, block_id(id, f, "weights", i), &kept, e) ||
            (l->rollout && !put_maps(p, f, 1, NULL, l->rollout, p->rollout_top, block_id(id, f, "rollout", i),
                                     &ignored, e)) ||
            (neurons && has_neurons(f) && !put_neurons(p, f, l, block_id(id, f, "neurons", i), e)))
            return false;
    }
    *hidden = is_top(p->top, f) && rows > 0 ? fmax(0, 1 - kept / rows) : 0;
    return !f->flow || put_maps(p, f, 1, NULL, f->flow, 0, block_id(id, f, "flow", 0), &ignored, e);
}

static int64_t fitting(double bytes, double rows)
{
    int64_t top = (int64_t)(bytes / (rows * top_bytes));
    return top < MIN_TOP ? MIN_TOP : top;
}

/* Keeps only the largest weights of each row if there are too many: of heads, and of rollouts if they take
 * more than a quarter. */
static void choose_top(page *p)
{
    page_sizes x = sizes(p);
    if (x.heads + x.rollouts <= MAX_WEIGHTS) return;
    if (x.rollouts > MAX_WEIGHTS / 4) {
        p->rollout_top = fitting(MAX_WEIGHTS / 4, x.rows / 8);
        x = sizes(p);
    }
    p->top = fitting(MAX_WEIGHTS - x.rollouts, x.rows);
}

static bool put_all(page *p, const char *mode, bool neurons, ses_err *e)
{
    choose_top(p);
    page_sizes x = sizes(p);
    bool fits = !p->v->words && (neurons || x.heads + x.rollouts + x.neurons <= MAX_WITH_NEURONS);
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
    static const char *const script[] = { "page_dom.js",    "view_data.js",   "view_draw.js",
                                          "view_panels.js", "view_neuron.js", "view.js" };
    page p = { .v = v, .r = r, .w = ses_json_writer_new(0, e) };
    bool ok = p.w && put_all(&p, mode, neurons, e);
    for (size_t i = 0; i < SES_LEN(script); i++) ses_report_page(r, script[i], i ? NULL : "view.css");
    ses_json_writer_free(p.w);
    ses_free(p.bytes);
    ses_free(p.text);
    return ok;
}
