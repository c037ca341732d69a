/* Folders, links, refs and lists of the cache. */
#define _XOPEN_SOURCE 700
#include "hub_store.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "hub_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                          "# This folder is a cache: programs that write backups may skip it.\n";

void ses_hub_store_free(ses_hub_store *s)
{
    ses_free(s->cache);
    ses_free(s->repo);
    ses_free(s->locks);
    *s = (ses_hub_store){ 0 };
}

/* cache: its canonical path, if it exists. */
static bool set_paths(ses_hub_store *s, const char *cache, ses_err *e)
{
    ses_free(s->cache);
    ses_free(s->repo);
    ses_free(s->locks);
    s->repo = s->locks = NULL;
    s->cache = ses_strdup(cache, e);
    char *locks = s->cache ? ses_path_join(s->cache, ".locks", e) : NULL;
    s->repo = locks ? ses_path_join(s->cache, s->folder, e) : NULL;
    s->locks = s->repo ? ses_path_join(locks, s->folder, e) : NULL;
    ses_free(locks);
    return s->locks != NULL;
}

bool ses_hub_store_open(ses_hub_store *s, const char *cache, const ses_hub_name *name, bool no_links,
                        ses_err *e)
{
    char real[SES_HUB_REAL];
    bool exists = ses_hub_real_path(cache, real);
    *s = (ses_hub_store){ .no_links = no_links };
    memcpy(s->folder, name->folder, sizeof s->folder);
    bool ok = set_paths(s, exists ? real : cache, e);
    if (!ok) ses_hub_store_free(s);
    return ok;
}

/* Creates the folders of a path (each part that ends with '/') below `root`, none of which may be a link.
 * Returns their number, -1: failure. */
static int make_parents(const char *root, const char *path, ses_err *e)
{
    int depth = 0;
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++, depth++) {
        char *below = ses_strndup(path, (size_t)(slash - path), e),
             *dir = below ? ses_path_join(root, below, e) : NULL;
        struct stat st;
        bool ok = dir && (mkdir(dir, 0777) == 0 || errno == EEXIST || ses_fail_write(dir, errno, e));
        if (ok && (lstat(dir, &st) || !S_ISDIR(st.st_mode)))
            ok =
                ses_fail(e, SES_EIO,
                         "%s: a link or a file, expected a folder; remove it and run the command again", dir);
        ses_free(dir);
        ses_free(below);
        if (!ok) return -1;
    }
    return depth;
}

/* Creates a folder of the model in the cache. */
static bool make_folder(const ses_hub_store *s, const char *above, const char *name, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s%s/%s%s", above, s->folder, name, *name ? "/" : "");
    bool ok = ses_buf_ok(&b, e) && make_parents(s->cache, b.data, e) >= 0;
    ses_buf_free(&b);
    return ok;
}

static bool write_file(const char *dir, const char *name, const char *text, size_t n, bool overwrite,
                       ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    bool ok = path && ((!overwrite && ses_path_exists(path)) || ses_file_write(path, text, n, overwrite, e));
    ses_free(path);
    return ok;
}

bool ses_hub_store_prepare(ses_hub_store *s, const ses_hub_files *files, ses_err *e)
{
    char name[SES_HUB_COMMIT + 16];
    size_t n;
    if (!ses_dir_make(s->cache, e)) return false;
    char real[SES_HUB_REAL]; /* known now if the cache is new */
    if (!ses_hub_real_path(s->cache, real)) return ses_fail(e, SES_EIO, "%s: %s", s->cache, strerror(errno));
    if (!set_paths(s, real, e)) return false;
    write_file(s->cache, "CACHEDIR.TAG", tag, sizeof tag - 1, false, NULL); /* for backups only */
    snprintf(name, sizeof name, "snapshots/%s", files->commit);
    if (!make_folder(s, "", "blobs", e) || !make_folder(s, "", "refs", e) ||
        !make_folder(s, "", "trees", e) || !make_folder(s, "", name, e) || !make_folder(s, ".locks/", "", e))
        return false;
    snprintf(name, sizeof name, "trees/%s.json", files->commit);
    char *text = ses_hub_files_tree(files, &n, e);
    bool ok = text && write_file(s->repo, name, text, n, true, e);
    ses_free(text);
    return ok;
}

char *ses_hub_store_snapshot(const ses_hub_store *s, const char *commit, ses_err *e)
{
    char name[SES_HUB_COMMIT + 16];
    snprintf(name, sizeof name, "snapshots/%s", commit);
    return ses_path_join(s->repo, name, e);
}

