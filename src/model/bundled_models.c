/* Resolves model names to folders: SESAME_MODELS, the models beside the running program and the library, the
 * installed models (of the prefix given to the build), and the Hugging Face cache. It reads the environment,
 * so that programs find models by the same names as the command. */
#define _GNU_SOURCE /* dladdr */
#include "bundled_models.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/suggest.h"
#include "folder/model_folder.h"
#include "hub/hub_cache.h"
#include "hub/hub_name.h"
#include "tensor/configured.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *task, *name;
} bundled[] = {
#define SES_BUNDLED_MODEL(task, folder) { task, folder },
#include "bundled_models.def"
#undef SES_BUNDLED_MODEL
};

const char *ses_model_default(const char *task)
{
    for (size_t i = 0; i < SES_LEN(bundled); i++)
        if (!strcmp(bundled[i].task, task)) return bundled[i].name;
    return NULL;
}

const char *ses_bundled_task(const char *name, int i)
{
    for (size_t k = 0; k < SES_LEN(bundled); k++)
        if (!strcmp(bundled[k].name, name) && !i--) return bundled[k].task;
    return NULL;
}

/* ---- search path ---- */

void ses_bundled_dirs_free(ses_bundled_dirs *d)
{
    for (size_t i = 0; i < d->n; i++) ses_free(d->dir[i]);
    d->n = 0;
}

/* Adds a folder under its canonical path, if it exists and is new. */
static bool add_dir(ses_bundled_dirs *d, const char *dir, ses_err *e)
{
    char *real = d->n < SES_BUNDLED_MAX_DIRS ? realpath(dir, NULL) : NULL;
    bool is_new = real && ses_path_is_dir(real);
    for (size_t i = 0; is_new && i < d->n; i++) is_new = strcmp(d->dir[i], real) != 0;
    if (is_new) d->dir[d->n++] = ses_strdup(real, e);
    bool ok = !is_new || d->dir[d->n - 1];
    if (!ok) d->n--;
    free(real); /* realpath's, not ses_alloc's */
    return ok;
}

static bool add_list(ses_bundled_dirs *d, const char *list, ses_err *e)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ":");
        char *dir = ses_strndup(at, n, e);
        bool ok = dir && (!n || add_dir(d, dir, e));
        ses_free(dir);
        if (!ok) return false;
        at += n + (at[n] == ':');
    }
    return true;
}

/* Adds folders relative to that of a file. */
static bool add_beside(ses_bundled_dirs *d, const char *file, const char *const *from, size_t n, ses_err *e)
{
    char *parent = ses_path_parent(file, e);
    bool ok = parent != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        char *dir = ses_path_join(parent, from[i], e);
        ok = dir && add_dir(d, dir, e);
        ses_free(dir);
    }
    ses_free(parent);
    return ok;
}

/* The running program: in build/ or build/PRESET/ of the sources, or in bin/ of a prefix or of the Python
 * package. The library, if it is a file of its own: in the Python package or its sources, or in lib/ of a
 * prefix. */
static bool add_program_dirs(ses_bundled_dirs *d, ses_err *e)
{
    static const char *const of_program[] = { "../models", "../../models", "../share/sesame/models" };
    static const char *const of_library[] = { "models", "../../models", "../share/sesame/models" };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (n > 0 && !add_beside(d, self, of_program, SES_LEN(of_program), e)) return false;
    Dl_info info;
    bool found = dladdr(of_library, &info) && info.dli_fname && info.dli_fname[0] == '/';
    char *library = found ? realpath(info.dli_fname, NULL) : NULL;
    bool ok =
        !library || !strcmp(library, self) || add_beside(d, library, of_library, SES_LEN(of_library), e);
    free(library); /* realpath's, not ses_alloc's */
    return ok;
}

bool ses_bundled_find_dirs(ses_bundled_dirs *d, const char *search_path, ses_err *e)
{
    *d = (ses_bundled_dirs){ 0 };
    if (!search_path) search_path = getenv("SESAME_MODELS");
    if (add_list(d, search_path, e) && add_program_dirs(d, e) && add_dir(d, ses_configured_models, e))
        return true;
    ses_bundled_dirs_free(d);
    return false;
}

/* ---- by name ---- */

/* NULL and no error: not found. */
static char *find_in(const ses_bundled_dirs *d, const char *name, ses_err *e)
{
    for (size_t i = 0; i < d->n; i++) {
        char *dir = ses_path_join(d->dir[i], name, e);
        if (!dir || ses_model_folder_is(dir)) return dir;
        ses_free(dir);
    }
    return NULL;
}

static void fail_not_found(const ses_bundled_dirs *d, const char *name, ses_err *e)
{
    ses_suggestion s = { .word = name };
    for (size_t i = 0; i < SES_LEN(bundled) && !ses_bundled_task(name, 0); i++)
        ses_suggest_offer(&s, bundled[i].name, strlen(bundled[i].name));
    ses_buf in = { 0 };
    for (size_t i = 0; i < d->n; i++) ses_buf_appendf(&in, "%s%s", i ? ", " : "", d->dir[i]);
    ses_fail(
        e, SES_EIO,
        "%s: no such folder, and no model of this name in %s; 'sesame models' lists the available models, "
        "'sesame pull %s' downloads one of this name from the Hugging Face hub, SESAME_MODELS sets the "
        "folders "
        "to search",
        ses_quoted_of(name, strlen(name)).s, in.len ? in.data : "any folder of models",
        ses_quoted_of(name, strlen(name)).s);
    ses_suggest_add(&s, "", e);
    ses_buf_free(&in);
}

char *ses_bundled_find(const char *name, const char *search_path, ses_err *e)
{
    ses_bundled_dirs d;
    ses_err bad = { 0 };
    if (!ses_bundled_find_dirs(&d, search_path, e)) return NULL;
    char *dir = find_in(&d, name, &bad);
    if (!dir && bad.code) ses_fail(e, bad.code, "%s", bad.msg);
    if (!dir && !bad.code) fail_not_found(&d, name, e);
    ses_bundled_dirs_free(&d);
    return dir;
}

void ses_model_spelling(const char *dir, char *out, size_t size)
{
    ses_hub_name name;
    ses_bundled_dirs d;
    size_t skip = 0;
    if (ses_bundled_find_dirs(&d, NULL, NULL)) {
        for (size_t i = 0; i < d.n && !skip; i++) {
            size_t n = strlen(d.dir[i]);
            if (!strncmp(dir, d.dir[i], n) && dir[n] == '/' && !strchr(dir + n + 1, '/')) skip = n + 1;
        }
        ses_bundled_dirs_free(&d);
    }
    snprintf(out, size, "%s", ses_hub_name_of_snapshot(dir, &name) ? name.id : dir + skip);
}

char *ses_model_resolve(const char *name, const char *search_path, ses_err *e)
{
    if (!*name || ses_path_exists(name)) return ses_strdup(name, e);
    if (ses_hub_name_is(name)) return ses_hub_find(name, e);
    if (strchr(name, '/')) return ses_strdup(name, e);
    ses_err bad = { 0 };
    char *dir = ses_bundled_find(name, search_path, &bad);
    if (!dir && bad.code == SES_EIO && ses_hub_is_cached(name)) return ses_hub_find(name, e);
    if (!dir) ses_fail(e, bad.code, "%s", bad.msg);
    return dir;
}
