/* Removes models, snapshots, unused blobs and partial files of the cache. Links are removed, never
 * followed. */
#define _DEFAULT_SOURCE /* flock */
#include "hub_scan.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/strmap.h"
#include "hub_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DEPTH = 32 };

void ses_hub_plan_free(ses_hub_plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        ses_free(p->item[i].path);
        ses_free(p->item[i].lock);
    }
    ses_free(p->item);
    *p = (ses_hub_plan){ 0 };
}

static char *path_of(ses_err *e, const char *fmt, ...) SES_PRINTF(2, 3);
static char *path_of(ses_err *e, const char *fmt, ...)
{
    ses_buf b = { 0 };
    va_list ap;
    va_start(ap, fmt);
    ses_buf_vappendf(&b, fmt, ap);
    va_end(ap);
    if (ses_buf_ok(&b, e)) return b.data;
    ses_buf_free(&b);
    return NULL;
}

/* Adds a path if it exists. Takes path and lock; lock may be NULL. */
static bool add(ses_hub_plan *p, const char *kind, char *path, char *lock, ses_err *e)
{
    uint64_t bytes = 0;
    bool exists = path && ses_path_exists(path),
         ok = path && ses_array_reserve(&p->item, &p->cap, p->n + 1, sizeof *p->item, e) &&
              ses_hub_disk_bytes(path, &bytes, e);
    if (!ok || !exists) {
        ses_free(path);
        ses_free(lock);
        return ok;
    }
    p->item[p->n++] = (ses_hub_garbage){ path, lock, kind, bytes };
    p->bytes += bytes;
    return true;
}

/* ---- one model ---- */

typedef struct repo_plan {
    const char *cache;
    const ses_hub_entry *entry; /* [n]: all snapshots of the model */
    size_t n;
    bool *removed; /* [n] */
    double hours;  /* minimum age of unused files; 0: any */
    ses_hub_plan *plan;
} repo_plan;

/* Appends the last components of the links below a folder: the blobs that it uses. */
static bool collect_links(const char *dir, int depth, ses_buf *to, ses_err *e)
{
    ses_buf names = { 0 };
    if (depth >= MAX_DEPTH) return ses_fail(e, SES_EIO, "%s: more than %d folders deep", dir, MAX_DEPTH);
    bool ok = ses_hub_names(dir, &names, e);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1) {
        char target[1024], *path = ses_path_join(dir, names.data + at, e);
        struct stat st;
        ssize_t n = path ? readlink(path, target, sizeof target - 1) : -1;
        target[n > 0 ? n : 0] = 0;
        const char *last = ses_path_basename(target);
        ok = path != NULL;
        if (ok && n > 0) ok = ses_buf_append(to, last, strlen(last) + 1) || ses_buf_ok(to, e);
        if (ok && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) ok = collect_links(path, depth + 1, to, e);
        ses_free(path);
    }
    ses_buf_free(&names);
    return ok;
}

/* The blobs of the snapshots that stay. `text` owns the keys. */
static bool find_used(const repo_plan *r, ses_strmap *used, ses_buf *text, ses_err *e)
{
    bool fresh, ok = true;
    for (size_t i = 0; ok && i < r->n; i++)
        if (!r->removed[i] && r->entry[i].dir) ok = collect_links(r->entry[i].dir, 0, text, e);
    for (size_t at = 0; ok && at < text->len; at += strlen(text->data + at) + 1)
        ok = ses_strmap_insert(used, text->data + at, strlen(text->data + at), 0, &fresh, e) != NULL;
    return ok;
}

static bool is_old(const char *path, double hours)
{
    struct stat st;
    return lstat(path, &st) == 0 && (double)time(NULL) - (double)st.st_mtime >= 3600 * hours;
}

