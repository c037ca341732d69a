/* Adapters of a model: opening, their part in declaring and loading it, tensor names in their files.
 * Differences between kinds are in their ses_adapter_desc. */
#include "adapter_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "io/safetensors_impl.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

static const ses_adapter_desc *const kinds[] = {
#define SES_ADAPTER_KIND(number, name) &ses_adapter_##name,
#define SES_ADAPTER_CHOICE(number, name)
    SES_ADAPTER_LIST(SES_ADAPTER_KIND, SES_ADAPTER_CHOICE)
#undef SES_ADAPTER_KIND
#undef SES_ADAPTER_CHOICE
};

static void list_kinds(ses_buf *list, bool types)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        const char *name = types ? kinds[i]->peft_type : kinds[i]->name;
        if (name) ses_buf_appendf(list, "%s%s", list->len ? ", " : "", name);
    }
}

const ses_adapter_desc *ses_adapter_kind_named(const char *name, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    if (!e) return NULL;
    list_kinds(&list, false);
    ses_fail(e, SES_EARG, "no kind of adapter is called \"%s\"; choose from %s",
             ses_quoted_of(name, strlen(name)).s, list.len ? list.data : "");
    ses_buf_free(&list);
    return NULL;
}

const ses_adapter_desc *ses_adapter_kind_of(const ses_json *config, ses_err *e)
{
    ses_buf list = { 0 };
    const char *type = ses_json_string(ses_json_get(config, "peft_type"), NULL);
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        const ses_adapter_desc *d = kinds[i];
        if (d->recognizes ? d->recognizes(config) : type && !strcmp(d->peft_type, type)) return d;
    }
    list_kinds(&list, true);
    ses_fail(e, SES_EUNSUPPORTED, "\"peft_type\" is %s%s%s, expected one of %s", type ? "\"" : "",
             type ? ses_quoted_of(type, strlen(type)).s : "missing or not a string", type ? "\"" : "",
             list.len ? list.data : "");
    ses_buf_free(&list);
    return NULL;
}

ses_safetensors *ses_adapter_tensors_open(const char *dir, ses_err *e)
{
    ses_json_doc *d = ses_adapter_config_load(dir, e);
    const ses_adapter_desc *kind = d ? ses_adapter_kind_of(ses_json_root(d), e) : NULL;
    if (d && !kind) ses_wrap(e, "%s/" SES_ADAPTER_CONFIG, dir);
    ses_json_free(d);
    return kind ? ses_adapter_open_files(kind, dir, e) : NULL;
}

const char *ses_model_adapter_kind(const char *dir)
{
    ses_json_doc *d = ses_adapter_config_load(dir, NULL);
    const ses_adapter_desc *kind = d ? ses_adapter_kind_of(ses_json_root(d), NULL) : NULL;
    ses_json_free(d);
    return kind ? kind->name : NULL;
}

/* ---- opening ---- */

ses_adapter *ses_adapter_new(const ses_adapter_options *o, const char *base, ses_err *e)
{
    ses_adapter *a = ses_alloc(sizeof *a, e);
    if (!a) return NULL;
    a->is_new = true;
    a->o = *o;
    a->desc = ses_adapter_kind_named(o->kind ? o->kind : "lora", e);
    a->base = a->desc ? ses_strdup(base, e) : NULL;
    a->targets = a->base ? ses_strdup(o->targets ? o->targets : "", e) : NULL;
    if (a->targets && a->desc->check(o, e)) return a;
    ses_adapter_free(a);
    return NULL;
}

ses_safetensors *ses_adapter_open_files(const ses_adapter_desc *d, const char *dir, ses_err *e)
{
    const char *file[SES_LEN(d->file)];
    size_t n = 0;
    for (size_t i = 0; i < SES_LEN(d->file) && d->file[i][0]; i++)
        for (size_t k = 0; k < 2; k++) {
            char *path = ses_path_join(dir, d->file[i][k], e);
            bool found = path && ses_path_exists(path);
            ses_free(path);
            if (!path) return NULL;
            if (!found && (i || !k)) continue;
            file[n++] = found ? d->file[i][k] : d->file[i][0]; /* missing: the error names it */
            break;
        }
    return ses_tensors_open_files(dir, file, n, e);
}

