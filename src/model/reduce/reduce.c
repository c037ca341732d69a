/* Which parts of a model stay, and a model of these parts: its weights. reduce_config.c writes its config. */
#include "reduce_impl.h"

#include "base/alloc.h"
#include "model/adapter/adapter_impl.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reductions ---- */

ses_reduction *ses_reduction_new(const ses_model *m, ses_err *e)
{
    ses_reduction *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->layers = ses_model_part_layers(m, SES_PART_MAIN);
    r->rows = ses_model_part_neurons(m, SES_PART_MAIN);
    r->layer = ses_alloc_array((size_t)r->layers + 1, 1, e);
    r->row = r->layer ? ses_alloc_array((size_t)(r->layers * r->rows) + 1, 1, e) : NULL;
    bool ok = r->row != NULL;
    for (ses_part part = SES_PART_MAIN; ok && part <= SES_PART_CROSS; part++) {
        r->depth[part] = ses_model_part_layers(m, part);
        for (int64_t l = 0; l < r->depth[part]; l++)
            if (ses_model_part_heads(m, part, l) > r->heads[part])
                r->heads[part] = ses_model_part_heads(m, part, l);
        size_t n = (size_t)(r->depth[part] * r->heads[part]);
        ok = (r->head[part] = ses_alloc_array(n + 1, 1, e)) != NULL;
        if (ok) memset(r->head[part], 1, n);
    }
    if (!ok) {
        ses_reduction_free(r);
        return NULL;
    }
    memset(r->layer, 1, (size_t)r->layers);
    memset(r->row, 1, (size_t)(r->layers * r->rows));
    return r;
}

void ses_reduction_free(ses_reduction *r)
{
    if (!r) return;
    for (int i = 0; i < SES_REDUCE_PARTS; i++) ses_free(r->head[i]);
    ses_free(r->layer), ses_free(r->row);
    ses_free(r);
}

static int64_t count(const uint8_t *keep, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) kept += keep[i] != 0;
    return kept;
}

int64_t ses_reduction_heads(const ses_reduction *r, const ses_model *m, ses_part part, int64_t layer)
{
    return count(r->head[part] + layer * r->heads[part], ses_model_part_heads(m, part, layer));
}

int64_t ses_reduction_rows(const ses_reduction *r, const ses_model *m, int64_t layer)
{
    return count(r->row + layer * r->rows, ses_model_layer_neurons(m, SES_PART_MAIN, layer));
}

bool ses_reduction_may_remove_layer(const ses_model *m, int64_t layer)
{
    return layer || !m->c.norm.no_first_attn_norm;
}

/* ---- checks ---- */

static bool check_layers(const ses_reduction *r, const ses_model *m, ses_err *e)
{
    const ses_config *c = &m->c;
    bool local = false;
    for (size_t i = 0; i < SES_LEN(c->attention.local_layers); i++)
        local |= c->attention.local_layers[i] != 0;
    const char *why = ses_ffn_widths_unsupported(m->desc, c);
    if (!why && local && !m->desc->layer_kinds.every) why = "its config cannot list local and global layers";
    if (!why && (m->scalar_mix.weight || m->choice.n)) why = "its head reads chosen layers (\"sesame_head\")";
    if (!why && ses_json_len(ses_json_get(m->config, "sesame_exits"))) why = "it has early exits";
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "layers of a %s model cannot be removed: %s", m->desc->name,
                        why);
    if (!count(r->layer, r->layers))
        return ses_fail(e, SES_EARG, "all %lld layers would be removed", (long long)r->layers);
    if (!r->layer[0] && !ses_reduction_may_remove_layer(m, 0))
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "layer 0 of a %s model cannot be removed: it has no norm before its attention, and all "
            "others have one",
            m->desc->name);
    return true;
}

