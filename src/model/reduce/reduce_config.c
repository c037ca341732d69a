/* The config of a reduced model: number of layers, lists by layer, "pruned_heads", widths. */
#include "reduce_impl.h"

#include "base/json/json_helpers.h"

#include <stdio.h>
#include <string.h>

static bool sets_field(const ses_model_desc *d, const char *key, size_t field)
{
    for (size_t i = 0; i < SES_LEN(d->keys); i++)
        for (size_t j = 0; j < d->keys[i].n; j++)
            if (d->keys[i].key[j].offset == field && !strcmp(d->keys[i].key[j].key, key)) return true;
    return false;
}

/* ---- heads ---- */

/* The missing heads of one layer, numbered as before any removal. stays: a flag for each head that m has. */
static void put_missing(ses_json_writer *w, const ses_stack *k, const ses_removed_heads *before,
                        int64_t layer, const uint8_t *stays, int64_t number)
{
    char key[24];
    bool any = false;
    snprintf(key, sizeof key, "%lld", (long long)number);
    for (int64_t h = 0, now = 0; h < k->heads; h++) {
        bool gone = before->removed && before->removed[layer * k->heads + h];
        if (!gone && stays[now++]) continue;
        if (!any) ses_json_member_array(w, key);
        any = true;
        ses_json_put_int(w, h);
    }
    if (any) ses_json_end_array(w);
}

static void put_part(ses_json_writer *w, const ses_model *m, const ses_reduction *r, ses_part part)
{
    const ses_stack *k = &m->stack[part != SES_PART_MAIN];
    const ses_removed_heads *before = part == SES_PART_CROSS ? &k->cross_pruned : &k->pruned;
    for (int64_t l = 0, number = 0; l < r->depth[part]; l++) {
        if (part == SES_PART_MAIN && !r->layer[l]) continue;
        put_missing(w, k, before, l, r->head[part] + l * r->heads[part], number++);
    }
}

