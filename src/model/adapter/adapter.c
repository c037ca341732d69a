/* LoRA adapters: target layers while a model is declared, merging, tensor names in adapter files. */
#include "adapter_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const LORA_A = ".lora_A.weight", *const LORA_B = ".lora_B.weight";

/* ---- opening ---- */

ses_adapter *ses_adapter_new(const ses_lora *l, const char *base, ses_err *e)
{
    ses_adapter *a = ses_alloc(sizeof *a, e);
    if (!a) return NULL;
    a->is_new = true;
    a->lora = *l;
    a->base = ses_strdup(base, e);
    a->targets = a->base ? ses_strdup(l->targets ? l->targets : "", e) : NULL;
    if (a->targets && l->rank >= 1 && l->dropout >= 0 && l->dropout < 1) return a;
    if (a->targets)
        ses_fail(
            e, SES_EARG,
            "rank %lld and dropout %g, expected a rank of at least 1 and a dropout rate from 0 to below 1",
            (long long)l->rank, l->dropout);
    ses_adapter_free(a);
    return NULL;
}

ses_adapter *ses_adapter_open(const char *dir, const char *base, ses_err *e)
{
    ses_adapter *a = ses_alloc(sizeof *a, e);
    char *path = a ? ses_path_join(dir, SES_ADAPTER_FILE, e) : NULL;
    if (!path || !ses_adapter_read_config(a, dir, base, e)) goto fail;
    a->file = ses_safetensors_open(path, e);
    a->used = a->file ? ses_alloc_array(ses_safetensors_count(a->file), sizeof *a->used, e) : NULL;
    if (!a->used) goto fail;
    ses_free(path);
    return a;
fail:
    ses_free(path);
    ses_adapter_free(a);
    return NULL;
}

/* The rank of all LoRA matrices. */
static bool common_rank(const ses_adapter *a, int64_t *rank, ses_err *e)
{
    *rank = 0;
    for (size_t i = 0; i < ses_safetensors_count(a->file); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(a->file, i);
        if (!strstr(x->name, LORA_A) || x->rank != 2) continue;
        if (*rank && x->dim[0] != *rank)
            return ses_fail(
                e, SES_EUNSUPPORTED,
                "the layers have ranks %lld and %lld: only an adapter with one rank can be trained "
                "further; merge it first (sesame convert)",
                (long long)*rank, (long long)x->dim[0]);
        *rank = x->dim[0];
    }
    return *rank || ses_fail(e, SES_EFORMAT, "no LoRA matrices found");
}

ses_adapter *ses_adapter_continue(const char *dir, const char *base, double dropout, ses_err *e)
{
    ses_adapter *a = ses_adapter_open(dir, base, e);
    if (!a) return NULL;
    a->is_new = true;
    a->lora.dropout = dropout;
    a->targets = ses_strdup("", e);
    if (a->targets && dropout >= 0 && dropout < 1 && common_rank(a, &a->lora.rank, e)) {
        if (a->use_rslora) a->lora.alpha *= sqrt((double)a->lora.rank); /* the same scale as plain LoRA */
        a->use_rslora = false;
        return a;
    }
    ses_fail(e, SES_EARG, "dropout %g, expected a rate from 0 to below 1", dropout);
    ses_wrap(e, "%s/" SES_ADAPTER_FILE, dir);
    ses_adapter_free(a);
    return NULL;
}

void ses_adapter_free(ses_adapter *a)
{
    if (!a) return;
    ses_safetensors_free(a->file);
    ses_free(a->used);
    ses_free(a->dense);
    ses_free(a->targets);
    ses_free(a->base);
    ses_free(a);
}

const char *ses_adapter_base(const ses_adapter *a) { return a->base; }
bool ses_adapter_is_new(const ses_adapter *a) { return a && a->is_new; }

/* ---- target layers ---- */

