/* Runs a model on one text and reads its attention weights, queries and keys. */
#include "analysis/view/attention_view.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "run/pass.h"
#include "sesame/hooks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* An output family of the engine. */
typedef struct source {
    const char *prefix; /* prefix of the outputs' names */
    const char *id, *title, *name;
    bool target_rows, target_cols, causal;
} source;

static const source encoder_decoder[] = {
    { "encoder_", "encoder", "Encoder attention", "encoder", false, false, false },
    { "decoder_", "decoder", "Decoder attention", "decoder", true, true, true },
    { "cross_", "cross", "Cross-attention", "cross", true, false, false },
};
static const source encoder_only[] = { { "", "encoder", "Attention", "encoder", false, false, false },
                                       { "encoder_", "encoder", "Encoder attention", "encoder", false, false,
                                         false } };
static const source decoder_only[] = { { "", "decoder", "Attention", "decoder", false, false, true } };

typedef struct reader {
    ses_attention_view *v;
    const ses_analysis_call *call;
    const ses_view_request *q;
    ses_pass pass;
} reader;

static const ses_output *find(const reader *r, const source *s, const char *what, int64_t layer)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s.%" PRId64, s->prefix, what, layer);
    return ses_outputs_find(&r->pass.out, name);
}

static float *read_tensor(reader *r, const ses_tensor *t, ses_err *e)
{
    int64_t n = ses_count(t);
    float *x = ses_arena_array(&r->v->mem, (size_t)n, sizeof *x, e);
    ses_real *host = x ? ses_alloc_array((size_t)n, sizeof *host, e) : NULL;
    bool ok = host && (ses_tape_read(r->pass.tape, t, host) || ses_tape_ok(r->pass.tape, e));
    for (int64_t i = 0; ok && i < n; i++) x[i] = (float)host[i];
    ses_free(host);
    return ok ? x : NULL;
}

/* ---- weights ---- */

static bool read_weights(reader *r, const ses_view_family *f, const ses_output *o, ses_view_layer *l,
                         ses_err *e)
{
    int64_t pairs = f->from->tokens * f->to->tokens, units = f->rows * f->cols, n = ses_count(o->tensor);
    l->heads = n / pairs;
    if (l->heads < 1 || l->heads * pairs != n)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "layer %" PRId64 ": the weights are not [heads, %" PRId64 ", %" PRId64 "]", l->number,
                        f->from->tokens, f->to->tokens);
    ses_real *host = ses_alloc_array((size_t)n, sizeof *host, e);
    float *map = host ? ses_alloc_array((size_t)pairs, sizeof *map, e) : NULL;
    l->weight = map ? ses_arena_array(&r->v->mem, (size_t)(l->heads * units), sizeof *l->weight, e) : NULL;
    bool ok = l->weight && (ses_tape_read(r->pass.tape, o->tensor, host) || ses_tape_ok(r->pass.tape, e));
    for (int64_t h = 0; ok && h < l->heads; h++) {
        for (int64_t i = 0; ok && i < pairs; i++) {
            map[i] = (float)host[h * pairs + i];
            ok = isfinite(map[i]) ||
                 ses_fail(e, SES_EARG,
                          "layer %" PRId64 ", head %" PRId64 ": an attention weight is not a "
                          "number: the model's weights or activations overflow",
                          l->number, h + 1);
        }
        ses_attention_merge(map, &f->from->units, &f->to->units, r->q->hide_special, l->weight + h * units);
    }
    ses_free(map);
    ses_free(host);
    return ok;
}

/* ---- queries and keys ---- */

/* The bias of scores: log(weight) - q.k*scale, minus a constant of the row. */
static void find_bias(const ses_view_family *f, const ses_view_layer *l, int64_t h, float *bias,
                      double *largest)
{
    int64_t width = l->heads * f->dim;
    for (int64_t i = 0; i < f->rows; i++) {
        const float *w = l->weight + (h * f->rows + i) * f->cols;
        double mean = 0;
        int64_t n = 0;
        for (int64_t j = 0; j < f->cols; j++) {
            double score = 0;
            for (int64_t d = 0; d < f->dim; d++)
                score += (double)l->q[i * width + h * f->dim + d] * (double)l->k[j * width + h * f->dim + d];
            if (!(w[j] > 1e-20f)) continue; /* masked, or too small to tell */
            bias[i * f->cols + j] = (float)(log((double)w[j]) - score * l->scale);
            mean += (double)bias[i * f->cols + j];
            n++;
        }
        for (int64_t j = 0; j < f->cols; j++) {
            if (!(w[j] > 1e-20f)) continue;
            bias[i * f->cols + j] = (float)((double)bias[i * f->cols + j] - mean / (double)n);
            /* the softmax of tiny weights loses digits */
            if (w[j] > 1e-6f) *largest = fmax(*largest, fabs((double)bias[i * f->cols + j]));
        }
    }
}

