/* Finds models in the cache. */
#define _XOPEN_SOURCE 700
#include "hub_cache.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "hub_env.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REF_MAX = 4096 };
_Static_assert(SES_HUB_REAL >= PATH_MAX, "realpath writes up to PATH_MAX bytes");

/* "ORG/NAME", or "ORG/NAME@REV" if REV is not main: as typed after `sesame pull`. */
typedef struct pull_name {
    char s[SES_HUB_ID_MAX + SES_HUB_REVISION_MAX + 2];
} pull_name;

static pull_name pull_name_of(const ses_hub_name *name)
{
    pull_name p;
    bool plain = !strcmp(name->revision, "main");
    snprintf(p.s, sizeof p.s, "%s%s%s", name->id, plain ? "" : "@", plain ? "" : name->revision);
    return p;
}

bool ses_hub_real_path(const char *path, char out[SES_HUB_REAL]) { return realpath(path, out) != NULL; }

bool ses_hub_is_inside(const char *cache, const char *path)
{
    char real[SES_HUB_REAL];
    size_t n = strlen(cache);
    return ses_hub_real_path(path, real) && !strncmp(real, cache, n) &&
           (real[n] == '/' || (n && cache[n - 1] == '/'));
}

bool ses_hub_read_ref(const char *repo, const char *revision, char commit[SES_HUB_COMMIT + 1], bool *found,
                      ses_err *e)
{
    *found = ses_hub_is_commit(revision);
    if (*found) {
        memcpy(commit, revision, SES_HUB_COMMIT + 1);
        return true;
    }
    char *refs = ses_path_join(repo, "refs", e), *path = refs ? ses_path_join(refs, revision, e) : NULL,
         *text = NULL;
    size_t n = 0;
    bool ok = path != NULL;
    *found = ok && ses_path_exists(path);
    if (*found) {
        text = ses_file_read(path, REF_MAX, &n, e);
        ses_string s = ses_trim((ses_string){ text, text ? n : 0 });
        if (text) memcpy(commit, s.n == SES_HUB_COMMIT ? s.p : "", s.n == SES_HUB_COMMIT ? s.n : 1);
        commit[SES_HUB_COMMIT] = 0;
        ok = text &&
             ((s.n == SES_HUB_COMMIT && ses_hub_is_commit(commit)) ||
              ses_fail(e, SES_EFORMAT,
                       "%s: not a commit of 40 hex digits: remove this file, and run 'sesame pull'", path));
    }
    ses_free(text);
    ses_free(path);
    ses_free(refs);
    return ok;
}

bool ses_hub_read_tree(const char *repo, const char *commit, ses_hub_files *tree, ses_err *e)
{
    char name[SES_HUB_COMMIT + 16];
    ses_err bad = { 0 };
    *tree = (ses_hub_files){ 0 };
    snprintf(name, sizeof name, "trees/%s.json", commit);
    char *path = ses_path_join(repo, name, e);
    if (!path || !ses_path_exists(path)) {
        ses_free(path);
        return path != NULL;
    }
    ses_json_doc *doc = ses_json_load_object(path, SES_HUB_LIST_MAX, &bad);
    bool ok = doc && ses_hub_files_from_tree(tree, ses_json_root(doc), commit, &bad);
    if (doc && !ok) ses_wrap(&bad, "%s", path);
    if (!ok && bad.code == SES_EUNSUPPORTED) ok = true; /* a later version */
    if (!ok) ses_fail(e, bad.code, "%s; run 'sesame pull' to replace this file", bad.msg);
    ses_json_free(doc);
    ses_free(path);
    return ok;
}

/* ---- by name ---- */

static bool fail_absent(const ses_hub_name *name, const char *cache, const char *what, ses_err *e)
{
    return ses_fail(e, SES_EIO,
                    "%s: no such folder, and %s in the Hugging Face cache %s; 'sesame pull %s' downloads it",
                    pull_name_of(name).s, what, cache, pull_name_of(name).s);
}

/* Decides whether a snapshot can be used. If only a tokenizer was loaded, it can: opening the weights will
 * fail and name them. */
static bool check_usable(const ses_hub_check *c, const ses_hub_name *name, ses_err *e)
{
    const char *id = pull_name_of(name).s;
    if (*c->problem)
        return ses_fail(
            e, SES_EIO,
            "%s: damaged in the cache: %s; 'sesame cache rm %s' and 'sesame pull %s' load it again", name->id,
            c->problem, name->id, id);
    bool weights = ses_hub_check_has(c, SES_HUB_WEIGHTS), tokenizer = ses_hub_check_has(c, SES_HUB_TOKENIZER);
    if (!c->have.n || (!weights && !tokenizer && !ses_hub_check_has(c, SES_HUB_CONFIG)) ||
        (c->lacks_weights && (weights || !tokenizer)))
        return ses_fail(e, SES_EIO, "%s: incomplete in the cache: %s is missing%s; run 'sesame pull %s'",
                        name->id, c->n_missing ? c->missing : "config.json",
                        c->n_missing > 1 ? ", and others are" : "", id);
    return true;
}

