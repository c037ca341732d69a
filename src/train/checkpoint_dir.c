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

static const char *const FOLDER = "checkpoint-", *const ASIDE = ".damaged";

/* "checkpoint-12" or "checkpoint-12-3"; nothing else. */
static bool parse_place(const char *name, ses_checkpoint_dir *p)
{
    char again[80], *end;
    if (strncmp(name, FOLDER, strlen(FOLDER))) return false;
    long long updates = strtoll(name + strlen(FOLDER), &end, 10), waiting = 0;
    if (*end == '-') waiting = strtoll(end + 1, NULL, 10);
    *p = (ses_checkpoint_dir){ updates, waiting };
    snprintf(again, sizeof again, waiting ? "%s%lld-%lld" : "%s%lld", FOLDER, updates, waiting);
    return updates >= 0 && waiting >= 0 && !strcmp(again, name);
}

static bool note_place(void *ctx, const char *name)
{
    ses_checkpoint_dirs *l = ctx;
    ses_checkpoint_dir p;
    if (!parse_place(name, &p)) return true;
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

bool ses_checkpoint_dirs_find(const char *dir, ses_checkpoint_dirs *l, ses_err *e)
{
    *l = (ses_checkpoint_dirs){ 0 };
    if (!ses_dir_each(dir, note_place, l, e)) return false;
    if (l->failed) return ses_fail(e, SES_ENOMEM, "out of memory");
    if (l->n) qsort(l->p, l->n, sizeof *l->p, newest_first);
    return true;
}

char *ses_checkpoint_dir_path(const char *dir, ses_checkpoint_dir p, ses_err *e)
{
    char name[80];
    snprintf(name, sizeof name, p.accumulated ? "%s%" PRId64 "-%" PRId64 : "%s%" PRId64, FOLDER, p.updates,
             p.accumulated);
    return ses_path_join(dir, name, e);
}

static bool rename_to(const char *path, const char *to, ses_err *e)
{
    return rename(path, to) == 0 || ses_fail(e, SES_EIO, "%s: cannot be renamed: %s", path, strerror(errno));
}

bool ses_checkpoint_remove(const char *path, ses_err *e)
{
    ses_buf gone = { 0 };
    const char *base = ses_path_basename(path);
    ses_buf_append(&gone, path, (size_t)(base - path));
    ses_buf_appendf(&gone, SES_CHECKPOINT_TEMP "gone-%s", base);
    bool ok = ses_buf_ok(&gone, e) && ses_dir_remove(gone.data, e) && rename_to(path, gone.data, e) &&
              ses_dir_remove(gone.data, e);
    ses_buf_free(&gone);
    return ok;
}

bool ses_checkpoint_quarantine(const char *path, ses_err *e)
{
    ses_buf aside = { 0 };
    ses_buf_appendf(&aside, "%s%s", path, ASIDE);
    bool ok = ses_buf_ok(&aside, e) && ses_dir_remove(aside.data, e) && rename_to(path, aside.data, e);
    ses_buf_free(&aside);
    return ok;
}

static bool remove_aside(void *ctx, const char *name)
{
    ses_checkpoint_dir p;
    char place[80];
    const char *end = strrchr(name, '.');
    if (!end || strcmp(end, ASIDE) || (size_t)(end - name) >= sizeof place) return true;
    snprintf(place, sizeof place, "%.*s", (int)(end - name), name);
    char *path = parse_place(place, &p) ? ses_path_join(ctx, name, NULL) : NULL;
    if (path) ses_dir_remove(path, NULL);
    ses_free(path);
    return true;
}

bool ses_checkpoint_remove_quarantined(const char *dir, ses_err *e)
{
    char *copy = ses_strdup(dir, e);
    bool ok = copy && ses_dir_each(dir, remove_aside, copy, e);
    ses_free(copy);
    return ok;
}