ses_adapter *ses_adapter_open(const char *dir, const char *base, ses_err *e)
{
    ses_adapter *a = ses_alloc(sizeof *a, e);
    if (!a || !ses_adapter_read_config(a, dir, base, e)) goto fail;
    a->dir = ses_strdup(dir, e);
    a->file = a->dir ? ses_adapter_open_files(a->desc, dir, e) : NULL;
    a->used = a->file ? ses_alloc_array(ses_safetensors_count(a->file) + 1, sizeof *a->used, e) : NULL;
    if (a->used) return a;
fail:
    ses_adapter_free(a);
    return NULL;
}

ses_adapter *ses_adapter_continue(const char *dir, const char *base, double dropout, ses_err *e)
{
    ses_adapter *a = ses_adapter_open(dir, base, e);
    if (!a) return NULL;
    a->is_new = true;
    a->o.kind = a->desc->name;
    a->o.dropout = dropout;
    a->targets = ses_strdup("", e);
    if (a->targets && (!a->desc->resume || a->desc->resume(a, e))) return a;
    ses_wrap(e, "%s/%s", dir, a->desc->file[0][0]);
    ses_adapter_free(a);
    return NULL;
}

void ses_adapter_free(ses_adapter *a)
{
    while (a) {
        ses_adapter *next = a->next;
        ses_safetensors_free(a->file);
        ses_free(a->used);
        ses_free(a->dense);
        ses_free(a->targets);
        ses_free(a->base);
        ses_free(a->dir);
        ses_free(a);
        a = next;
    }
}

bool ses_adapter_add(ses_adapter **list, const char *dir, const char *base, ses_err *e)
{
    ses_adapter *a;
    int n = 0;
    for (; *list; list = &(*list)->next) n++;
    if (!ses_model_is_adapter(dir))
        return ses_fail(e, SES_EARG, "%s: not an adapter: " SES_ADAPTER_CONFIG " not found", dir);
    *list = a = ses_adapter_open(dir, base, e);
    if (a) a->number = n;
    return a != NULL;
}

const char *ses_adapter_base(const ses_adapter *a) { return a->base; }
bool ses_adapter_is_new(const ses_adapter *a) { return a && a->is_new; }

const char *ses_adapter_unmerged(const ses_adapter *a)
{
    for (; a; a = a->next)
        if (!a->desc->merges) return a->desc->title;
    return NULL;
}

/* ---- declaring ---- */

static void on_dense(void *ctx, ses_store *s, ses_dense *d, const char *name, int64_t out, int64_t in)
{
    for (ses_adapter *a = ctx; a; a = a->next)
        if (a->desc->dense) a->desc->dense(a, s, d, name, out, in);
}

static void on_layer(void *ctx, ses_store *s, ses_layer *l, const char *name, int64_t width)
{
    for (ses_adapter *a = ctx; a; a = a->next)
        if (a->desc->layer) a->desc->layer(a, s, l, name, width);
}

static bool is_trained(void *ctx, const char *name)
{
    const ses_adapter *a = ctx;
    return !a->is_new || (a->desc->trains && a->desc->trains(name));
}

void ses_adapter_begin(ses_adapter *first, ses_model *m)
{
    m->adapter_hook = (ses_adapter_hook){ is_trained, on_dense, on_layer, first };
    for (ses_adapter *a = first; a; a = a->next) a->declaring = m, a->n = 0;
    ses_store_set_adapter_hook(m->store, &m->adapter_hook);
}

bool ses_adapter_stacks(ses_adapter *a, ses_model *m, ses_err *e)
{
    for (; a; a = a->next)
        if (a->desc->stacks && !a->desc->stacks(a, m, e)) return false;
    return true;
}

