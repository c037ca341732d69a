#define _XOPEN_SOURCE 700
#include "bundled_models.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/suggest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *task, *name;
} shipped[] = {
#define SES_BUNDLED_MODEL(task, folder) { task, folder },
#include "bundled_models.def"
#undef SES_BUNDLED_MODEL
};

const char *ses_bundled_default(const char *task)
{
    for (size_t i = 0; i < SES_LEN(shipped); i++)
        if (!strcmp(shipped[i].task, task)) return shipped[i].name;
    return NULL;
}

const char *ses_bundled_task(const char *name, int i)
{
    for (size_t k = 0; k < SES_LEN(shipped); k++)
        if (!strcmp(shipped[k].name, name) && !i--) return shipped[k].task;
    return NULL;
}

/* ---- places ---- */

void ses_bundled_dirs_free(ses_bundled_dirs *p)
{
    for (size_t i = 0; i < p->n; i++) ses_free(p->dir[i]);
    p->n = 0;
}

/* A folder that is there, once, under its real name. */
static bool add_place(ses_bundled_dirs *p, const char *dir, ses_err *e)
{
    char *real = p->n < SES_BUNDLED_MAX_DIRS ? realpath(dir, NULL) : NULL;
    bool fresh = real && ses_path_is_dir(real);
    for (size_t i = 0; fresh && i < p->n; i++) fresh = strcmp(p->dir[i], real) != 0;
    if (fresh) p->dir[p->n++] = ses_strdup(real, e);
    bool ok = !fresh || p->dir[p->n - 1];
    if (!ok) p->n--;
    free(real); /* realpath's, not ses_alloc's */
    return ok;
}

static bool add_listed(ses_bundled_dirs *p, const char *list, ses_err *e)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ":");
        char *dir = ses_strndup(at, n, e);
        bool ok = dir && (!n || add_place(p, dir, e));
        ses_free(dir);
        if (!ok) return false;
        at += n + (at[n] == ':');
    }
    return true;
}

/* Of the program's own folder: build/ or build/PRESET/ of the source, bin/ of a prefix. */
static bool add_beside(ses_bundled_dirs *p, ses_err *e)
{
    static const char *const from[] = { "../models", "../../models", "../share/sesame/models" };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return true;
    self[n] = 0;
    *(char *)(uintptr_t)ses_path_basename(self) = 0;
    for (size_t i = 0; i < SES_LEN(from); i++) {
        char *dir = ses_path_join(self, from[i], e);
        bool ok = dir && add_place(p, dir, e);
        ses_free(dir);
        if (!ok) return false;
    }
    return true;
}

bool ses_bundled_find_dirs(ses_bundled_dirs *p, ses_err *e)
{
    *p = (ses_bundled_dirs){ 0 };
    if (add_listed(p, getenv("SESAME_MODELS"), e) && add_beside(p, e)) return true;
    ses_bundled_dirs_free(p);
    return false;
}

/* ---- by name ---- */

/* NULL without an error: it is in none of them. */
static char *find_in(const ses_bundled_dirs *p, const char *name, ses_err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        char *dir = ses_path_join(p->dir[i], name, e),
             *config = dir ? ses_path_join(dir, "config.json", e) : NULL;
        bool there = config && ses_path_exists(config);
        ses_free(config);
        if (there || !dir) return dir;
        ses_free(dir);
    }
    return NULL;
}

static void tell_missing(const ses_bundled_dirs *p, const char *name, ses_err *e)
{
    ses_suggestion s = { .word = name };
    for (size_t i = 0; i < SES_LEN(shipped) && !ses_bundled_task(name, 0); i++)
        ses_suggest_offer(&s, shipped[i].name, strlen(shipped[i].name));
    ses_buf in = { 0 };
    for (size_t i = 0; i < p->n; i++) ses_buf_appendf(&in, "%s%s", i ? ", " : "", p->dir[i]);
    ses_fail(e, SES_EIO,
             "%s: no such folder, and no model of this name in %s; 'sesame models' lists what there is, "
             "SESAME_MODELS names folders of models",
             ses_quoted_of(name, strlen(name)).s, in.len ? in.data : "any folder of models");
    ses_suggest_add(&s, "", e);
    ses_buf_free(&in);
}

/* One that is in no place is an error that tells what to do. */
static char *find(const char *name, ses_err *e)
{
    ses_bundled_dirs p;
    ses_err bad = { 0 };
    if (!ses_bundled_find_dirs(&p, e)) return NULL;
    char *dir = find_in(&p, name, &bad);
    if (!dir && bad.code) ses_fail(e, bad.code, "%s", bad.msg);
    if (!dir && !bad.code) tell_missing(&p, name, e);
    ses_bundled_dirs_free(&p);
    return dir;
}

char *ses_bundled_resolve(const char *name, ses_err *e)
{
    if (!*name || strchr(name, '/') || ses_path_exists(name)) return ses_strdup(name, e);
    return find(name, e);
}

/* ---- what a command was given ---- */

/* What a pipeline is called first, whatever it was called by. */
static const char *task_name(const ses_command *cmd)
{
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if ((*c)->task == cmd->task && !(*c)->hidden) return (*c)->name;
    return cmd->name;
}

/* One more string of a call's own. */
static bool keep(const char **at, char *dir, char *own[SES_BUNDLED_MAX_ARGS])
{
    size_t n = 0;
    while (n < SES_BUNDLED_MAX_ARGS && own[n]) n++;
    assert(n < SES_BUNDLED_MAX_ARGS); /* of one command's table */
    if (dir) *at = own[n] = dir;
    return dir != NULL;
}

/* A pipeline without --model: what ships, whatever folders of that name are here. */
static bool choose(const ses_command *cmd, const char **at, char *own[SES_BUNDLED_MAX_ARGS], ses_err *e)
{
    const char *name = ses_bundled_default(task_name(cmd));
    if (!name)
        return ses_fail(e, SES_EUSAGE, "--model DIR is required: no model for %s comes with Sesame",
                        cmd->name);
    return keep(at, find(name, e), own);
}

bool ses_bundled_resolve_args(const ses_command *cmd, void *args, char **rest,
                              char *own[SES_BUNDLED_MAX_ARGS], ses_err *e)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(cmd->opt, cmd->n_opt); (o = ses_opt_next(&it));) {
        if (!o->is_model) continue;
        const char **at = (const char **)(void *)((char *)args + o->offset);
        if (*at && !keep(at, ses_bundled_resolve(*at, e), own)) return false;
        if (!*at && cmd->task && !strcmp(o->name, "model") && !choose(cmd, at, own, e)) return false;
    }
    const char *first = cmd->has_model_operand ? rest[0] : NULL;
    if (!first) return true;
    bool ok = keep(&first, ses_bundled_resolve(first, e), own);
    rest[0] = (char *)(uintptr_t)first;
    return ok;
}
