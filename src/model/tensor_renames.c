/* Names of tensors in the layouts that publishers use, as transformers has them: a tensor is renamed, or its
 * rows are divided among several (fused projections). The new tensors are views of the file. */
#include "base/json/json_helpers.h"
#include "io/safetensors_impl.h"
#include "model_desc.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 256 };

/* The rename of a tensor, behind any prefix; NULL: none. */
static const ses_tensor_rename *find(const ses_model_desc *d, const char *name, int *number,
                                     const char **rest)
{
    for (const char *at = name; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL)
        for (size_t i = 0; i < d->n_renames; i++) {
            *number = 0, *rest = "";
            if (ses_name_match(d->renames[i].from, at, number, rest) && !strchr(*rest, '.'))
                return &d->renames[i];
        }
    return NULL;
}

bool ses_tensor_is_renamed(const ses_model_desc *d, const char *name)
{
    int number;
    const char *rest;
    return find(d, name, &number, &rest) != NULL;
}

static int64_t parts_of(const ses_tensor_rename *r)
{
    int64_t n = 0;
    while (n < SES_RENAME_PARTS && r->to[n]) n++;
    return n;
}

/* Part i of n, as a tensor of its own. */
static bool add_part(ses_safetensors *file, const ses_tensor_entry *x, int64_t i, int64_t n, const char *name,
                     ses_err *e)
{
    if (ses_safetensors_find(file, name)) return true;
    ses_tensor_entry part = *x;
    part.name = ses_arena_strndup(&file->arena, name, strlen(name), e);
    part.count /= n, part.bytes /= (size_t)n, part.dim[0] /= x->rank ? n : 1;
    part.data = (const char *)x->data + (size_t)i * part.bytes;
    return part.name && ses_tensor_entry_add(file, &part, e);
}

bool ses_tensors_rename(const ses_model_desc *d, ses_safetensors *file, ses_err *e)
{
    size_t n = file->n_entry;
    if (!d->n_renames) return true;
    if (!ses_tensor_entries_reserve(file, n * SES_RENAME_PARTS, e)) return false;
    for (size_t i = 0; i < n; i++) {
        ses_tensor_entry x = file->entry[i];
        char name[NAME];
        int number;
        const char *rest;
        const ses_tensor_rename *r = find(d, x.name, &number, &rest);
        int64_t parts = r ? parts_of(r) : 0;
        if (parts > 1 && (!x.rank || x.dim[0] % parts))
            return ses_fail(e, SES_EFORMAT, "%s: tensor \"%s\": its rows cannot be divided into %lld parts",
                            x.file, ses_quoted_of(x.name, strlen(x.name)).s, (long long)parts);
        for (int64_t k = 0; k < parts; k++)
            if (!ses_name_expand(name, sizeof name, "", r->to[k], number, 1, rest) ||
                !add_part(file, &x, k, parts, name, e))
                return false;
    }
    return true;
}

/* *found: the type with the tensors of a folder, whatever its config has; NULL: none, or the folder lacks
 * weights that can be read, which opening them reports. False: no memory. */
static bool find_by_tensors(const char *dir, const ses_model_desc **type, ses_err *e)
{
    ses_err why = { 0 };
    const ses_model_desc *found = NULL;
    ses_safetensors *file = ses_checkpoint_open(dir, &why);
    for (const ses_model_desc *const *d = ses_models(); file && *d && !found; d++)
        for (size_t i = 0; (*d)->signature && i < ses_safetensors_count(file) && !found; i++)
            if (strstr(ses_safetensors_at(file, i)->name, (*d)->signature)) found = *d;
    ses_safetensors_free(file);
    *type = found;
    if (!file && why.code == SES_ENOMEM) return *e = why, false;
    return true;
}

/* May the tensors show another type than the config: a type whose name others borrow, or an unknown one? */
static bool may_be_another(const ses_json *config)
{
    const char *type = ses_json_string(ses_json_get(config, "model_type"), NULL);
    for (const ses_model_desc *const *d = ses_models(); type && *d; d++)
        if (!strcmp((*d)->name, type)) return (*d)->borrowed_name;
    return type != NULL;
}

ses_json_doc *ses_config_recognize(ses_json_doc *doc, const char *dir, ses_err *e)
{
    const ses_json *config = ses_json_root(doc);
    const ses_model_desc *d = NULL;
    if (may_be_another(config) && !find_by_tensors(dir, &d, e)) {
        ses_json_free(doc);
        return NULL;
    }
    if (!d) return doc;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "model_type", d->name);
        for (size_t i = 0; i < ses_json_len(config); i++) {
            const char *key = ses_json_key(config, i, NULL);
            if (!strcmp(key, "model_type")) continue;
            ses_json_put_key(w, key);
            ses_json_put_value(w, ses_json_at(config, i));
        }
        ses_json_end_object(w);
    }
    ses_json_doc *changed = w ? ses_json_writer_parse(w, e) : NULL;
    ses_json_free(doc);
    return changed;
}