static bool check_heads(const ses_reduction *r, const ses_model *m, ses_err *e)
{
    const char *why = ses_pruned_heads_unsupported(m->desc, &m->c);
    for (ses_part part = SES_PART_MAIN; part <= SES_PART_CROSS; part++)
        for (int64_t l = 0; l < r->depth[part]; l++) {
            int64_t left = ses_reduction_heads(r, m, part, l);
            if (left == ses_model_part_heads(m, part, l)) continue;
            if (why)
                return ses_fail(e, SES_EUNSUPPORTED, "heads of a %s model cannot be removed: %s",
                                m->desc->name, why);
            if (!left && (part != SES_PART_MAIN || r->layer[l]))
                return ses_fail(e, SES_EARG, "layer %lld would have no head left: keep at least one",
                                (long long)l);
        }
    return true;
}

static bool check_rows(const ses_reduction *r, const ses_model *m, ses_err *e)
{
    const char *why = ses_ffn_widths_unsupported(m->desc, &m->c);
    for (int64_t l = 0; l < r->layers; l++) {
        int64_t left = ses_reduction_rows(r, m, l);
        if (left == ses_model_layer_neurons(m, SES_PART_MAIN, l)) continue;
        if (why)
            return ses_fail(e, SES_EUNSUPPORTED, "feed-forward rows of a %s model cannot be removed: %s",
                            m->desc->name, why);
        if (!left && r->layer[l])
            return ses_fail(e, SES_EARG, "layer %lld would have no feed-forward row left: keep at least one",
                            (long long)l);
    }
    return true;
}

bool ses_reduction_check(const ses_reduction *r, const ses_model *m, ses_err *e)
{
    const char *unmerged = ses_adapter_unmerged(m->adapter);
    if (unmerged)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s is not part of the weights and cannot be merged into them: prune the adapter's "
                        "base model, and train an adapter of the result",
                        unmerged);
    if (ses_adapter_is_new(m->adapter))
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "a trained adapter is not part of the weights: merge it into a model, or prune its base");
    if (ses_json_len(ses_json_get(m->config, "sesame_low_rank")))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the weights are factorized (\"sesame_low_rank\"): remove parts before that");
    return (count(r->layer, r->layers) == r->layers || check_layers(r, m, e)) && check_heads(r, m, e) &&
           check_rows(r, m, e);
}

/* ---- weights ---- */

/* A weight as [outer, n_parts, units, dim, inner]: units (heads or rows) are removed along the middle. */
typedef struct unit_axes {
    const uint8_t *keep; /* [units], NULL: the parameter has no units */
    int64_t outer, n_parts, units, dim, inner;
    ses_part part;
    bool is_head;
    int64_t layer;
} unit_axes;

/* "layer.0.attn.query.weight", "decoder.layer.0.cross.out.weight": layer, block ("attn") and the rest. */
static bool split_name(const char *name, int64_t *layer, char block[8], char rest[64])
{
    long long l;
    bool decoder = !strncmp(name, "decoder.", 8);
    if (sscanf(name + (decoder ? 8 : 0), "layer.%lld.%7[a-z].%63s", &l, block, rest) != 3) return false;
    *layer = l;
    return true;
}

static bool starts_with(const char *s, const char *start) { return !strncmp(s, start, strlen(start)); }

static void set_matrix_axes(unit_axes *a, const ses_param *x, bool out, int64_t parts, int64_t units,
                            int64_t dim)
{
    bool bias = strstr(x->name, ".bias") != NULL;
    int64_t columns = ses_count(x->tensor) / (parts * units * dim);
    bool units_last = !bias && (x->layout == SES_IN_OUT) != out; /* columns of the stored matrix */
    a->outer = units_last ? columns : 1, a->inner = units_last ? 1 : columns;
    a->n_parts = parts, a->units = units, a->dim = dim;
}