static bool read_neurons(reader *r, const source *s, ses_view_family *f, ses_view_layer *l, ses_err *e)
{
    const ses_output *q = find(r, s, "queries", l->number - 1), *k = find(r, s, "keys", l->number - 1);
    ses_part part = !strcmp(s->id, "cross") ? SES_PART_CROSS
                    : s->target_rows        ? SES_PART_DECODER
                                            : SES_PART_MAIN;
    int64_t map = f->rows * f->cols;
    if (!q || !k || ses_rows(q->tensor) != f->rows || ses_rows(k->tensor) != f->cols)
        return true; /* keys of another shape: the page reports them as missing */
    f->dim = ses_cols(q->tensor) / l->heads;
    l->scale = ses_model_attention_scale(r->call->model, part, l->number - 1);
    l->q = read_tensor(r, q->tensor, e);
    l->k = l->q ? read_tensor(r, k->tensor, e) : NULL;
    float *bias = l->k ? ses_arena_array(&r->v->mem, (size_t)(l->heads * map), sizeof *bias, e) : NULL;
    if (!bias) return false;
    double largest = 0;
    for (int64_t h = 0; h < l->heads; h++) find_bias(f, l, h, bias + h * map, &largest);
    l->bias = largest > 1e-3 ? bias : NULL;
    return true;
}

/* ---- families ---- */

static int64_t count_layers(const reader *r, const source *s)
{
    int64_t n = 0;
    while (find(r, s, "attentions", n)) n++;
    return n;
}

static bool read_family(reader *r, const source *s, ses_err *e)
{
    ses_attention_view *v = r->v;
    int64_t all = count_layers(r, s);
    ses_view_family *f = &v->family[v->n_families];
    if (!all) return true;
    *f = (ses_view_family){ .id = s->id,
                            .title = s->title,
                            .name = s->name,
                            .from = s->target_rows ? &v->target : &v->source,
                            .to = s->target_cols ? &v->target : &v->source,
                            .causal = s->causal };
    f->rows = f->from->units.n, f->cols = f->to->units.n;
    f->layer = ses_arena_array(&v->mem, (size_t)all, sizeof *f->layer, e);
    if (!f->layer) return false;
    for (int64_t i = 0; i < all; i++) {
        ses_view_layer *l = &f->layer[f->n_layers++];
        l->number = i + 1;
        l->chosen = !r->call->layers.given || ses_layer_set_has(&r->call->layers, i + 1);
        f->n_chosen += l->chosen;
        if (!read_weights(r, f, find(r, s, "attentions", i), l, e)) return false;
        if (r->q->neurons && l->chosen && !read_neurons(r, s, f, l, e)) return false;
    }
    v->n_families++;
    return true;
}

static bool read_all(reader *r, ses_err *e)
{
    const ses_model *m = r->call->model;
    bool two = r->v->target.tokens > 0, causal = m->stack[0].causal;
    const source *s = two ? encoder_decoder : causal ? decoder_only : encoder_only;
    size_t n = two ? SES_LEN(encoder_decoder) : causal ? SES_LEN(decoder_only) : SES_LEN(encoder_only);
    for (size_t i = 0; i < n; i++)
        if (!read_family(r, &s[i], e)) return false;
    if (!r->v->n_families)
        return ses_fail(e, SES_EUNSUPPORTED, "%s gives no attention weights", ses_model_class_name(m));
    return r->v->family[0].n_chosen ||
           ses_fail(e, SES_EUSAGE,
                    "--layers: attention belongs to layers 1 to %" PRId64 "; 0 is the embeddings",
                    r->v->family[0].n_layers);
}

/* ---- the forward pass ---- */

static bool check_memory(const ses_attention_view *v, const ses_model *m, ses_err *e)
{
    double n = (double)v->source.tokens, k = (double)v->target.tokens,
           maps = (double)(m->stack[0].depth * m->stack[0].heads) * n * n;
    if (k > 0) maps += (double)(m->stack[1].depth * m->stack[1].heads) * (k * k + k * n);
    return maps * 4 <= (double)SES_VIEW_MAX_BYTES ||
           ses_fail(e, SES_EARG,
                    "the attention weights of %" PRId64 " tokens need %.1f GB, expected at most "
                    "%.0f GB: shorten the text with --max-seq-len",
                    v->source.tokens, maps * 4 / 1e9, (double)SES_VIEW_MAX_BYTES / 1e9);
}

static bool run(reader *r, ses_err *e)
{
    const ses_view_side *s = &r->v->source, *t = &r->v->target;
    ses_batch_builder *b = &r->pass.in;
    ses_output_request want = { .attentions = true, .qkv = r->q->neurons };
    bool ok = ses_batch_builder_add(b, s->id, s->segment, s->tokens, e);
    if (ok && t->tokens)
        ok = ses_ints_append(&b->target_ids, t->id, t->tokens, e) && ses_batch_builder_end_target(b, e);
    else if (ok && r->pass.model->stack[1].layer) /* its weights are not read */
        ok = ses_batch_builder_idle(b, r->pass.model, e);
    return ok && ses_pass_run(&r->pass, &want, e) && read_all(r, e);
}

bool ses_attention_view_make(ses_attention_view *v, const ses_analysis_call *call, const ses_view_request *q,
                             ses_err *e)
{
    reader r = { .v = v, .call = call, .q = q };
    v->words = q->words, v->hide_special = q->hide_special;
    if (!ses_view_encode(v, call, q, e) || !check_memory(v, call->model, e)) return false;
    /* without a target, the encoder alone; without the head, no class needs labels */
    ses_model *part = v->target.tokens ? NULL : ses_model_hidden_view(call->model, true, NULL);
    if (!part) part = ses_model_hidden_view(call->model, false, e);
    bool ok = part && ses_pass_open(&r.pass, part, e) && run(&r, e);
    ses_pass_close(&r.pass);
    ses_model_free(part);
    return ok;
}

void ses_attention_view_free(ses_attention_view *v) { ses_arena_free(&v->mem); }