/* Renames a new link over whatever is there: readers find the old or the new one. */
static bool replace_link(const char *target, const char *path, ses_err *e)
{
    char old[SES_HUB_PATH_MAX];
    ssize_t n = readlink(path, old, sizeof old - 1);
    if (n > 0 && (size_t)n == strlen(target) && !memcmp(old, target, (size_t)n)) return true;
    ses_buf temp = { 0 };
    ses_buf_appendf(&temp, "%.*s.sesame-%016" PRIx64 ".tmp", (int)(ses_path_basename(path) - path), path,
                    ses_hash_key_new().k0);
    bool ok = ses_buf_ok(&temp, e);
    if (ok && (symlink(target, temp.data) || rename(temp.data, path))) {
        ok = ses_fail_write(path, errno, e);
        unlink(temp.data);
    }
    ses_buf_free(&temp);
    return ok;
}

static bool copy_bytes(int from, ses_file_writer *w, ses_err *e)
{
    char chunk[8192];
    for (ssize_t n; (n = read(from, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ses_fail(e, SES_EIO, "cannot be read: %s", strerror(errno));
        if (!ses_file_writer_put(w, chunk, (size_t)n, e)) return false;
    }
    return true;
}

static char *blob_path(const ses_hub_store *s, const ses_hub_file *file, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s/blobs/%s", s->repo, ses_hub_file_etag(file));
    if (ses_buf_ok(&b, e)) return b.data;
    ses_buf_free(&b);
    return NULL;
}

/* Copies the blob, which ses_hub_store_finish removes. No blob: the file is there. */
static bool place_file(const ses_hub_store *s, const ses_hub_file *file, const char *path, ses_err *e)
{
    char *blob = blob_path(s, file, e);
    int fd = blob ? open(blob, O_RDONLY | O_CLOEXEC) : -1;
    bool ok = blob && (fd >= 0 || errno == ENOENT || ses_fail(e, SES_EIO, "%s: %s", blob, strerror(errno)));
    if (ok && fd >= 0) {
        ses_file_writer *w = ses_file_writer_open(path, true, e);
        ok = w && copy_bytes(fd, w, e) && ses_file_writer_commit(w, e);
        ses_file_writer_free(w);
    }
    if (fd >= 0) close(fd);
    ses_free(blob);
    return ok;
}

bool ses_hub_store_finish(const ses_hub_store *s, const ses_hub_files *files, const uint64_t *had, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; s->no_links && ok && i < files->n; i++) {
        if (files->item[i].use == SES_HUB_SKIPPED || had[i] >= files->item[i].size) continue;
        char *blob = blob_path(s, &files->item[i], e);
        ok = blob && ses_file_remove(blob, e);
        ses_free(blob);
    }
    return ok;
}

bool ses_hub_store_link(const ses_hub_store *s, const char *commit, const ses_hub_file *file, ses_err *e)
{
    char *snapshot = ses_hub_store_snapshot(s, commit, e),
         *path = snapshot ? ses_path_join(snapshot, file->path, e) : NULL;
    int depth = path ? make_parents(snapshot, file->path, e) : -1;
    ses_buf to = { 0 };
    for (int i = 0; i < depth + 2; i++) ses_buf_puts(&to, "../");
    ses_buf_appendf(&to, "blobs/%s", ses_hub_file_etag(file));
    bool ok = depth >= 0 && ses_buf_ok(&to, e);
    if (ok) ok = s->no_links ? place_file(s, file, path, e) : replace_link(to.data, path, e);
    ses_buf_free(&to);
    ses_free(path);
    ses_free(snapshot);
    return ok;
}

bool ses_hub_store_set_ref(const ses_hub_store *s, const char *revision, const char *commit, ses_err *e)
{
    if (ses_hub_is_commit(revision)) return true; /* names itself */
    char *refs = ses_path_join(s->repo, "refs", e);
    bool ok = refs && make_parents(refs, revision, e) >= 0 &&
              write_file(refs, revision, commit, SES_HUB_COMMIT, true, e);
    ses_free(refs);
    return ok;
}

static bool has_size(const ses_hub_store *s, const char *path, uint64_t size)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size &&
           ses_hub_is_inside(s->cache, path);
}

bool ses_hub_store_has(const ses_hub_store *s, const char *commit, const ses_hub_file *file)
{
    ses_hub_part p;
    char *snapshot = ses_hub_store_snapshot(s, commit, NULL),
         *path = snapshot ? ses_path_join(snapshot, file->path, NULL) : NULL;
    bool in_snapshot = s->no_links && has_size(s, path, file->size),
         init = ses_hub_part_init(&p, s, file, NULL);
    bool has = in_snapshot || (init && has_size(s, p.blob, file->size));
    if (init) ses_hub_part_close(&p);
    ses_free(path);
    ses_free(snapshot);
    return has;
}

uint64_t ses_hub_store_part_size(const ses_hub_store *s, const ses_hub_file *file)
{
    ses_hub_part p;
    struct stat st;
    uint64_t n = 0;
    if (!ses_hub_part_init(&p, s, file, NULL)) return 0;
    if (lstat(p.path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= file->size)
        n = (uint64_t)st.st_size;
    ses_hub_part_close(&p);
    return n;
}