/* Is `end` the last part of the dotted `name`? "...self.query" ends in "query" and in "self.query". */
static bool ends_in(const char *name, const char *end, size_t n)
{
    size_t len = strlen(name);
    return len >= n && !strncmp(name + len - n, end, n) && (len == n || name[len - n - 1] == '.');
}

/* Default targets: query and value projections, or the matrix that holds both. */
static const char *targets_of(const ses_adapter *a) { return *a->targets ? a->targets : "query,value,qkv"; }

static bool targeted(const ses_adapter *a, const ses_lora_target *d)
{
    for (const char *at = targets_of(a); *at;) {
        size_t n = strcspn(at, ",");
        if (n == 3 && !strncmp(at, "all", n)) return true;
        if ((*a->targets && ends_in(d->hf_name, at, n)) || ends_in(d->name, at, n)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static const ses_tensor_entry *entry(const ses_adapter *a, const ses_model *m, const ses_lora_target *d,
                                     const char *part)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", d->hf_name, part);
    return ses_entry_find(m, a->file, SES_ADAPTER_PREFIX, name);
}

static void mark_used(ses_adapter *a, const ses_tensor_entry *x)
{
    a->used[x - ses_safetensors_at(a->file, 0)] = true;
}

/* Called for each dense layer as it is declared. A loaded adapter is merged, so nothing is declared for
 * it. */
static bool is_target(void *ctx, const char *dense, ses_weight_layout layout)
{
    ses_adapter *a = ctx;
    char name[200], hf_name[200];
    ses_lora_target d = { .layout = layout };
    snprintf(name, sizeof name, "%s.weight", dense);
    if (a->err.code || !ses_name_to_hf(a->declaring, name, hf_name, sizeof hf_name)) return false;
    size_t n = strlen(hf_name), end = strlen(".weight");
    if (n < end || strcmp(hf_name + n - end, ".weight")) return false; /* not a module of transformers */
    snprintf(d.name, sizeof d.name, "%s", dense);
    snprintf(d.hf_name, sizeof d.hf_name, "%.*s", (int)(n - end), hf_name);
    if (!a->file) {
        d.has_lora = targeted(a, &d);
    } else {
        d.lora_a = entry(a, a->declaring, &d, LORA_A), d.lora_b = entry(a, a->declaring, &d, LORA_B);
        d.has_lora = d.lora_a && d.lora_b;
    }
    if (!ses_array_reserve(&a->dense, &a->cap, a->n + 1, sizeof *a->dense, &a->err)) return false;
    a->dense[a->n++] = d;
    return a->is_new && d.has_lora;
}

void ses_adapter_begin(ses_adapter *a, ses_model *m)
{
    a->hook = (ses_lora_hook){ !a->is_new,      a->lora.rank, a->lora.alpha / (double)a->lora.rank,
                               a->lora.dropout, is_target,    a };
    a->declaring = m;
    a->n = 0;
    ses_store_set_lora_hook(m->store, &a->hook);
}

/* All module names that are valid targets, each once. */
static void list_modules(const ses_adapter *a, ses_buf *list)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *last = strrchr(a->dense[i].hf_name, '.'), *name = last ? last + 1 : a->dense[i].hf_name;
        bool listed = false;
        for (size_t j = 0; j < i && !listed; j++) listed = ends_in(a->dense[j].hf_name, name, strlen(name));
        if (!listed) ses_buf_appendf(list, "%s%s", list->len ? ", " : "", name);
    }
}

/* The targets of an adapter that is trained further. */
static bool name_targets(ses_adapter *a, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = 0; i < a->n; i++) {
        const char *last = strrchr(a->dense[i].hf_name, '.'), *name = last ? last + 1 : a->dense[i].hf_name;
        bool listed = !a->dense[i].has_lora;
        for (size_t j = 0; j < i && !listed; j++)
            listed = a->dense[j].has_lora && ends_in(a->dense[j].hf_name, name, strlen(name));
        if (!listed) ses_buf_appendf(&list, "%s%s", list.len ? "," : "", name);
    }
    bool ok = ses_buf_ok(&list, e);
    char *targets = ok ? ses_strdup(list.len ? list.data : "", e) : NULL;
    if (targets) {
        ses_free(a->targets);
        a->lora.targets = a->targets = targets;
    }
    ses_buf_free(&list);
    return targets != NULL;
}