bool ses_adapter_end(ses_adapter *a, ses_model *m, ses_err *e)
{
    ses_store_set_adapter_hook(m->store, NULL);
    for (; a; a = a->next) {
        if (a->err.code) return ses_fail(e, a->err.code, "%s", a->err.msg);
        if (a->desc->end && !a->desc->end(a, e)) return false;
    }
    return true;
}

/* ---- reading ---- */

static const char own[] = "adapter."; /* parameters that no module of transformers has */

bool ses_adapter_owns(const char *name)
{
    return !strncmp(name, own, strlen(own)) || strstr(name, ".lora_") || strstr(name, ".ia3_l");
}

bool ses_adapter_is_head(const char *name)
{
    return !ses_adapter_owns(name) && !strstr(name, ".adapters.") && strncmp(name, "prompt_", 7);
}

void ses_adapter_mark_used(ses_adapter *a, const ses_tensor_entry *x)
{
    a->used[x - ses_safetensors_at(a->file, 0)] = true;
}

static const ses_tensor_entry *find_in(const ses_adapter *a, const ses_model *m, const char *ours)
{
    char name[256];
    const ses_tensor_entry *x = NULL;
    if (!a->file) return NULL;
    if (!strncmp(ours, own, strlen(own))) {
        bool named = a->desc->tensor_name && a->desc->tensor_name(a, m, ours, name, sizeof name);
        return named ? ses_safetensors_find(a->file, name) : NULL;
    }
    for (int i = 0; !x && ses_name_to_hf_any(m, ours, i, name, sizeof name); i++)
        x = ses_entry_find(m, a->file, a->desc->prefix, name);
    return x || !a->desc->head ? x : a->desc->head(a, ours);
}

const ses_tensor_entry *ses_adapter_find(ses_adapter *a, const ses_model *m, const char *ours)
{
    const ses_tensor_entry *found = NULL;
    for (; a; a = a->next) { /* the last of several heads counts */
        const ses_tensor_entry *x = find_in(a, m, ours);
        if (x) ses_adapter_mark_used(a, x), found = x;
    }
    return found;
}

bool ses_adapter_has_file(const ses_adapter *a) { return a && a->file; }

bool ses_adapter_missing(const ses_model *m, const char *ours, const char *shape, ses_err *e)
{
    char name[256];
    for (const ses_adapter *a = m->adapter; a; a = a->next)
        if (a->desc->tensor_name && a->desc->tensor_name(a, m, ours, name, sizeof name))
            return ses_fail(e, SES_EFORMAT, "%s/%s: tensor \"%s\" %s is missing", a->dir ? a->dir : "",
                            a->desc->file[0][0], name, shape);
    return ses_fail(e, SES_EFORMAT, "%s: the adapter lacks it", ours);
}

bool ses_adapter_wrap_misfit(const ses_adapter *a, ses_err *e)
{
    bool misfit = ses_adapter_has_file(a) && a->dir && e && e->code == SES_EFORMAT;
    return misfit ? ses_wrap(e, "the adapter %s does not fit this model", a->dir) : false;
}

bool ses_adapter_check_disjoint(const ses_adapter *first, const ses_model *m, ses_err *e)
{
    for (size_t i = 0; first->next && i < m->first_head_param; i++) {
        const char *ours = ses_store_at(m->store, i)->name;
        const ses_adapter *has = NULL;
        for (const ses_adapter *a = first; a && !ses_adapter_owns(ours); a = a->next) {
            const ses_tensor_entry *x = find_in(a, m, ours);
            if (x && has)
                return ses_fail(e, SES_EUNSUPPORTED,
                                "%s and %s cannot be combined: both replace tensor \"%s\"", has->dir, a->dir,
                                ses_quoted_of(x->name, strlen(x->name)).s);
            if (x) has = a;
        }
    }
    return true;
}

