/* A model without some of its heads: "pruned_heads" in config.json and smaller weights. */
#include "prune.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tensor/device_impl.h"
#include "text/legacy/legacy_files.h"
#include "text/tokenizer_files.h"

#include <stdio.h>
#include <string.h>

static const char *const part_keys[] = { "encoder", "decoder", "cross" };

/* Is the head, counted among the heads of the model as it is now, removed? */
static bool is_removed(const ses_prune_head *const *without, size_t n, ses_part part, int64_t layer,
                       int64_t head)
{
    for (size_t i = 0; i < n; i++)
        if (without[i]->part == part && without[i]->layer == layer && without[i]->head == head) return true;
    return false;
}

/* Was this head of the original model removed before? */
static bool was_pruned(const ses_json *pruned, int64_t layer, int64_t head)
{
    char key[24];
    snprintf(key, sizeof key, "%lld", (long long)layer);
    const ses_json *list = ses_json_get(pruned, key);
    for (size_t i = 0; i < ses_json_len(list); i++) {
        int64_t x;
        if (ses_json_int(ses_json_at(list, i), &x) && x == head) return true;
    }
    return false;
}

/* The layers of a part, as members. */
static void put_layers(const ses_prune *p, const ses_prune_head *const *without, size_t n, ses_part part,
                       const ses_json *pruned, ses_json_writer *w)
{
    int64_t heads = p->m->stack[part != SES_PART_MAIN].heads;
    for (int64_t l = 0; l < ses_model_part_layers(p->m, part); l++) {
        char key[24];
        bool any = false;
        snprintf(key, sizeof key, "%lld", (long long)l);
        for (int64_t h = 0, now = 0; h < heads; h++) {
            bool before = was_pruned(pruned, l, h), gone = before || is_removed(without, n, part, l, now);
            now += !before;
            if (!gone) continue;
            if (!any) ses_json_member_array(w, key);
            any = true;
            ses_json_put_int(w, h);
        }
        if (any) ses_json_end_array(w);
    }
}

static void put_pruned_heads(const ses_prune *p, const ses_prune_head *const *without, size_t n,
                             ses_json_writer *w)
{
    const ses_json *before = ses_json_get(ses_model_config(p->m), "pruned_heads");
    ses_json_member_object(w, "pruned_heads");
    if (!p->m->desc->encoder_decoder) put_layers(p, without, n, SES_PART_MAIN, before, w);
    for (ses_part k = SES_PART_MAIN; p->m->desc->encoder_decoder && k <= SES_PART_CROSS; k++) {
        /* a decoder without its encoder is the main part */
        const char *key = part_keys[p->m->class->decoder_only ? (k + 1) % 3 : k];
        ses_json_member_object(w, key);
        put_layers(p, without, n, k, ses_json_get(before, key), w);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}

/* The config with the heads removed; without the keys of quantized weights. */
static ses_json_doc *new_config(const ses_prune *p, const ses_prune_head *const *without, size_t n,
                                ses_err *e)
{
    const ses_json *config = ses_model_config(p->m);
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        size_t len;
        const char *key = ses_json_key(config, i, &len);
        if (!strcmp(key, "pruned_heads") || !strcmp(key, "quantization_config")) continue;
        ses_json_put_keyn(w, key, len);
        ses_json_put_value(w, ses_json_at(config, i));
    }
    put_pruned_heads(p, without, n, w);
    ses_json_end_object(w);
    size_t len;
    const char *text = ses_json_writer_text(w, &len, e);
    ses_json_doc *doc = text ? ses_json_parse(text, len, e) : NULL;
    ses_json_writer_free(w);
    return doc;
}

/* ---- weights ---- */

/* A weight as [outer, n_parts, heads, D, inner]: heads are removed along the middle. */
typedef struct head_axes {
    ses_part part;
    int64_t layer;
    int64_t outer, n_parts, heads, dim, inner;
} head_axes;

static int64_t copy_kept(const head_axes *c, const ses_prune_head *const *without, size_t n,
                         const ses_real *from, ses_real *to)
{
    int64_t at = 0, block = c->dim * c->inner;
    for (int64_t i = 0; i < c->outer * c->n_parts * c->heads; i++) {
        if (is_removed(without, n, c->part, c->layer, i % c->heads)) continue;
        memcpy(to + at, from + i * block, (size_t)block * sizeof *to);
        at += block;
    }
    return at;
}

/* "layer.0.attn.query.weight", "decoder.layer.0.cross.out.weight": *rest is what follows the part. */
static bool split_name(const char *name, head_axes *c, char rest[64])
{
    char kind[8];
    long long layer;
    bool decoder = !strncmp(name, "decoder.", 8);
    if (sscanf(name + (decoder ? 8 : 0), "layer.%lld.%7[a-z].%63s", &layer, kind, rest) != 3) return false;
    bool cross = !strcmp(kind, "cross");
    c->part = cross ? SES_PART_CROSS : decoder ? SES_PART_DECODER : SES_PART_MAIN;
    c->layer = layer;
    return cross || !strcmp(kind, "attn");
}

