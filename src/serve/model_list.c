/* The list of models to serve. */
#include "model_list.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 1 << 20 };

struct ses_model_list {
    char **spec; /* given on the command line */
    size_t n, capacity;
    char *file;
};

typedef struct specs {
    char **at;
    size_t n, capacity;
} specs;

static bool add(specs *s, const char *text, size_t n, ses_err *e)
{
    if (!ses_array_reserve(&s->at, &s->capacity, s->n + 1, sizeof *s->at, e)) return false;
    char *copy = ses_alloc(n + 1, e);
    if (!copy) return false;
    memcpy(copy, text, n);
    s->at[s->n++] = copy;
    return true;
}

static void specs_free(specs *s)
{
    for (size_t i = 0; i < s->n; i++) ses_free(s->at[i]);
    ses_free(s->at);
}

ses_model_list *ses_model_list_new(const char *const *list, size_t n, const char *file, ses_err *e)
{
    ses_model_list *l = ses_alloc(sizeof *l, e);
    specs s = { 0 };
    bool ok = l != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = add(&s, list[i], strlen(list[i]), e);
    if (ok && file) ok = (l->file = ses_strdup(file, e)) != NULL;
    if (!ok) {
        specs_free(&s);
        ses_model_list_free(l);
        return NULL;
    }
    l->spec = s.at, l->n = s.n, l->capacity = s.capacity;
    return l;
}

void ses_model_list_free(ses_model_list *l)
{
    if (!l) return;
    specs_free(&(specs){ l->spec, l->n, l->capacity });
    ses_free(l->file);
    ses_free(l);
}

static bool read_file(const char *path, specs *s, ses_err *e)
{
    size_t size = 0;
    char *text = ses_file_read(path, MAX_FILE, &size, e);
    bool ok = text != NULL;
    for (size_t at = 0; ok && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - (text + at)) : size - at, len = n;
        while (len && (text[at + len - 1] == '\r' || text[at + len - 1] == ' ')) len--;
        if (len && text[at] != '#') ok = add(s, text + at, len, e);
        at += n + 1;
    }
    ses_free(text);
    return ok;
}

static bool is_listed(const specs *s, const char *name)
{
    char other[256];
    for (size_t i = 0; i < s->n; i++)
        if (ses_registry_spec_name(s->at[i], other, sizeof other, NULL) && !strcmp(other, name)) return true;
    return false;
}

static bool load(const specs *s, ses_registry *r, bool reload, ses_err *e)
{
    char name[256];
    for (size_t i = 0; i < s->n; i++) {
        if (!ses_registry_spec_name(s->at[i], name, sizeof name, e)) return false;
        ses_served_model *loaded = reload ? NULL : ses_registry_find(r, name, NULL);
        ses_served_model_release(loaded);
        if (!loaded && !ses_registry_load(r, s->at[i], e)) return ses_wrap(e, "model %s", s->at[i]);
    }
    return true;
}

bool ses_model_list_apply(ses_model_list *l, ses_registry *r, bool reload, ses_err *e)
{
    specs all = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < l->n; i++) ok = add(&all, l->spec[i], strlen(l->spec[i]), e);
    if (ok && l->file) ok = read_file(l->file, &all, e);
    if (ok && !all.n)
        ok =
            ses_fail(e, SES_EARG, "%s: contains no model; write a folder, a name or NAME=FOLDER on each line",
                     l->file ? l->file : "the list of models");
    ok = ok && load(&all, r, reload, e);
    size_t n = 0;
    ses_served_model **loaded = ok ? ses_registry_list(r, &n, e) : NULL;
    for (size_t i = 0; i < n; i++) {
        if (!is_listed(&all, loaded[i]->name)) ses_registry_unload(r, loaded[i]->name, NULL);
        ses_served_model_release(loaded[i]);
    }
    ses_free(loaded);
    specs_free(&all);
    return ok;
}
