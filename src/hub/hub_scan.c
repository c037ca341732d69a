/* Lists the models of the cache. */
#define _XOPEN_SOURCE 700
#include "hub_scan.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 16 };

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts names that end in zero bytes: folders list them in any order. */
static bool sort_names(ses_buf *names, ses_err *e)
{
    size_t n = 0;
    ses_buf sorted = { 0 };
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) n++;
    if (n < 2) return true;
    const char **p = ses_alloc_array(n, sizeof *p, e);
    if (!p) return false;
    n = 0;
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) p[n++] = names->data + at;
    qsort(p, n, sizeof *p, by_text);
    for (size_t i = 0; i < n; i++) ses_buf_append(&sorted, p[i], strlen(p[i]) + 1);
    ses_free(p);
    if (!ses_buf_ok(&sorted, e)) return ses_buf_free(&sorted), false;
    ses_buf_free(names);
    *names = sorted;
    return true;
}

static bool collect(void *ctx, const char *name) { return ses_buf_append(ctx, name, strlen(name) + 1); }

bool ses_hub_names(const char *dir, ses_buf *names, ses_err *e)
{
    names->len = 0;
    if (!ses_path_is_dir(dir)) return true;
    return ses_dir_each(dir, collect, names, e) && ses_buf_ok(names, e) && sort_names(names, e);
}

static bool add_disk_bytes(const char *path, int depth, uint64_t *sum, ses_err *e)
{
    struct stat st;
    if (lstat(path, &st) || depth > MAX_DEPTH) return true;
    if (S_ISREG(st.st_mode)) *sum += (uint64_t)st.st_size;
    if (!S_ISDIR(st.st_mode)) return true;
    ses_buf names = { 0 };
    bool ok = ses_hub_names(path, &names, e);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1) {
        char *below = ses_path_join(path, names.data + at, e);
        ok = below && add_disk_bytes(below, depth + 1, sum, e);
        ses_free(below);
    }
    ses_buf_free(&names);
    return ok;
}

bool ses_hub_disk_bytes(const char *path, uint64_t *sum, ses_err *e)
{
    return add_disk_bytes(path, 0, sum, e);
}

void ses_hub_list_free(ses_hub_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        ses_free(l->item[i].repo);
        ses_free(l->item[i].refs);
        ses_free(l->item[i].dir);
    }
    ses_free(l->item);
    ses_free(l->cache);
    *l = (ses_hub_list){ 0 };
}

/* Adds a ref if it names the commit: "main" first. Damaged refs name none. */
static bool add_ref(ses_hub_entry *x, const char *ref, ses_err *e)
{
    char commit[SES_HUB_COMMIT + 1];
    bool found = false;
    ses_err bad = { 0 };
    if (!ses_hub_read_ref(x->repo, ref, commit, &found, &bad))
        return bad.code != SES_ENOMEM || ses_fail(e, bad.code, "%s", bad.msg);
    if (!found || strcmp(commit, x->name.revision)) return true;
    ses_buf refs = { 0 };
    bool first = !strcmp(ref, "main");
    ses_buf_appendf(&refs, "%s%s%s", first ? ref : x->refs, *x->refs ? ", " : "", first ? x->refs : ref);
    if (!ses_buf_ok(&refs, e)) return ses_buf_free(&refs), false;
    ses_free(x->refs);
    x->refs = refs.data;
    return true;
}

/* Adds the refs below refs/BELOW that name the commit. Links to folders are not followed. */
static bool find_refs(ses_hub_entry *x, const char *below, int depth, ses_err *e)
{
    ses_buf names = { 0 };
    char *refs = ses_path_join(x->repo, "refs", e), *dir = refs ? ses_path_join(refs, below, e) : NULL;
    bool ok = dir && (depth >= MAX_DEPTH || ses_hub_names(dir, &names, e));
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1) {
        struct stat st;
        ses_buf ref = { 0 };
        ses_buf_appendf(&ref, "%s%s", below, names.data + at);
        char *path = ses_buf_ok(&ref, e) ? ses_path_join(refs, ref.data, e) : NULL;
        ok = path != NULL;
        if (ok && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            ses_buf_put(&ref, '/');
            ok = ses_buf_ok(&ref, e) && find_refs(x, ref.data, depth + 1, e);
        } else if (ok) {
            ok = add_ref(x, ref.data, e);
        }
        ses_free(path);
        ses_buf_free(&ref);
    }
    ses_buf_free(&names);
    ses_free(dir);
    ses_free(refs);
    return ok;
}

