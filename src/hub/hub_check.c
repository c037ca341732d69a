/* The state of a snapshot: which files it has, which are missing, which are broken. */
#define _XOPEN_SOURCE 700
#include "hub_cache.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 8, INDEX_MAX = 64 << 20 };

typedef struct walk {
    ses_hub_check *c;
    const char *root;  /* the snapshot */
    const char *below; /* folder in it, "" or "a/b/" */
    int depth;
    ses_err *e;
} walk;

static bool walk_folder(ses_hub_check *c, const char *root, const char *below, int depth, ses_err *e);

static bool add_entry(void *ctx, const char *name)
{
    walk *w = ctx;
    struct stat st;
    ses_buf path = { 0 };
    ses_buf_appendf(&path, "%s%s", w->below, name);
    char *full = ses_buf_ok(&path, w->e) ? ses_path_join(w->root, path.data, w->e) : NULL;
    bool ok = full != NULL;
    if (ok && lstat(full, &st) == 0 && S_ISDIR(st.st_mode)) {
        ses_buf_put(&path, '/');
        ok = ses_buf_ok(&path, w->e) && walk_folder(w->c, w->root, path.data, w->depth + 1, w->e);
    } else if (ok && ses_hub_path_is_safe(path.data, path.len)) {
        ok = ses_hub_files_add(&w->c->have, path.data, path.len, w->e);
    }
    ses_free(full);
    ses_buf_free(&path);
    return ok;
}

/* Lists the files below a folder; deeper ones than Sesame reads are skipped. */
static bool walk_folder(ses_hub_check *c, const char *root, const char *below, int depth, ses_err *e)
{
    ses_err bad = { 0 };
    if (depth > MAX_DEPTH) return true;
    char *dir = ses_path_join(root, below, e);
    walk w = { .c = c, .root = root, .below = below, .depth = depth, .e = &bad };
    bool ok = dir && ses_dir_each(dir, add_entry, &w, &bad) && !bad.code;
    if (bad.code) ses_fail(e, bad.code, "%s", bad.msg);
    ses_free(dir);
    return ok;
}

static void set_problem(ses_hub_check *c, const char *path, const char *what)
{
    if (!*c->problem)
        snprintf(c->problem, sizeof c->problem, "%s %s", ses_quoted_of(path, strlen(path)).s, what);
}

/* Reads the size of a file and notes a broken link, one out of the cache, or a wrong size. */
static bool inspect(ses_hub_check *c, const char *cache, const char *root, ses_hub_file *x,
                    const ses_hub_files *tree, ses_err *e)
{
    char *path = ses_path_join(root, x->path, e);
    if (!path) return false;
    struct stat st;
    const ses_hub_file *listed = ses_hub_files_find(tree, x->path);
    bool exists = stat(path, &st) == 0, is_read = x->use != SES_HUB_SKIPPED;
    if (exists && S_ISDIR(st.st_mode)) { /* a link to a folder: files below it are read */
        set_problem(c, x->path, "is a link to a folder");
    } else if (!exists) {
        if (is_read) set_problem(c, x->path, "is a broken link");
    } else if (is_read && !ses_hub_is_inside(cache, path)) {
        set_problem(c, x->path, "is a link out of the cache");
    } else if (is_read && !S_ISREG(st.st_mode)) {
        set_problem(c, x->path, "is not a regular file");
    } else {
        x->size = (uint64_t)st.st_size;
        c->bytes += x->size;
        if ((int64_t)st.st_atime > c->used) c->used = (int64_t)st.st_atime;
        if (is_read && listed && listed->size != x->size) set_problem(c, x->path, "has a wrong size");
    }
    ses_free(path);
    return true;
}

static void add_missing(ses_hub_check *c, const char *path, bool weights)
{
    if (!c->n_missing++) snprintf(c->missing, sizeof c->missing, "%s", ses_quoted_of(path, strlen(path)).s);
    c->lacks_weights = c->lacks_weights || weights;
}