static void find_heads(const ses_model *m, const ses_reduction *r, const ses_param *x, const char *rest,
                       unit_axes *a)
{
    if (!m->stack[1].layer) a->part = SES_PART_MAIN; /* a decoder without its encoder is the main part */
    const ses_stack *k = &m->stack[a->part != SES_PART_MAIN];
    const ses_config *c = k->c;
    int64_t heads = ses_model_part_heads(m, a->part, a->layer);
    if (!heads) return; /* a recurrent layer */
    int64_t D = c->attention.head_size ? c->attention.head_size : c->hidden / k->heads;
    bool out = !strcmp(rest, "out.weight"), qkv = starts_with(rest, "qkv."), kv = starts_with(rest, "kv.");
    if (!out && !qkv && !kv && !starts_with(rest, "query.") && !starts_with(rest, "key.") &&
        !starts_with(rest, "value."))
        return;
    bool interleaved = qkv && c->attention.qkv_layout == SES_QKV_INTERLEAVED; /* q, k, v of a head */
    int64_t all = qkv ? 3 : kv ? 2 : 1;
    set_matrix_axes(a, x, out, interleaved ? 1 : all, heads, interleaved ? all * D : D);
    a->keep = r->head[a->part] + a->layer * r->heads[a->part];
    a->is_head = true;
}

static void find_rows(const ses_model *m, const ses_reduction *r, const ses_param *x, const char *rest,
                      unit_axes *a)
{
    const ses_config *c = m->stack[0].c;
    bool out = !strcmp(rest, "down.weight"), up = starts_with(rest, "up.");
    int64_t rows = ses_model_layer_neurons(m, SES_PART_MAIN, a->layer);
    if (!rows || (!out && !up && !starts_with(rest, "gate.") && !starts_with(rest, "linear."))) return;
    set_matrix_axes(a, x, out, up && c->ffn.fused_gate ? 2 : 1, rows, 1);
    a->keep = r->row + a->layer * r->rows;
}

/* How heads or rows lie in parameter x of m; keep NULL: it has none. */
static unit_axes axes_of(const ses_model *m, const ses_reduction *r, const ses_param *x)
{
    unit_axes a = { 0 };
    char block[8], rest[64];
    bool decoder = starts_with(x->name, "decoder.");
    if (!split_name(x->name, &a.layer, block, rest)) return a;
    a.part = !strcmp(block, "cross") ? SES_PART_CROSS : decoder ? SES_PART_DECODER : SES_PART_MAIN;
    bool idle = a.part == SES_PART_CROSS && !m->stack[1].layer; /* cross attention without an encoder */
    if (!strcmp(block, "attn") || (!strcmp(block, "cross") && !idle)) find_heads(m, r, x, rest, &a);
    if (!strcmp(block, "ffn") && (!decoder || !m->stack[1].layer)) find_rows(m, r, x, rest, &a);
    return a;
}

/* Unit i as a unit of the reduced model, which has *units of them; -1: removed. */
static int64_t index_after(const ses_model *m, const unit_axes *a, ses_reduced_form form, int64_t i,
                           int64_t *units)
{
    const ses_stack *k = &m->stack[a->part != SES_PART_MAIN];
    int64_t before = 0, at = 0;
    if (form == SES_REDUCED_SMALL) {
        for (int64_t j = 0; j < i; j++) before += a->keep[j] != 0;
        *units = count(a->keep, a->units);
    } else if (
        !a->is_head) { /* which rows of a narrow block were removed is not known, and does not matter */
        before = i;
        *units = k->ffn;
    } else {
        const ses_removed_heads *gone = a->part == SES_PART_CROSS ? &k->cross_pruned : &k->pruned;
        for (at = 0; at < k->heads; at++)
            if (!gone->removed || !gone->removed[a->layer * k->heads + at])
                if (before++ == i) break;
        before = at;
        *units = k->heads;
    }
    return a->keep[i] ? before : -1;
}