static void set_state(ses_hub_entry *x, const ses_hub_check *c)
{
    x->state = *c->problem                  ? SES_HUB_DAMAGED
               : c->n_missing || !c->have.n ? SES_HUB_INCOMPLETE
                                            : SES_HUB_COMPLETE;
    if (*c->problem)
        snprintf(x->detail, sizeof x->detail, "%s", c->problem);
    else if (c->n_missing)
        snprintf(x->detail, sizeof x->detail, "%s%s missing", c->missing,
                 c->n_missing > 1 ? " and others" : "");
}

static ses_hub_entry *add_entry(ses_hub_list *l, const ses_hub_name *name, const char *commit, ses_err *e)
{
    if (!ses_array_reserve(&l->item, &l->cap, l->n + 1, sizeof *l->item, e)) return NULL;
    ses_hub_entry *x = &l->item[l->n++];
    *x = (ses_hub_entry){ .name = *name, .state = SES_HUB_INCOMPLETE };
    snprintf(x->name.revision, sizeof x->name.revision, "%s", commit);
    x->repo = ses_path_join(l->cache, name->folder, e);
    x->refs = ses_strdup("", e);
    return x->repo && x->refs ? x : NULL;
}

static bool add_snapshot(ses_hub_list *l, const ses_hub_name *name, const char *commit, ses_err *e)
{
    ses_hub_entry *x = add_entry(l, name, commit, e);
    char *snapshots = x ? ses_path_join(x->repo, "snapshots", e) : NULL;
    ses_hub_check c = { 0 };
    ses_err bad = { 0 };
    if (x) x->dir = snapshots ? ses_path_join(snapshots, commit, e) : NULL;
    ses_free(snapshots);
    if (!x || !x->dir) return false;
    if (ses_hub_check_snapshot(&c, l->cache, x->repo, commit, &bad)) {
        x->bytes = c.bytes;
        x->used = c.used;
        set_state(x, &c);
    } else {
        if (bad.code == SES_ENOMEM) return ses_fail(e, bad.code, "%s", bad.msg);
        x->state = SES_HUB_DAMAGED;
        snprintf(x->detail, sizeof x->detail, "%.500s", bad.msg);
    }
    ses_hub_check_free(&c);
    return find_refs(x, "", 0, e);
}

/* Links that lead out of the cache are listed as damaged and not followed. */
static bool add_repo(ses_hub_list *l, const ses_hub_name *name, ses_err *e)
{
    ses_buf commits = { 0 };
    size_t before = l->n;
    char *repo = ses_path_join(l->cache, name->folder, e),
         *dir = repo ? ses_path_join(repo, "snapshots", e) : NULL;
    bool inside = dir && ses_hub_is_inside(l->cache, repo);
    bool ok = dir && (!inside || !ses_hub_is_inside(l->cache, dir) || ses_hub_names(dir, &commits, e));
    for (size_t at = 0; ok && at < commits.len; at += strlen(commits.data + at) + 1)
        if (ses_hub_is_commit(commits.data + at)) ok = add_snapshot(l, name, commits.data + at, e);
    if (ok && l->n == before) {
        ses_hub_entry *x = add_entry(l, name, "", e);
        ok = x != NULL;
        if (x && !inside) x->state = SES_HUB_DAMAGED;
        if (x)
            snprintf(x->detail, sizeof x->detail, "%s", inside ? "no snapshot" : "a link out of the cache");
    }
    if (ok && inside) ok = ses_hub_disk_bytes(repo, &l->disk_bytes, e);
    ses_buf_free(&commits);
    ses_free(dir);
    ses_free(repo);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    const ses_hub_entry *x = a, *y = b;
    int order = strcmp(x->name.id, y->name.id);
    return order ? order : strcmp(x->name.revision, y->name.revision);
}

bool ses_hub_list_read(ses_hub_list *l, const char *cache, ses_err *e)
{
    ses_buf names = { 0 };
    char real[SES_HUB_REAL];
    bool exists = ses_hub_real_path(cache, real);
    *l = (ses_hub_list){ .cache = ses_strdup(exists ? real : cache, e) };
    bool ok = l->cache && (!exists || ses_hub_names(real, &names, e));
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1) {
        ses_hub_name name;
        if (ses_hub_name_of_folder(names.data + at, &name)) ok = add_repo(l, &name, e);
    }
    if (ok && l->n) qsort(l->item, l->n, sizeof *l->item, by_name);
    ses_buf_free(&names);
    if (!ok) ses_hub_list_free(l);
    return ok;
}