/* Adds a file of blobs/ that is partial, or that no snapshot uses. */
static bool add_blob(const repo_plan *r, const ses_strmap *used, const char *name, ses_err *e)
{
    size_t n = strcspn(name, ".");
    int64_t any;
    bool partial = strstr(name, SES_HUB_FOREIGN_PART) != NULL,
         unused = !name[n] && ses_hub_is_hex(name, n) && !ses_strmap_find(used, name, n, &any);
    char *path = path_of(e, "%s/blobs/%s", r->entry->repo, name);
    if (!path || !(partial || unused) || !is_old(path, r->hours)) {
        ses_free(path);
        return path != NULL;
    }
    char *lock = path_of(e, "%s/.locks/%s/%.*s.lock", r->cache, r->entry->name.folder, (int)n, name);
    return add(r->plan, partial ? "partial" : "blob", path, lock, e);
}

static bool add_unused(const repo_plan *r, ses_err *e)
{
    ses_strmap used = { 0 };
    ses_buf text = { 0 }, names = { 0 };
    char *blobs = ses_path_join(r->entry->repo, "blobs", e);
    bool ok = blobs && find_used(r, &used, &text, e) && ses_hub_names(blobs, &names, e);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1)
        ok = add_blob(r, &used, names.data + at, e);
    ses_buf_free(&names);
    ses_strmap_free(&used);
    ses_buf_free(&text);
    ses_free(blobs);
    return ok;
}

/* The refs first: readers stop finding the snapshot before it is removed. */
static bool add_snapshot(ses_hub_plan *p, const ses_hub_entry *x, ses_err *e)
{
    const char *commit = x->name.revision;
    for (const char *at = x->refs; *at;) {
        const char *end = strstr(at, ", "); /* a ref may contain a comma, but no space */
        size_t n = end ? (size_t)(end - at) : strlen(at);
        if (!add(p, "ref", path_of(e, "%s/refs/%.*s", x->repo, (int)n, at), NULL, e)) return false;
        at += n + (at[n] ? 2 : 0);
    }
    return add(p, "snapshot", ses_strdup(x->dir, e), NULL, e) &&
           add(p, "list", path_of(e, "%s/trees/%s.json", x->repo, commit), NULL, e) &&
           add(p, "list", path_of(e, "%s/.no_exist/%s", x->repo, commit), NULL, e);
}

/* A model whose snapshots are all removed is removed as a whole. */
static bool add_repo(const repo_plan *r, bool whole, ses_err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += r->removed[i];
    if (whole || (n && n == r->n))
        return add(r->plan, "model", ses_strdup(r->entry->repo, e), NULL, e) &&
               add(r->plan, "model", path_of(e, "%s/.locks/%s", r->cache, r->entry->name.folder), NULL, e);
    for (size_t i = 0; i < r->n; i++)
        if (r->removed[i] && r->entry[i].dir && !add_snapshot(r->plan, &r->entry[i], e)) return false;
    return ses_path_is_dir(r->entry->repo) ? add_unused(r, e) : true;
}

/* Entries of the same model from `first` on. */
static size_t count_same(const ses_hub_list *l, size_t first)
{
    size_t n = 1;
    while (first + n < l->n && !strcmp(l->item[first].name.id, l->item[first + n].name.id)) n++;
    return n;
}

/* ---- plans ---- */

static bool names_revision(const ses_hub_entry *x, const char *revision)
{
    size_t n = strlen(revision);
    if (n >= 7 && n <= SES_HUB_COMMIT && ses_hub_is_hex(revision, n) &&
        !strncmp(x->name.revision, revision, n))
        return true; /* a commit, also abbreviated */
    char commit[SES_HUB_COMMIT + 1];
    bool found = false;
    return ses_hub_read_ref(x->repo, revision, commit, &found, NULL) && found &&
           !strcmp(commit, x->name.revision);
}

bool ses_hub_plan_remove(ses_hub_plan *p, const char *cache, const char *text, ses_err *e)
{
    ses_hub_name name;
    ses_hub_list l;
    if (!ses_hub_name_parse(text, &name, e) || !ses_hub_list_read(&l, cache, e)) return false;
    size_t first = 0;
    while (first < l.n && strcmp(l.item[first].name.id, name.id)) first++;
    bool whole = !strchr(text, '@'), found = whole && first < l.n, ok = true;
    if (first < l.n) {
        repo_plan r = { .cache = l.cache, .entry = &l.item[first], .n = count_same(&l, first), .plan = p };
        r.removed = ses_alloc_array(r.n, sizeof *r.removed, e);
        for (size_t i = 0; r.removed && !whole && i < r.n; i++)
            found = (r.removed[i] = names_revision(&r.entry[i], name.revision)) || found;
        ok = r.removed && (!found || add_repo(&r, whole, e));
        ses_free(r.removed);
    }
    if (ok && !found)
        ok = ses_fail(e, SES_EIO, "%s: not in the cache %s; 'sesame cache ls' lists it", text, l.cache);
    ses_hub_list_free(&l);
    return ok;
}

