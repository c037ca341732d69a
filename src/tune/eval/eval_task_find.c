/* Finds bundled task files: in the folder `tasks` beside each folder of models. */
#include "eval_task.h"

#include "base/alloc.h"
#include "base/file.h"
#include "model/bundled_models.h"

#include <stdlib.h>
#include <string.h>

/* The folder `tasks` beside a folder of models. */
static char *tasks_dir(const char *models, ses_err *e)
{
    char *parent = ses_path_parent(models, e), *dir = parent ? ses_path_join(parent, "tasks", e) : NULL;
    ses_free(parent);
    return dir;
}

char *ses_eval_task_find(const char *name, ses_err *e)
{
    ses_bundled_dirs d;
    char *found = NULL;
    ses_buf file = { 0 };
    ses_buf_appendf(&file, "%s.json", name);
    bool ok = !strchr(name, '/') && ses_buf_ok(&file, e) && ses_bundled_find_dirs(&d, NULL, e);
    for (size_t i = 0; ok && !found && i < d.n; i++) {
        char *dir = tasks_dir(d.dir[i], e), *path = dir ? ses_path_join(dir, file.data, e) : NULL;
        if (path && ses_path_exists(path)) found = path, path = NULL;
        ses_free(dir), ses_free(path);
    }
    if (ok) ses_bundled_dirs_free(&d);
    ses_buf_free(&file);
    return found;
}

/* ---- names ---- */

typedef struct names {
    char **item;
    size_t n, cap;
    ses_err *e;
} names;

static bool add_name(void *ctx, const char *name)
{
    names *l = ctx;
    size_t len = strlen(name);
    if (len < 6 || strcmp(name + len - 5, ".json")) return true;
    for (size_t i = 0; i < l->n; i++)
        if (ses_equal(name, len - 5, l->item[i])) return true;
    if (!ses_array_reserve(&l->item, &l->cap, l->n + 1, sizeof *l->item, l->e)) return false;
    l->item[l->n] = ses_strndup(name, len - 5, l->e);
    return l->item[l->n] && ++l->n;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *ses_eval_task_list(ses_err *e)
{
    ses_bundled_dirs d;
    names l = { .e = e };
    ses_buf out = { 0 };
    if (!ses_bundled_find_dirs(&d, NULL, e)) return NULL;
    for (size_t i = 0; i < d.n; i++) {
        ses_err none = { 0 };
        char *dir = tasks_dir(d.dir[i], e);
        if (dir && ses_path_is_dir(dir)) (void)ses_dir_each(dir, add_name, &l, &none);
        ses_free(dir);
    }
    if (l.n) qsort(l.item, l.n, sizeof *l.item, compare_names);
    ses_buf_puts(&out, "");
    for (size_t i = 0; i < l.n; i++) ses_buf_appendf(&out, "%s%s", i ? ", " : "", l.item[i]);
    for (size_t i = 0; i < l.n; i++) ses_free(l.item[i]);
    ses_free(l.item);
    ses_bundled_dirs_free(&d);
    if (ses_buf_ok(&out, e) && out.data) return out.data;
    ses_buf_free(&out);
    return NULL;
}