/* How the heads lie in parameter x. False: it has no heads. */
static bool find_heads(const ses_model *m, const ses_param *x, head_axes *c)
{
    char rest[64];
    if (!split_name(x->name, c, rest)) return false;
    bool alone = !m->stack[1].layer; /* a decoder without its encoder is the main part */
    if (alone) c->part = SES_PART_MAIN;
    const ses_stack *k = &m->stack[c->part != SES_PART_MAIN];
    int64_t D = k->c->attention.head_size ? k->c->attention.head_size : k->c->hidden / k->heads,
            heads = ses_model_part_heads(m, c->part, c->layer), count = ses_count(x->tensor);
    bool out = !strcmp(rest, "out.weight"), bias = strstr(rest, ".bias") != NULL,
         qkv = !strncmp(rest, "qkv.", 4),
         projects_in =
             qkv || !strncmp(rest, "query.", 6) || !strncmp(rest, "key.", 4) || !strncmp(rest, "value.", 6);
    if (!out && !projects_in) return false;
    int64_t all = qkv ? 3 : 1, columns = count / (all * heads * D);
    bool interleaved = qkv && k->c->attention.qkv_layout == SES_QKV_INTERLEAVED; /* q, k, v of a head */
    bool heads_last = !bias && (x->layout == SES_IN_OUT) != out; /* columns of the stored matrix */
    c->outer = heads_last ? columns : 1, c->inner = heads_last ? 1 : columns;
    c->n_parts = interleaved ? 1 : all, c->heads = heads, c->dim = interleaved ? all * D : D;
    return true;
}

static bool copy_param(const ses_prune *p, const ses_param *from, const ses_param *to,
                       const ses_prune_head *const *without, size_t n, ses_err *e)
{
    ses_device *dev = p->call->dev;
    int64_t count = ses_count(from->tensor), kept = ses_count(to->tensor);
    head_axes c;
    ses_real *x = ses_alloc_array((size_t)count, sizeof *x, e),
             *y = ses_alloc_array((size_t)count, sizeof *y, e);
    bool ok = x && y && ses_device_read(dev, from->tensor, 0, count, x, e);
    if (ok && kept != count) {
        ok = find_heads(p->m, from, &c) && copy_kept(&c, without, n, x, y) == kept;
        if (!ok) ses_fail(e, SES_EUNSUPPORTED, "heads cannot be removed from %s", from->name);
    }
    if (ok)
        dev->mem->upload(dev, ses_master_data(to->tensor), kept == count ? x : y, (size_t)kept * sizeof *x);
    ses_free(x), ses_free(y);
    return ok;
}

static bool copy_params(const ses_prune *p, ses_model *to, const ses_prune_head *const *without, size_t n,
                        ses_err *e)
{
    const ses_store *a = ses_model_store(p->m), *b = ses_model_store(to);
    for (size_t i = 0; i < ses_store_count(a); i++) {
        const ses_param *y = ses_store_find(b, ses_store_at(a, i)->name);
        if (!y) return ses_fail(e, SES_EUNSUPPORTED, "no parameter %s", ses_store_at(a, i)->name);
        if (!copy_param(p, ses_store_at(a, i), y, without, n, e)) return false;
    }
    return true;
}

/* ---- files ---- */

static bool copy_tokenizer(const ses_prune *p, const char *dir, ses_err *e)
{
    char *home = ses_tokenizer_home(p->call->model_dir, e);
    bool done = false, ok = home && ses_tokenizer_convert_original(home, dir, p->call->overwrite, &done, e);
    for (int i = 0; ok && !done && i < SES_TOKENIZER_FILES; i++) {
        char *from = ses_path_join(home, ses_tokenizer_file_names[i], e),
             *to = ses_path_join(dir, ses_tokenizer_file_names[i], e), *text = NULL;
        size_t n;
        ok = from && to;
        if (ok && ses_path_exists(from)) {
            text = ses_file_read(from, (size_t)1 << 31, &n, e);
            ok = text && ses_file_write(to, text, n, p->call->overwrite, e);
        }
        ses_free(from), ses_free(to), ses_free(text);
    }
    ses_free(home);
    return ok;
}

bool ses_prune_write(ses_prune *p, const ses_prune_head *const *without, size_t n, const char *dir,
                     ses_err *e)
{
    const char *why = ses_pruned_heads_unsupported(p->m->desc, &p->m->c);
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "--write: heads of a %s model cannot be removed: %s",
                        ses_model_type(p->m), why);
    ses_json_doc *config = new_config(p, without, n, e);
    ses_model_options o = { .class_name = ses_model_class_name(p->m), .no_packing = true };
    ses_model *m = config ? ses_model_new(ses_json_root(config), p->call->dev, &o, e) : NULL;
    ses_save_options save = { .dtype = SES_F32, .overwrite = p->call->overwrite };
    bool ok = m && copy_params(p, m, without, n, e) && ses_model_save(m, dir, &save, e) &&
              copy_tokenizer(p, dir, e);
    ses_model_free(m);
    ses_json_free(config);
    return ok || ses_wrap(e, "--write %s", dir);
}