static void put_pruned_heads(ses_json_writer *w, const ses_model *m, const ses_reduction *r)
{
    static const char *const keys[] = { "encoder", "decoder", "cross" };
    ses_json_member_object(w, "pruned_heads");
    if (!m->desc->encoder_decoder) put_part(w, m, r, SES_PART_MAIN);
    for (ses_part k = SES_PART_MAIN; m->desc->encoder_decoder && k <= SES_PART_CROSS; k++) {
        /* a decoder without its encoder is the main part */
        ses_json_member_object(w, keys[m->class->decoder_only ? (k + 1) % 3 : k]);
        put_part(w, m, r, k);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}

static bool misses_heads(const ses_model *m, const ses_reduction *r)
{
    for (ses_part part = SES_PART_MAIN; part <= SES_PART_CROSS; part++)
        for (int64_t l = 0; l < r->depth[part]; l++)
            if ((part != SES_PART_MAIN || r->layer[l]) &&
                ses_reduction_heads(r, m, part, l) < m->stack[part != SES_PART_MAIN].heads)
                return true;
    return false;
}

/* ---- widths and layers ---- */

/* The width of all layers that stay; 0: they differ. */
static int64_t one_width(const ses_model *m, const ses_reduction *r)
{
    int64_t width = -1;
    for (int64_t l = 0; l < r->layers; l++) {
        if (!r->layer[l]) continue;
        int64_t n = ses_reduction_rows(r, m, l);
        if (width >= 0 && n != width) return 0;
        width = n;
    }
    return width;
}

static void put_widths(ses_json_writer *w, const ses_model *m, const ses_reduction *r)
{
    ses_json_member_array(w, "sesame_ffn_widths");
    for (int64_t l = 0; l < r->layers; l++)
        if (r->layer[l]) ses_json_put_int(w, ses_reduction_rows(r, m, l));
    ses_json_end_array(w);
}

static bool is_local(const ses_model *m, int64_t layer)
{
    return m->c.attention.local_layers[layer / 64] >> (layer % 64) & 1;
}

/* Attention of the layers that stay: a list, and the distance of global layers if they have one. */
static void put_layer_kinds(ses_json_writer *w, const ses_model *m, const ses_reduction *r, int64_t layers)
{
    bool local[SES_MAX_LAYERS];
    int64_t n = 0, every = 1;
    for (int64_t l = 0; l < r->layers; l++)
        if (r->layer[l]) local[n++] = is_local(m, l);
    for (bool fits = false; every <= layers && !fits; every += !fits) {
        fits = true;
        for (int64_t i = 0; i < n; i++) fits &= local[i] == (i % every != 0);
    }
    if (every <= layers) ses_json_member_int(w, m->desc->layer_kinds.every, every);
    ses_json_member_array(w, m->desc->layer_kinds.key);
    for (int64_t i = 0; i < n; i++)
        ses_json_put_string(w, local[i] ? m->desc->layer_kinds.local : m->desc->layer_kinds.global);
    ses_json_end_array(w);
}

/* Differences between the config of m and the reduced one. */
typedef struct changes {
    const ses_config_key *layers, *width; /* NULL: unchanged */
    int64_t n_layers, n_rows;
    bool widths, kinds; /* "sesame_ffn_widths"; the list of local and global layers */
} changes;

static bool plan(changes *x, const ses_model *m, const ses_reduction *r, ses_reduced_form form, ses_err *e)
{
    const ses_stack *k = &m->stack[0];
    *x = (changes){ 0 };
    for (int64_t l = 0; l < r->layers; l++) x->n_layers += r->layer[l] != 0;
    if (x->n_layers < r->layers) {
        x->layers = ses_config_key_of(m->desc, m->config, offsetof(ses_config, layers), SES_KEY_TYPE_INT);
        x->kinds = m->desc->layer_kinds.every != NULL;
        if (!x->layers)
            return ses_fail(e, SES_EUNSUPPORTED, "%s models have no setting for the number of layers",
                            m->desc->name);
    }
    x->n_rows = one_width(m, r);
    if (form == SES_REDUCED_FILLED || x->n_rows == k->ffn || ses_ffn_widths_unsupported(m->desc, &m->c))
        return true;
    if (x->n_rows)
        x->width = ses_config_key_of(m->desc, m->config, offsetof(ses_config, ffn.width), SES_KEY_TYPE_INT);
    x->widths = !x->width;
    return true;
}

/* Is the key of m's config written in another way? */
static bool replaces(const changes *x, const ses_model_desc *d, const char *key)
{
    static const char *const always[] = { "pruned_heads", "quantization_config", "sesame_ffn_widths" };
    for (size_t i = 0; i < SES_LEN(always); i++)
        if (!strcmp(key, always[i])) return true;
    if (x->layers && sets_field(d, key, offsetof(ses_config, layers))) return true;
    if (x->width && sets_field(d, key, offsetof(ses_config, ffn.width))) return true;
    return x->kinds && (!strcmp(key, d->layer_kinds.key) || !strcmp(key, d->layer_kinds.every));
}

/* The entries of a list for the layers that stay. */
static void put_entries(ses_json_writer *w, const ses_json *list, const ses_reduction *r)
{
    ses_json_begin_array(w);
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (i >= (size_t)r->layers || r->layer[i]) ses_json_put_value(w, ses_json_at(list, i));
    ses_json_end_array(w);
}

ses_json_doc *ses_reduced_config(const ses_model *m, const ses_reduction *r, ses_reduced_form form,
                                 ses_err *e)
{
    changes x;
    ses_json_writer *w = plan(&x, m, r, form, e) ? ses_json_writer_new(2, e) : NULL;
    if (!w) return NULL;
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(m->config); i++) {
        size_t len;
        const char *key = ses_json_key(m->config, i, &len);
        if (replaces(&x, m->desc, key)) continue;
        ses_json_put_keyn(w, key, len);
        const ses_json *value = ses_json_at(m->config, i);
        if (x.layers && !strcmp(key, "layer_types"))
            put_entries(w, value, r);
        else
            ses_json_put_value(w, value);
    }
    if (x.layers) ses_json_member_int(w, x.layers->key, x.n_layers);
    if (x.width) ses_json_member_int(w, x.width->key, x.n_rows);
    if (x.kinds) put_layer_kinds(w, m, r, x.n_layers);
    if (x.widths) put_widths(w, m, r);
    if (form == SES_REDUCED_SMALL && misses_heads(m, r)) put_pruned_heads(w, m, r);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}