bool ses_hub_plan_prune(ses_hub_plan *p, const char *cache, double hours, ses_err *e)
{
    ses_hub_list l;
    bool ok = ses_hub_list_read(&l, cache, e);
    for (size_t i = 0, n; ok && i < l.n; i += n) {
        n = count_same(&l, i);
        repo_plan r = { .cache = l.cache, .entry = &l.item[i], .n = n, .hours = hours, .plan = p };
        r.removed = ses_alloc_array(n, sizeof *r.removed, e);
        for (size_t k = 0; r.removed && k < n; k++)
            r.removed[k] = r.entry[k].dir && !*r.entry[k].refs && is_old(r.entry[k].dir, hours);
        ok = r.removed && (!ses_hub_is_inside(l.cache, r.entry->repo) || add_repo(&r, false, e));
        ses_free(r.removed);
    }
    ses_hub_list_free(&l);
    return ok;
}

/* ---- removal ---- */

/* Removes a file, a link or a folder with all it contains. */
static bool remove_tree(const char *path, int depth, ses_err *e)
{
    struct stat st;
    if (lstat(path, &st)) return errno == ENOENT || ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return ses_file_remove(path, e);
    if (depth > MAX_DEPTH) return ses_fail(e, SES_EIO, "%s: more than %d folders deep", path, MAX_DEPTH);
    ses_buf names = { 0 };
    bool ok = ses_hub_names(path, &names, e);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1) {
        char *below = ses_path_join(path, names.data + at, e);
        ok = below && remove_tree(below, depth + 1, e);
        ses_free(below);
    }
    ses_buf_free(&names);
    if (ok && rmdir(path) && errno != ENOENT)
        ok = ses_fail(e, SES_EIO, "%s: cannot be removed: %s", path, strerror(errno));
    return ok;
}

/* Whether another process holds a lock file. *fd: our own lock, to be closed; -1: none. */
static bool is_locked(const char *path, int *fd)
{
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return *fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
}

/* Whether another process downloads files of a model: one of its lock files is held. */
static bool is_downloading(const ses_hub_garbage *x)
{
    ses_buf names = { 0 };
    char *cache = ses_path_parent(x->path, NULL),
         *dir = cache ? path_of(NULL, "%s/.locks/%s", cache, ses_path_name_of(x->path).s) : NULL;
    bool busy = false, ok = dir && ses_hub_names(dir, &names, NULL);
    for (size_t at = 0; ok && !busy && at < names.len; at += strlen(names.data + at) + 1) {
        int fd = -1;
        char *lock = ses_path_join(dir, names.data + at, NULL);
        busy = lock && is_locked(lock, &fd);
        if (fd >= 0) close(fd);
        ses_free(lock);
    }
    ses_buf_free(&names);
    ses_free(dir);
    ses_free(cache);
    return busy;
}

bool ses_hub_plan_run(const ses_hub_plan *p, size_t *skipped, ses_err *e)
{
    *skipped = 0;
    for (size_t i = 0; i < p->n; i++) {
        const ses_hub_garbage *x = &p->item[i];
        int fd = -1;
        if (!strcmp(x->kind, "model") && is_downloading(x))
            return ses_fail(e, SES_EIO, "%s: another process is downloading it; nothing of it was removed",
                            x->path);
        bool busy = x->lock && is_locked(x->lock, &fd);
        *skipped += busy;
        bool ok = busy || remove_tree(x->path, 0, e);
        if (fd >= 0) close(fd);
        if (!ok) return false;
    }
    return true;
}