bool ses_adapter_end(ses_adapter *a, ses_model *m, ses_err *e)
{
    ses_store_set_lora_hook(m->store, NULL);
    if (a->err.code) return ses_fail(e, a->err.code, "%s", a->err.msg);
    if (a->file) return !a->is_new || name_targets(a, e);
    for (const char *at = targets_of(a); *at;) {
        size_t n = strcspn(at, ","), hits = n == 3 && !strncmp(at, "all", n);
        for (size_t i = 0; i < a->n; i++)
            hits += *a->targets ? ends_in(a->dense[i].hf_name, at, n) || ends_in(a->dense[i].name, at, n)
                                : a->dense[i].has_lora; /* one of the default targets suffices */
        if (!hits) {
            ses_buf list = { 0 };
            list_modules(a, &list);
            ses_fail(e, SES_EARG, "no LoRA target is called \"%.*s\"; choose from %s", (int)n, at,
                     list.len ? list.data : "none");
            ses_buf_free(&list);
            return false;
        }
        at += n + (at[n] == ',');
    }
    return true;
}

/* ---- reading ---- */

const ses_tensor_entry *ses_adapter_find(ses_adapter *a, const ses_model *m, const char *ours)
{
    char name[256];
    const ses_tensor_entry *x = NULL;
    for (int i = 0; a->file && !x && ses_name_to_hf_any(m, ours, i, name, sizeof name); i++)
        x = ses_entry_find(m, a->file, SES_ADAPTER_PREFIX, name);
    if (x) mark_used(a, x);
    return x;
}

bool ses_adapter_changes(const ses_adapter *a, const char *ours)
{
    for (size_t i = 0; i < a->n; i++) {
        size_t n = strlen(a->dense[i].name);
        if (a->dense[i].has_lora && !strncmp(ours, a->dense[i].name, n) && !strcmp(ours + n, ".weight"))
            return true;
    }
    return false;
}

static bool check_shapes(const ses_lora_target *d, const ses_tensor *w, ses_err *e)
{
    const ses_tensor_entry *A = d->lora_a, *B = d->lora_b;
    int64_t out = w->dim[d->layout == SES_IN_OUT], in = w->dim[d->layout != SES_IN_OUT];
    if (A->rank == 2 && B->rank == 2 && A->dim[0] == B->dim[1] && A->dim[1] == in && B->dim[0] == out)
        return true;
    return ses_fail(e, SES_EFORMAT,
                    "tensors \"%s\" and \"%s\" must be [rank, %lld] and [%lld, rank] for a layer from "
                    "%lld to %lld",
                    ses_quoted_of(A->name, strlen(A->name)).s, ses_quoted_of(B->name, strlen(B->name)).s,
                    (long long)in, (long long)out, (long long)in, (long long)out);
}

static ses_real *upload_values(ses_device *dev, const ses_tensor_entry *x, double scale, ses_err *e)
{
    size_t n = (size_t)x->count;
    ses_real *host = ses_alloc_array(n, sizeof *host, e), *on = NULL;
    if (host && ses_convert(host, SES_REAL, x->data, x->dtype, n, e))
        on = dev->mem->alloc(dev, n * sizeof *on, e);
    for (size_t i = 0; on && i < n; i++) host[i] = (ses_real)(scale * (double)host[i]);
    if (on) dev->mem->upload(dev, on, host, n * sizeof *on);
    ses_free(host);
    return on;
}