bool ses_adapter_changes(const ses_adapter *a, const char *ours)
{
    for (; a; a = a->next)
        for (size_t i = 0; i < a->n; i++) {
            size_t n = strlen(a->dense[i].name);
            if (!a->dense[i].chosen || strncmp(ours, a->dense[i].name, n)) continue;
            if (!strcmp(ours + n, ".weight") || (a->desc->merges_bias && !strcmp(ours + n, ".bias")))
                return true;
        }
    return false;
}

/* The parameter NAME.part with memory of its own; NULL without error: there is none. */
static ses_tensor *own_param(ses_model *m, const char *dense, const char *part, const ses_model_options *o,
                             ses_err *e)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", dense, part);
    size_t i = 0, n = ses_store_count(m->store);
    while (i < n && strcmp(ses_store_at(m->store, i)->name, name)) i++;
    if (i == n) return NULL;
    const ses_param *p = ses_store_at(m->store, i);
    if (o->check_only || p->tensor->grad || p->owned) return p->tensor;
    /* mapped from a file: read-only */
    const ses_real *values = ses_master_data(p->tensor);
    bool mapped = p->mapped;
    size_t bytes = (size_t)ses_count(p->tensor) * sizeof *values;
    if (!ses_store_alloc_one(m->store, i, e)) return NULL;
    m->dev->mem->move(m->dev, ses_master_data(p->tensor), values, bytes);
    if (mapped) ses_mmap_release(values, bytes);
    return p->tensor;
}

static bool merge_one(ses_adapter *a, ses_model *m, const ses_adapter_target *d, const ses_model_options *o,
                      ses_err *e)
{
    ses_err failed = { 0 };
    ses_tensor *w = own_param(m, d->name, "weight", o, &failed),
               *bias =
                   a->desc->merges_bias && !failed.code ? own_param(m, d->name, "bias", o, &failed) : NULL;
    if (failed.code) return ses_fail(e, failed.code, "%s", failed.msg);
    for (size_t i = 0; i < SES_LEN(d->x); i++)
        if (d->x[i]) ses_adapter_mark_used(a, d->x[i]);
    return a->desc->merge(a, m, d, w, bias, o->check_only, e);
}

/* Fails if a tensor of the adapter was not used. In a model without head the head's tensors may remain. */
static bool all_used(const ses_adapter *a, const ses_model *m, const ses_model_options *o, ses_err *e)
{
    for (size_t i = 0; i < ses_safetensors_count(a->file); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(a->file, i);
        if (a->used[i] || o->no_head || (o->class_name && ses_adapter_is_head(x->name))) continue;
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\" does not belong to a %s",
                        ses_quoted_of(x->name, strlen(x->name)).s, m->class->name);
    }
    return true;
}

bool ses_adapter_merge(ses_adapter *a, ses_model *m, const ses_model_options *o, ses_err *e)
{
    for (; a; a = a->next) {
        bool ok = true, merges = a->desc->merge && !a->is_new;
        for (size_t i = 0; ok && merges && i < a->n; i++)
            if (a->dense[i].chosen) ok = merge_one(a, m, &a->dense[i], o, e);
        if (!ok || (a->file && !all_used(a, m, o, e))) return ses_wrap(e, "%s", a->desc->file[0][0]);
    }
    return true;
}

/* ---- writing ---- */

const ses_adapter_options *ses_model_adapter(const ses_model *m)
{
    return ses_adapter_is_new(m->adapter) ? &m->adapter->o : NULL;
}

bool ses_adapter_name(const ses_model *m, size_t i, char *buf, size_t n)
{
    const ses_param *p = ses_store_at(m->store, i);
    const ses_adapter_desc *d = m->adapter->desc;
    char name[256];
    if (p->role != SES_PARAM_TRAINED) return false;
    if (!strncmp(p->name, own, strlen(own))) {
        return d->tensor_name && d->tensor_name(m->adapter, m, p->name, buf, n);
    }
    return ses_name_to_hf(m, p->name, name, sizeof name) &&
           (size_t)snprintf(buf, n, "%s%s", d->prefix, name) < n;
}
