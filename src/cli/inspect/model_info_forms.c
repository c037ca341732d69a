/* Facts about compressed forms of a model: removed heads, feed-forward widths, exits, factorized weights. */
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "model/model_desc.h"
#include "model_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A number of each layer. */
typedef int64_t layer_size(const ses_stack *k, int64_t layer);

static int64_t heads_of(const ses_stack *k, int64_t layer) { return ses_stack_heads(k, layer); }
static int64_t cross_heads_of(const ses_stack *k, int64_t layer) { return ses_stack_cross_heads(k, layer); }
static int64_t width_of(const ses_stack *k, int64_t layer) { return ses_stack_ffn(k, layer); }

static const struct {
    const char *title, *text, *name;
    layer_size *size;
    bool cross, width;
} rows[] = {
    { "Heads", "by layer", "heads_by_layer", heads_of, false, false },
    { "Cross heads", "by layer", "cross_heads_by_layer", cross_heads_of, true, false },
    { "Feed-forward", "widths by layer", "feed_forward_by_layer", width_of, false, true },
};

/* Does a layer differ from the sizes of the stack? */
static bool differs(const ses_stack *k, size_t row)
{
    if (!k->layer || (rows[row].cross && !k->cross)) return false;
    for (int64_t l = 0; l < k->depth; l++)
        if (rows[row].size(k, l) != (rows[row].width ? k->ffn : k->heads)) return true;
    return false;
}

/* ---- factorized weights ---- */

typedef struct ranks {
    int64_t weights, least, most, embeddings;
} ranks;

static ranks ranks_of(const ses_model *m)
{
    const ses_json *all = ses_json_get(m->config, "sesame_low_rank"), *list = ses_json_get(all, "weights");
    ranks r = { .weights = (int64_t)ses_json_len(list) };
    int64_t x;
    ses_json_int(ses_json_get(all, "embeddings"), &r.embeddings);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        if (!ses_json_int(ses_json_at(list, i), &x)) continue;
        if (!r.least || x < r.least) r.least = x;
        if (x > r.most) r.most = x;
    }
    return r;
}

/* ---- text ---- */

static void put_rows(const ses_model *m, const ses_stack *k, ses_buf *b, const ses_term *t)
{
    for (size_t r = 0; r < SES_LEN(rows); r++) {
        if (!differs(k, r)) continue;
        b->len = 0;
        for (int64_t l = 0; l < k->depth; l++)
            ses_buf_appendf(b, "%s%" PRId64, l ? ", " : "", rows[r].size(k, l));
        ses_show_line(t, rows[r].title, "%s%s: %s (of %" PRId64 ")",
                      m->stack[1].layer ? (k == m->stack ? "encoder " : "decoder ") : "", rows[r].text,
                      b->len ? b->data : "", rows[r].width ? k->ffn : k->heads);
    }
}

static bool has_exit(const ses_model *m, int64_t layer)
{
    return m->exits.n && m->c.exits.layers[layer / 64] >> layer % 64 & 1;
}

static void show_ranks(const ses_model *m, const ses_term *t)
{
    ranks r = ranks_of(m);
    char layers[96] = "", table[48] = "";
    if (r.weights)
        snprintf(layers, sizeof layers, "%" PRId64 " weights of rank %" PRId64, r.weights, r.least);
    size_t n = strlen(layers);
    if (r.most > r.least) snprintf(layers + n, sizeof layers - n, " to %" PRId64, r.most);
    if (r.embeddings)
        snprintf(table, sizeof table, "%stoken table of rank %" PRId64, r.weights ? ", " : "", r.embeddings);
    if (r.weights || r.embeddings) ses_show_line(t, "Low rank", "%s%s", layers, table);
}

bool ses_model_info_show_forms(const ses_model_info *i, const ses_term *t, ses_err *e)
{
    const ses_model *m = i->model;
    ses_buf b = { 0 };
    for (size_t k = 0; k < SES_LEN(m->stack); k++) put_rows(m, &m->stack[k], &b, t);
    b.len = 0;
    for (int64_t l = 1; l < m->c.layers; l++)
        if (has_exit(m, l)) ses_buf_appendf(&b, "%s%" PRId64, b.len ? ", " : "", l);
    bool ok = ses_buf_ok(&b, e);
    if (ok && b.len)
        ses_show_line(t, "Exits", "after layers %s (%s)", b.data, m->c.exits.linear ? "linear" : "pooled");
    ses_buf_free(&b);
    if (ok) show_ranks(m, t);
    return ok;
}

/* ---- JSON ---- */

static void put_exits(ses_json_writer *w, const ses_model *m)
{
    if (!m->exits.n) return;
    ses_json_member_object(w, "exits");
    ses_json_member_string(w, "head", m->c.exits.linear ? "linear" : "pooled");
    ses_json_member_array(w, "layers");
    for (int64_t l = 1; l < m->c.layers; l++)
        if (has_exit(m, l)) ses_json_put_int(w, l);
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_ranks(ses_json_writer *w, const ses_model *m)
{
    ranks r = ranks_of(m);
    if (!r.weights && !r.embeddings) return;
    ses_json_member_object(w, "low_rank");
    ses_json_member_int(w, "weights", r.weights);
    ses_json_member_int(w, "least_rank", r.least);
    ses_json_member_int(w, "largest_rank", r.most);
    ses_json_member_int(w, "embeddings", r.embeddings);
    ses_json_end_object(w);
}

void ses_model_info_put_forms(const ses_model *m, ses_json_writer *w)
{
    char name[64];
    for (size_t k = 0; k < SES_LEN(m->stack); k++)
        for (size_t r = 0; r < SES_LEN(rows); r++) {
            if (!differs(&m->stack[k], r)) continue;
            snprintf(name, sizeof name, "%s%s", k ? "decoder_" : "", rows[r].name);
            ses_json_member_array(w, name);
            for (int64_t l = 0; l < m->stack[k].depth; l++)
                ses_json_put_int(w, rows[r].size(&m->stack[k], l));
            ses_json_end_array(w);
        }
    put_exits(w, m);
    put_ranks(w, m);
}
