/* Dense layers that an adapter changes: selected by name, or found in the adapter's file. */
#include "adapter_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

bool ses_adapter_name_ends(const char *name, const char *end, size_t n)
{
    size_t len = strlen(name);
    return len >= n && !strncmp(name + len - n, end, n) && (len == n || name[len - n - 1] == '.');
}

static bool is_all(const char *at, size_t n) { return n == 3 && !strncmp(at, "all", n); }

static bool is_named(const ses_adapter_target *d, const char *at, size_t n)
{
    return ses_adapter_name_ends(d->hf_name, at, n) || ses_adapter_name_ends(d->name, at, n);
}

static bool targeted(const ses_adapter *a, const ses_adapter_target *d, const char *defaults)
{
    for (const char *at = *a->targets ? a->targets : defaults; *at;) {
        size_t n = strcspn(at, ",");
        if (is_all(at, n) || is_named(d, at, n)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static const ses_tensor_entry *entry(const ses_adapter *a, const ses_adapter_target *d, const char *part)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", d->hf_name, part);
    return ses_entry_find(a->declaring, a->file, a->desc->prefix, name);
}

bool ses_adapter_add_target(ses_adapter *a, const char *dense, ses_weight_layout layout,
                            const char *const parts[2], const char *defaults)
{
    char name[200], hf_name[200];
    ses_adapter_target d = { .layout = layout };
    snprintf(name, sizeof name, "%s.weight", dense);
    if (a->err.code || !ses_name_to_hf(a->declaring, name, hf_name, sizeof hf_name)) return false;
    size_t n = strlen(hf_name), end = strlen(".weight");
    if (n < end || strcmp(hf_name + n - end, ".weight")) return false; /* not a module of transformers */
    snprintf(d.name, sizeof d.name, "%s", dense);
    snprintf(d.hf_name, sizeof d.hf_name, "%.*s", (int)(n - end), hf_name);
    if (!a->file) {
        d.chosen = targeted(a, &d, defaults);
    } else {
        d.x[0] = entry(a, &d, parts[0]), d.x[1] = parts[1] ? entry(a, &d, parts[1]) : NULL;
        d.chosen = d.x[0] && (d.x[1] || !parts[1]);
    }
    if (!ses_array_reserve(&a->dense, &a->cap, a->n + 1, sizeof *a->dense, &a->err)) return false;
    a->dense[a->n++] = d;
    return d.chosen;
}

static const char *last_of(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot ? dot + 1 : module;
}

/* All module names that are valid targets, or the names of chosen layers, each once. */
static void list_modules(const ses_adapter *a, bool chosen, const char *between, ses_buf *list)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *name = last_of(a->dense[i].hf_name);
        bool listed = chosen && !a->dense[i].chosen;
        for (size_t j = 0; j < i && !listed; j++)
            listed = (!chosen || a->dense[j].chosen) && !strcmp(last_of(a->dense[j].hf_name), name);
        if (!listed) ses_buf_appendf(list, "%s%s", list->len ? between : "", name);
    }
}

/* The targets of an adapter that is trained further. */
static bool name_targets(ses_adapter *a, ses_err *e)
{
    ses_buf list = { 0 };
    list_modules(a, true, ",", &list);
    char *targets = ses_buf_ok(&list, e) ? ses_strdup(list.len ? list.data : "", e) : NULL;
    if (targets) {
        ses_free(a->targets);
        a->o.targets = a->targets = targets;
    }
    ses_buf_free(&list);
    return targets != NULL;
}

bool ses_adapter_check_targets(ses_adapter *a, const char *defaults, ses_err *e)
{
    if (a->file) return !a->is_new || name_targets(a, e);
    for (const char *at = *a->targets ? a->targets : defaults; *at;) {
        size_t n = strcspn(at, ","), hits = is_all(at, n);
        for (size_t i = 0; i < a->n; i++) /* one of the default targets suffices */
            hits += *a->targets ? is_named(&a->dense[i], at, n) : a->dense[i].chosen;
        if (!hits) {
            ses_buf list = { 0 };
            list_modules(a, false, ", ", &list);
            ses_fail(e, SES_EARG, "no %s target is called \"%.*s\"; choose from %s", a->desc->title, (int)n,
                     at, list.len ? list.data : "none");
            ses_buf_free(&list);
            return false;
        }
        at += n + (at[n] == ',');
    }
    return true;
}

/* Does the name select a layer that is not among the targets? */
static bool selects_others(const ses_adapter *a, const char *name, bool (*in)(const ses_adapter_target *d))
{
    for (size_t i = 0; i < a->n; i++)
        if (!(a->dense[i].chosen && (!in || in(&a->dense[i]))) &&
            ses_adapter_name_ends(a->dense[i].hf_name, name, strlen(name)))
            return true;
    return false;
}

/* The shortest name that selects this layer and no other than targets; peft matches names by their end. */
static const char *target_name(const ses_adapter *a, const ses_adapter_target *d,
                               bool (*in)(const ses_adapter_target *d))
{
    const char *name = last_of(d->hf_name);
    while (name > d->hf_name && selects_others(a, name, in))
        for (name--; name > d->hf_name && name[-1] != '.';) name--;
    return name;
}

void ses_adapter_put_targets(const ses_adapter *a, const char *key, bool (*in)(const ses_adapter_target *d),
                             ses_json_writer *w)
{
    ses_json_member_array(w, key);
    for (size_t i = 0; i < a->n; i++) {
        if (!a->dense[i].chosen || (in && !in(&a->dense[i]))) continue;
        const char *name = target_name(a, &a->dense[i], in);
        bool listed = false;
        for (size_t j = 0; j < i && !listed; j++)
            listed = a->dense[j].chosen && (!in || in(&a->dense[j])) &&
                     !strcmp(target_name(a, &a->dense[j], in), name);
        if (!listed) ses_json_put_string(w, name);
    }
    ses_json_end_array(w);
}

ses_real *ses_adapter_upload(ses_device *dev, const ses_tensor_entry *x, double scale, ses_err *e)
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
