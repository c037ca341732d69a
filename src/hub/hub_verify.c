/* Compares the files of the cache with their hashes. */
#define _POSIX_C_SOURCE 200809L
#include "hub_scan.h"

#include "base/alloc.h"
#include "base/file.h"
#include "hub_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

/* The hash of a file as hex digits; false without an error: stopped. */
static bool hash_file(ses_hub_verify *v, const char *path, bool is_sha256, char hex[SES_SHA256_HEX + 1],
                      ses_err *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *chunk = ses_alloc(CHUNK, e);
    bool ok =
        chunk && ((fd >= 0 && fstat(fd, &st) == 0) || ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno)));
    ses_sha sha = ses_hub_sha_start(is_sha256, ok ? (uint64_t)st.st_size : 0);
    while (ok) {
        ssize_t n = read(fd, chunk, CHUNK);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) ok = ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
        if (n <= 0) break;
        ses_sha_add(&sha, chunk, (size_t)n);
        v->done += (uint64_t)n;
        if (v->on_bytes && !v->on_bytes(v->ctx, v->done)) ok = false;
    }
    ses_sha_hex(&sha, hex);
    if (fd >= 0) close(fd);
    ses_free(chunk);
    return ok;
}

/* The expected hash: that of the commit's list, else the name of the blob; "": unknown. */
static void expected_hash(const char *path, const ses_hub_file *listed, char out[SES_SHA256_HEX + 1])
{
    char to[1024];
    ssize_t n = readlink(path, to, sizeof to - 1);
    to[n > 0 ? n : 0] = 0;
    const char *name = n > 0 ? ses_path_basename(to) : "";
    size_t hex = strlen(name);
    bool is_hash = (hex == SES_SHA1_HEX || hex == SES_SHA256_HEX) && ses_hub_is_hex(name, hex);
    const char *from = listed ? ses_hub_file_etag(listed) : is_hash ? name : "";
    memcpy(out, from, strlen(from) + 1);
}

bool ses_hub_file_is_damaged(const char *path, const ses_hub_file *listed)
{
    char want[SES_SHA256_HEX + 1], got[SES_SHA256_HEX + 1];
    ses_hub_verify silent = { 0 };
    expected_hash(path, listed, want);
    return *want && hash_file(&silent, path, strlen(want) == SES_SHA256_HEX, got, NULL) && strcmp(want, got);
}

static bool verify_file(ses_hub_verify *v, const char *cache, const ses_hub_entry *x,
                        const ses_hub_file *file, const ses_hub_files *tree, ses_err *e)
{
    char want[SES_SHA256_HEX + 1], got[SES_SHA256_HEX + 1];
    struct stat st;
    char *path = ses_path_join(x->dir, file->path, e);
    if (!path) return false;
    expected_hash(path, ses_hub_files_find(tree, file->path), want);
    const char *what = NULL;
    bool ok = true;
    if (stat(path, &st))
        what = "a broken link";
    else if (!ses_hub_is_inside(cache, path))
        what = "a link out of the cache";
    else if (!S_ISREG(st.st_mode))
        what = "not a regular file";
    else if (!*want)
        what = "its hash is unknown";
    else if ((ok = hash_file(v, path, strlen(want) == SES_SHA256_HEX, got, e)) && strcmp(want, got))
        what = "its hash is wrong";
    ok = ok && v->on_file(v->ctx, x, file->path, !what, what);
    ses_free(path);
    return ok;
}

bool ses_hub_verify_entry(ses_hub_verify *v, const char *cache, const ses_hub_entry *x, ses_err *e)
{
    ses_hub_files tree = { 0 };
    ses_hub_check c = { 0 };
    ses_err bad = { 0 };
    if (!x->dir) return true;
    bool ok = ses_hub_check_snapshot(&c, cache, x->repo, x->name.revision, &bad) &&
              ses_hub_read_tree(x->repo, x->name.revision, &tree, &bad);
    if (!ok && bad.code != SES_ENOMEM) return v->on_file(v->ctx, x, "", false, bad.msg);
    if (!ok) return ses_fail(e, bad.code, "%s", bad.msg);
    for (size_t i = 0; ok && i < c.have.n; i++) ok = verify_file(v, cache, x, &c.have.item[i], &tree, e);
    ses_hub_files_free(&tree);
    ses_hub_check_free(&c);
    return ok;
}
