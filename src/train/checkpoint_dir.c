/* Names, listing and removal of checkpoint folders. */
#include "checkpoint_dir.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const PREFIX = "checkpoint-", *const DAMAGED = ".damaged";

/* Accepts exactly "checkpoint-12" and "checkpoint-12-3". */
static bool parse_name(const char *name, ses_checkpoint_dir *p)
{
    char again[80], *end;
    if (strncmp(name, PREFIX, strlen(PREFIX))) return false;
    long long updates = strtoll(name + strlen(PREFIX), &end, 10), accumulated = 0;
    if (*end == '-') accumulated = strtoll(end + 1, NULL, 10);
    *p = (ses_checkpoint_dir){ updates, accumulated };
    snprintf(again, sizeof again, accumulated ? "%s%lld-%lld" : "%s%lld", PREFIX, updates, accumulated);
    return updates >= 0 && accumulated >= 0 && !strcmp(again, name);
}

static bool add_dir(void *ctx, const char *name)
{
    ses_checkpoint_dirs *l = ctx;
    ses_checkpoint_dir p;
    if (!parse_name(name, &p)) return true;
    if (!ses_array_reserve(&l->p, &l->cap, l->n + 1, sizeof *l->p, NULL)) return l->failed = true, false;
    l->p[l->n++] = p;
    return true;
}

static int newest_first(const void *x, const void *y)
{
    const ses_checkpoint_dir *a = x, *b = y;
    if (a->updates != b->updates) return a->updates > b->updates ? -1 : 1;
    return a->accumulated > b->accumulated ? -1 : a->accumulated < b->accumulated;
}

static bool note_checkpoint(void *ctx, const char *name)
{
    *(bool *)ctx |= !strncmp(name, "checkpoint-", strlen("checkpoint-"));
    return true;
}

bool ses_checkpoint_any(const char *dir)
{
    bool any = false;
    if (ses_path_is_dir(dir)) ses_dir_each(dir, note_checkpoint, &any, NULL);
    return any;
}

bool ses_checkpoint_dirs_find(const char *dir, ses_checkpoint_dirs *l, ses_err *e)
{
    *l = (ses_checkpoint_dirs){ 0 };
    if (!ses_dir_each(dir, add_dir, l, e)) return false;
    if (l->failed) return ses_fail(e, SES_ENOMEM, "out of memory");
    if (l->n) qsort(l->p, l->n, sizeof *l->p, newest_first);
    return true;
}

char *ses_checkpoint_dir_path(const char *dir, ses_checkpoint_dir p, ses_err *e)
{
    char name[80];
    snprintf(name, sizeof name, p.accumulated ? "%s%" PRId64 "-%" PRId64 : "%s%" PRId64, PREFIX, p.updates,
             p.accumulated);
    return ses_path_join(dir, name, e);
}

static bool rename_to(const char *path, const char *to, ses_err *e)
{
    return rename(path, to) == 0 || ses_fail_write(to, errno, e);
}

bool ses_checkpoint_remove(const char *path, ses_err *e)
{
    ses_buf temp = { 0 };
    const char *base = ses_path_basename(path);
    ses_buf_append(&temp, path, (size_t)(base - path));
    ses_buf_appendf(&temp, SES_CHECKPOINT_TEMP "gone-%s", base);
    bool ok = ses_buf_ok(&temp, e) && ses_dir_remove(temp.data, e) && rename_to(path, temp.data, e) &&
              ses_dir_remove(temp.data, e);
    ses_buf_free(&temp);
    return ok;
}

bool ses_checkpoint_quarantine(const char *path, ses_err *e)
{
    ses_buf damaged = { 0 };
    ses_buf_appendf(&damaged, "%s%s", path, DAMAGED);
    bool ok = ses_buf_ok(&damaged, e) && ses_dir_remove(damaged.data, e) && rename_to(path, damaged.data, e);
    ses_buf_free(&damaged);
    return ok;
}

static bool remove_damaged(void *ctx, const char *name)
{
    ses_checkpoint_dir p;
    char base[80];
    const char *end = strrchr(name, '.');
    if (!end || strcmp(end, DAMAGED) || (size_t)(end - name) >= sizeof base) return true;
    snprintf(base, sizeof base, "%.*s", (int)(end - name), name);
    char *path = parse_name(base, &p) ? ses_path_join(ctx, name, NULL) : NULL;
    if (path) ses_dir_remove(path, NULL);
    ses_free(path);
    return true;
}

bool ses_checkpoint_remove_quarantined(const char *dir, ses_err *e)
{
    char *copy = ses_strdup(dir, e);
    bool ok = copy && ses_dir_each(dir, remove_damaged, copy, e);
    ses_free(copy);
    return ok;
}

bool ses_checkpoint_remove_all(const char *dir, ses_err *e)
{
    ses_checkpoint_dirs l;
    bool ok = ses_checkpoint_dirs_find(dir, &l, e);
    for (size_t i = 0; ok && i < l.n; i++) {
        char *path = ses_checkpoint_dir_path(dir, l.p[i], e);
        ok = path && ses_checkpoint_remove(path, e);
        ses_free(path);
    }
    ses_free(l.p);
    return ok && ses_checkpoint_remove_quarantined(dir, e);
}