/* The official client notes names that a commit does not have as empty files in .no_exist/COMMIT. */
static bool is_known_absent(const char *repo, const char *commit, const char *path)
{
    char marker[SES_HUB_REAL]; /* on the stack: a failed allocation must not look like a missing file */
    int n = snprintf(marker, sizeof marker, "%s/.no_exist/%s/%s", repo, commit, path);
    return n > 0 && (size_t)n < sizeof marker && ses_path_exists(marker);
}

/* Weights first: they are the most important to name. */
static void compare_with_tree(ses_hub_check *c, const ses_hub_files *tree, const char *repo)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < tree->n; i++) {
            const ses_hub_file *x = &tree->item[i];
            bool weights = x->use == SES_HUB_WEIGHTS;
            if (x->use <= SES_HUB_OPTIONAL || weights != (pass == 0) ||
                ses_hub_files_find(&c->have, x->path) || is_known_absent(repo, tree->commit, x->path))
                continue;
            add_missing(c, x->path, weights);
        }
}

/* Compares with the shards that an index of weights names, if the commit has no list of files. */
static bool compare_with_index(ses_hub_check *c, const char *root, const char *index, ses_err *e)
{
    ses_err bad = { 0 };
    if (!ses_hub_files_find(&c->have, index)) return true;
    char *path = ses_path_join(root, index, &bad);
    ses_json_doc *doc =
        path ? ses_json_load_object(path, INDEX_MAX, &bad) : NULL; /* opening reports damage */
    const ses_json *map = ses_json_get(ses_json_root(doc), "weight_map");
    const char *last = "";
    for (size_t i = 0; i < ses_json_len(map); i++) {
        const char *file = ses_json_string(ses_json_at(map, i), NULL);
        if (!file || !strcmp(file, last)) continue;
        last = file;
        if (!ses_hub_files_find(&c->have, file)) add_missing(c, file, true);
    }
    ses_json_free(doc);
    ses_free(path);
    return bad.code != SES_ENOMEM || ses_fail(e, bad.code, "%s", bad.msg);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const ses_hub_file *)a)->path, ((const ses_hub_file *)b)->path);
}

bool ses_hub_check_has(const ses_hub_check *c, ses_hub_use use)
{
    for (size_t i = 0; i < c->have.n; i++)
        if (c->have.item[i].use == use) return true;
    return false;
}

static bool find_missing(ses_hub_check *c, const char *root, const ses_hub_files *tree, const char *repo,
                         ses_err *e)
{
    if (tree->n) compare_with_tree(c, tree, repo);
    if (tree->n || *c->problem) return true; /* an index may be the broken file */
    if (!compare_with_index(c, root, "model.safetensors.index.json", e)) return false;
    bool weights = ses_hub_check_has(c, SES_HUB_WEIGHTS);
    if (!weights && !compare_with_index(c, root, "pytorch_model.bin.index.json", e)) return false;
    if (!ses_hub_check_has(c, SES_HUB_WEIGHTS)) add_missing(c, "model.safetensors", true);
    if (!ses_hub_check_has(c, SES_HUB_CONFIG)) add_missing(c, "config.json", false);
    return true;
}

bool ses_hub_check_snapshot(ses_hub_check *c, const char *cache, const char *repo, const char *commit,
                            ses_err *e)
{
    *c = (ses_hub_check){ 0 };
    char below[SES_HUB_COMMIT + 16];
    snprintf(below, sizeof below, "snapshots/%s", commit);
    ses_hub_files tree = { 0 };
    char *root = ses_path_join(repo, below, e);
    bool ok = root && walk_folder(c, root, "", 0, e) && ses_hub_read_tree(repo, commit, &tree, e);
    if (ok && c->have.n) qsort(c->have.item, c->have.n, sizeof *c->have.item, by_path);
    if (ok) ses_hub_files_choose(&c->have);
    for (size_t i = 0; ok && i < c->have.n; i++) ok = inspect(c, cache, root, &c->have.item[i], &tree, e);
    ok = ok && find_missing(c, root, &tree, repo, e);
    ses_hub_files_free(&tree);
    ses_free(root);
    if (!ok) ses_hub_check_free(c);
    return ok;
}

void ses_hub_check_free(ses_hub_check *c)
{
    ses_hub_files_free(&c->have);
    *c = (ses_hub_check){ 0 };
}