/* Copies the units that stay; to is zero. False: the sizes do not fit. */
static bool copy_units(const ses_model *m, const unit_axes *a, ses_reduced_form form, const ses_real *from,
                       ses_real *to, int64_t n)
{
    int64_t block = a->dim * a->inner, units = 0;
    for (int64_t u = 0; u < a->units; u++) {
        int64_t at = index_after(m, a, form, u, &units);
        if (a->outer * a->n_parts * units * block != n) return false;
        for (int64_t i = 0; at >= 0 && i < a->outer * a->n_parts; i++)
            memcpy(to + (i * units + at) * block, from + (i * a->units + u) * block,
                   (size_t)block * sizeof *to);
    }
    return true;
}

static bool copy_param(const ses_model *m, const ses_reduction *r, ses_reduced_form form,
                       const ses_param *from, const ses_param *to, ses_err *e)
{
    ses_device *dev = m->dev;
    int64_t n = ses_count(from->tensor), kept = ses_count(to->tensor);
    if (!from->tensor->f)
        return ses_fail(e, SES_EARG, "%s is held quantized only: open the model with no_packing", from->name);
    unit_axes a = axes_of(m, r, from);
    if (n == kept && a.keep && count(a.keep, a.units) == a.units) a.keep = NULL;
    ses_real *x = ses_alloc_array((size_t)n, sizeof *x, e), *y = ses_alloc_array((size_t)kept, sizeof *y, e);
    bool ok = x && y && ses_device_read(dev, from->tensor, 0, n, x, e);
    if (ok) ok = a.keep ? copy_units(m, &a, form, x, y, kept) : kept == n;
    if (!ok && x && y)
        ses_fail(e, SES_EUNSUPPORTED, "%s of a %s model: heads or rows cannot be removed from it", from->name,
                 m->desc->name);
    if (ok) dev->mem->upload(dev, ses_master_data(to->tensor), a.keep ? y : x, (size_t)kept * sizeof *x);
    ses_free(x), ses_free(y);
    return ok;
}

/* The name in m of a parameter of the reduced model: layers have other numbers. */
static void name_before(const ses_reduction *r, const char *name, char *buf, size_t n)
{
    const char *at = starts_with(name, "decoder.") ? name + 8 : name;
    char *rest;
    snprintf(buf, n, "%s", name);
    if (!starts_with(at, "layer.")) return;
    int64_t now = strtoll(at + 6, &rest, 10), before = 0;
    for (int64_t kept = 0; before < r->layers; before++)
        if (r->layer[before] && kept++ == now) break;
    snprintf(buf, n, "%.*s%lld%s", (int)(at + 6 - name), name, (long long)before, rest);
}

static bool copy_params(const ses_model *m, const ses_reduction *r, ses_reduced_form form, ses_model *to,
                        ses_err *e)
{
    for (size_t i = 0; i < ses_store_count(to->store); i++) {
        char name[256];
        const ses_param *y = ses_store_at(to->store, i);
        bool renumbered = count(r->layer, r->layers) < r->layers;
        if (renumbered)
            name_before(r, y->name, name, sizeof name);
        else
            snprintf(name, sizeof name, "%s", y->name);
        const ses_param *x = ses_store_find(m->store, name);
        if (!x) return ses_fail(e, SES_EUNSUPPORTED, "the model has no parameter %s", name);
        if (!ses_store_alloc_one(to->store, i, e) || !copy_param(m, r, form, x, y, e)) return false;
    }
    return ses_model_loaded(to, false, e);
}

ses_model *ses_model_reduce(const ses_model *m, const ses_reduction *r, ses_reduced_form form, ses_err *e)
{
    if (!ses_reduction_check(r, m, e)) return NULL;
    ses_json_doc *config = ses_reduced_config(m, r, form, e);
    /* check_only: declared without values */
    ses_model_options o = { .class_name = m->class->name, .check_only = true };
    ses_model *to = config ? ses_model_new(ses_json_root(config), m->dev, &o, e) : NULL;
    if (to) to->doc = config;
    if (to && copy_params(m, r, form, to, e)) {
        ses_store_sync_bf16(to->store);
        return to;
    }
    if (!to) ses_json_free(config);
    ses_model_free(to);
    return NULL;
}