static char *find_snapshot(const ses_hub_name *name, const char *cache, ses_err *e)
{
    char commit[SES_HUB_COMMIT + 1], real[SES_HUB_REAL];
    bool exists = ses_hub_real_path(cache, real);
    char *repo = exists ? ses_path_join(real, name->folder, e) : NULL, *dir = NULL;
    bool found = false, ok = false;
    ses_hub_check check = { 0 };
    if (exists && !repo) return NULL;
    if (!exists || !ses_path_is_dir(repo)) {
        fail_absent(name, cache, "no such model", e);
        goto done;
    }
    if (!ses_hub_is_inside(real, repo)) {
        ses_fail(e, SES_EIO, "%s: the folder is a link out of the cache", repo);
        goto done;
    }
    if (!ses_hub_read_ref(repo, name->revision, commit, &found, e)) goto done;
    if (!found) {
        fail_absent(name, cache, "no such revision", e);
        goto done;
    }
    char below[SES_HUB_COMMIT + 16];
    snprintf(below, sizeof below, "snapshots/%s", commit);
    if (!(dir = ses_path_join(repo, below, e))) goto done;
    if (!ses_path_is_dir(dir))
        ok = ses_fail(e, SES_EIO, "%s: incomplete in the cache: no file of commit %s; run 'sesame pull %s'",
                      name->id, commit, pull_name_of(name).s);
    else
        ok = ses_hub_check_snapshot(&check, real, repo, commit, e) && check_usable(&check, name, e);
done:
    if (!ok) ses_free(dir), dir = NULL;
    ses_hub_check_free(&check);
    ses_free(repo);
    return dir;
}

char *ses_hub_find(const char *text, ses_err *e)
{
    ses_hub_name name;
    char *cache = ses_hub_name_parse(text, &name, e) ? ses_hub_cache_dir(e) : NULL;
    char *dir = cache ? find_snapshot(&name, cache, e) : NULL;
    ses_free(cache);
    return dir;
}

bool ses_hub_is_cached(const char *text)
{
    ses_hub_name name;
    char *cache = ses_hub_name_parse(text, &name, NULL) ? ses_hub_cache_dir(NULL) : NULL,
         *repo = cache ? ses_path_join(cache, name.folder, NULL) : NULL;
    bool found = repo && ses_path_is_dir(repo);
    ses_free(repo);
    ses_free(cache);
    return found;
}

/* Programs that load single files leave no list of the others. */
static bool has_list(const char *repo, const char *commit)
{
    ses_buf path = { 0 };
    ses_buf_appendf(&path, "%s/trees/%s.json", repo, commit);
    bool has = ses_buf_ok(&path, NULL) && ses_path_exists(path.data);
    ses_buf_free(&path);
    return has;
}

/* The first file that the error names and whose hash is wrong; NULL: none. Others are not hashed. */
static const char *find_damaged(const ses_hub_check *c, const char *dir, const char *repo, const char *commit,
                                const ses_err *e)
{
    ses_hub_files tree = { 0 };
    const char *found = NULL;
    bool ok = e->code == SES_EFORMAT && ses_hub_read_tree(repo, commit, &tree, NULL);
    for (size_t i = 0; ok && !found && i < c->have.n; i++) {
        const ses_hub_file *x = &c->have.item[i];
        char *path = strstr(e->msg, x->path) ? ses_path_join(dir, x->path, NULL) : NULL;
        if (path && ses_hub_file_is_damaged(path, ses_hub_files_find(&tree, x->path))) found = x->path;
        ses_free(path);
    }
    ses_hub_files_free(&tree);
    return found;
}

static void explain(const ses_hub_check *c, const char *dir, const char *repo, const ses_hub_name *name,
                    ses_err *e)
{
    size_t n = strlen(e->msg);
    const char *damaged = find_damaged(c, dir, repo, name->revision, e);
    if (c->n_missing)
        snprintf(e->msg + n, sizeof e->msg - n,
                 "; the cache lacks %s%s of %s: 'sesame pull %s@%s' downloads it", c->missing,
                 c->n_missing > 1 ? " and others" : "", name->id, name->id, name->revision);
    else if (damaged)
        snprintf(
            e->msg + n, sizeof e->msg - n,
            "; the hash of %s is wrong, the file is damaged: 'sesame cache rm %s' and 'sesame pull %s@%s' "
            "load it again",
            damaged, name->id, name->id, name->revision);
    else if (e->code == SES_EIO && !has_list(repo, name->revision))
        snprintf(e->msg + n, sizeof e->msg - n,
                 "; the cache may hold only a part of %s: 'sesame pull %s@%s' downloads the rest", name->id,
                 name->id, name->revision);
}

bool ses_hub_explain(const char *dir, ses_err *e)
{
    ses_hub_name name;
    ses_hub_check c = { 0 };
    if (!e || e->code == SES_ENOMEM || !dir || !ses_hub_name_of_snapshot(dir, &name)) return false;
    if (strstr(e->msg, "'sesame pull ")) return false; /* it has been explained */
    char *snapshots = ses_path_parent(dir, NULL), *repo = snapshots ? ses_path_parent(snapshots, NULL) : NULL,
         *cache = repo ? ses_path_parent(repo, NULL) : NULL;
    if (cache && ses_hub_check_snapshot(&c, cache, repo, name.revision, NULL))
        explain(&c, dir, repo, &name, e);
    ses_hub_check_free(&c);
    ses_free(cache);
    ses_free(repo);
    ses_free(snapshots);
    return false;
}