/* w += scale B A, or its transpose if w is stored [in, out]. */
static bool add_product(const ses_adapter *a, ses_device *dev, const ses_lora_target *d, ses_tensor *w,
                        ses_err *e)
{
    int64_t rank = d->lora_a->dim[0], in = d->lora_a->dim[1], out = d->lora_b->dim[0];
    double scale = a->lora.alpha / (a->use_rslora ? sqrt((double)rank) : (double)rank);
    ses_real *A = upload_values(dev, d->lora_a, 1, e),
             *B = A ? upload_values(dev, d->lora_b, scale, e) : NULL;
    if (B) {
        ses_gemm g = ses_gemm_nn(ses_master_data(w), B, A, out, in, rank);
        if (d->layout == SES_IN_OUT) {
            g = ses_gemm_tn(ses_master_data(w), A, B, in, out, rank);
            g.b_row = 1, g.b_col = rank;
        }
        g.accumulate = true;
        ses_exec x = ses_exec_f32(dev);
        dev->k_f32.gemm(&x, &g);
    }
    if (A) dev->mem->free(dev, A);
    if (B) dev->mem->free(dev, B);
    return B != NULL;
}

static bool merge_one(ses_adapter *a, ses_model *m, const ses_lora_target *d, const ses_model_options *o,
                      ses_err *e)
{
    char name[128];
    size_t i = 0;
    snprintf(name, sizeof name, "%s.weight", d->name);
    while (strcmp(ses_store_at(m->store, i)->name, name)) i++;
    const ses_param *p = ses_store_at(m->store, i);
    mark_used(a, d->lora_a), mark_used(a, d->lora_b);
    if (!check_shapes(d, p->tensor, e)) return false;
    if (o->check_only) return true;
    const ses_real *values = ses_master_data(p->tensor);
    if (!p->tensor->grad && !p->owned) { /* mapped from a file: read-only */
        bool mapped = p->mapped;
        size_t bytes = (size_t)ses_count(p->tensor) * sizeof *values;
        if (!ses_store_alloc_one(m->store, i, e)) return false;
        m->dev->mem->move(m->dev, ses_master_data(p->tensor), values, bytes);
        if (mapped) ses_mmap_release(values, bytes);
    }
    return add_product(a, m->dev, d, p->tensor, e);
}

/* Fails if a tensor of the adapter was not used. In a model without head the head's tensors may remain. */
static bool all_used(const ses_adapter *a, const ses_model *m, const ses_model_options *o, ses_err *e)
{
    for (size_t i = 0; i < ses_safetensors_count(a->file); i++) {
        const ses_tensor_entry *x = ses_safetensors_at(a->file, i);
        if (a->used[i] || o->no_head || (o->class_name && !strstr(x->name, ".lora_"))) continue;
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\" does not belong to a %s",
                        ses_quoted_of(x->name, strlen(x->name)).s, m->class->name);
    }
    return true;
}

bool ses_adapter_merge(ses_adapter *a, ses_model *m, const ses_model_options *o, ses_err *e)
{
    bool ok = true;
    if (a->is_new) return !a->file || all_used(a, m, o, e) || ses_wrap(e, SES_ADAPTER_FILE);
    for (size_t i = 0; ok && i < a->n; i++)
        if (a->dense[i].has_lora) ok = merge_one(a, m, &a->dense[i], o, e);
    return (ok && all_used(a, m, o, e)) || ses_wrap(e, SES_ADAPTER_FILE);
}

/* ---- writing ---- */

const ses_lora *ses_model_lora(const ses_model *m)
{
    return ses_adapter_is_new(m->adapter) ? &m->adapter->lora : NULL;
}

bool ses_adapter_name(const ses_model *m, size_t i, char *buf, size_t n)
{
    const ses_param *p = ses_store_at(m->store, i);
    char name[256];
    if (p->role != SES_PARAM_TRAINED || !ses_name_to_hf(m, p->name, name, sizeof name)) return false;
    return (size_t)snprintf(buf, n, SES_ADAPTER_PREFIX "%s", name) < n;
}
