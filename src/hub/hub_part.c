/* One download: the partial file, its locks, its hash. The name of the partial file does not change, so that
 * the next call continues it. */
#define _DEFAULT_SOURCE /* flock */
#include "hub_store.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "hub_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

ses_sha ses_hub_sha_start(bool is_sha256, uint64_t size)
{
    char header[40];
    ses_sha s = is_sha256 ? ses_sha256_start() : ses_sha1_start();
    int n = snprintf(header, sizeof header, "blob %" PRIu64, size);
    if (!is_sha256) ses_sha_add(&s, header, (size_t)n + 1); /* with its NUL */
    return s;
}

static char *format_path(const char *dir, const char *name, const char *end, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s/%s%s", dir, name, end);
    if (ses_buf_ok(&b, e)) return b.data;
    ses_buf_free(&b);
    return NULL;
}

bool ses_hub_part_init(ses_hub_part *p, const ses_hub_store *s, const ses_hub_file *file, ses_err *e)
{
    const char *etag = ses_hub_file_etag(file);
    *p = (ses_hub_part){ .store = s, .file = file, .fd = -1, .lock = -1 };
    char *blobs = ses_path_join(s->repo, "blobs", e);
    p->blob = blobs ? format_path(blobs, etag, "", e) : NULL;
    p->path = blobs ? format_path(blobs, etag, SES_HUB_PART, e) : NULL;
    p->lock_path = format_path(s->locks, etag, ".lock", e);
    ses_free(blobs);
    if (p->blob && p->path && p->lock_path) return true;
    ses_hub_part_close(p);
    return false;
}

static void release(ses_hub_part *p)
{
    if (p->fd >= 0 && !p->got && p->path) unlink(p->path); /* nothing to continue; still locked */
    if (p->fd >= 0) close(p->fd);
    if (p->lock >= 0) close(p->lock);
    p->fd = p->lock = -1;
}

void ses_hub_part_close(ses_hub_part *p)
{
    release(p);
    ses_free(p->blob);
    ses_free(p->path);
    ses_free(p->lock_path);
    p->blob = p->path = p->lock_path = NULL;
}

/* Opens and locks a file. -1: another process holds it or has just replaced it (*busy), or an error. A link
 * is refused: a hostile cache could make it any file. */
static int open_locked(const char *path, bool *busy, ses_err *e)
{
    struct stat a, b;
    *busy = false;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0) {
        ses_fail_write(path, errno, e);
        return -1;
    }
    if (fstat(fd, &a) || !S_ISREG(a.st_mode)) {
        ses_fail(e, SES_EIO, "%s: not a regular file", path);
    } else if (flock(fd, LOCK_EX | LOCK_NB)) {
        *busy = errno == EWOULDBLOCK || errno == EINTR;
        if (!*busy && (errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL))
            return fd; /* no locks there */
        if (!*busy) ses_fail(e, SES_EIO, "%s: cannot be locked: %s", path, strerror(errno));
    } else if (lstat(path, &b) || a.st_ino != b.st_ino || a.st_dev != b.st_dev) {
        *busy = true;
    } else {
        return fd;
    }
    close(fd);
    return -1;
}

static bool blob_is_complete(const ses_hub_part *p)
{
    struct stat st;
    return stat(p->blob, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == p->file->size &&
           ses_hub_is_inside(p->store->cache, p->blob);
}

/* Hashes the bytes of an earlier attempt. */
static bool hash_existing(ses_hub_part *p, ses_err *e)
{
    struct stat st;
    char *chunk = ses_alloc(CHUNK, e);
    bool ok = chunk && (fstat(p->fd, &st) == 0 || ses_fail(e, SES_EIO, "%s: %s", p->path, strerror(errno)));
    p->got = 0;
    p->sha = ses_hub_sha_start(*p->file->sha256, p->file->size);
    while (ok && p->got < (uint64_t)st.st_size) {
        ssize_t n = pread(p->fd, chunk, CHUNK, (off_t)p->got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) ok = ses_fail(e, SES_EIO, "%s: %s", p->path, strerror(errno));
        if (n <= 0) break;
        ses_sha_add(&p->sha, chunk, (size_t)n);
        p->got += (uint64_t)n;
    }
    ses_free(chunk);
    return ok;
}

bool ses_hub_part_restart(void *part, ses_err *e)
{
    ses_hub_part *p = part;
    bool busy;
    /* Another process may have the file open in spite of the lock: it keeps its own. */
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    if (unlink(p->path) && errno != ENOENT) return ses_fail_write(p->path, errno, e);
    p->fd = open_locked(p->path, &busy, e);
    if (p->fd < 0) return ses_fail(e, SES_EIO, "%s: in use by another process", p->path);
    return hash_existing(p, e);
}

/* Verifies the bytes and gives the file its name. */
static ses_fetch_end commit(ses_hub_part *p, ses_err *e)
{
    char hex[SES_SHA256_HEX + 1];
    ses_sha sha = p->sha;
    ses_sha_hex(&sha, hex);
    if (strcmp(hex, ses_hub_file_etag(p->file))) return SES_FETCH_WRONG;
    int done;
    while ((done = fsync(p->fd)) != 0 && errno == EINTR) continue;
    char *dir = ses_path_parent(p->blob, e);
    bool ok = dir && (done == 0 || ses_fail_write(p->path, errno, e)) &&
              (rename(p->path, p->blob) == 0 || ses_fail_write(p->blob, errno, e)) && ses_dir_sync(dir, e);
    ses_free(dir);
    release(p);
    p->done = ok;
    return ok ? SES_FETCH_COMPLETE : SES_FETCH_LOST;
}

ses_fetch_begin ses_hub_part_begin(void *part, uint64_t *offset, ses_err *e)
{
    ses_hub_part *p = part;
    bool busy = false;
    release(p);
    if (blob_is_complete(p)) return p->done = true, p->got = p->file->size, SES_FETCH_DONE;
    p->lock = open_locked(p->lock_path, &busy, e);
    if (p->lock < 0) return busy ? SES_FETCH_LATER : SES_FETCH_FAILED;
    if (blob_is_complete(p)) return release(p), p->done = true, p->got = p->file->size, SES_FETCH_DONE;
    p->fd = open_locked(p->path, &busy, e);
    if (p->fd < 0) return release(p), busy ? SES_FETCH_LATER : SES_FETCH_FAILED;
    if (!hash_existing(p, e)) return SES_FETCH_FAILED;
    if (p->got > p->file->size && !ses_hub_part_restart(p, e)) return SES_FETCH_FAILED;
    if (p->got == p->file->size) {
        switch (commit(p, e)) {
        case SES_FETCH_COMPLETE: return SES_FETCH_DONE;
        case SES_FETCH_WRONG:
            if (!p->file->size) { /* no request can change the hash of no bytes */
                ses_fail(e, SES_EIO, "%s: an empty file has another hash than the hub lists", p->file->path);
                return SES_FETCH_FAILED;
            }
            if (!ses_hub_part_restart(p, e)) return SES_FETCH_FAILED;
            break;
        default: return SES_FETCH_FAILED;
        }
    }
    *offset = p->got;
    return SES_FETCH_GO;
}

bool ses_hub_part_take(void *part, const void *bytes, size_t n, ses_err *e)
{
    ses_hub_part *p = part;
    if (n > p->file->size - p->got)
        return ses_fail(e, SES_EIO, "longer than the %" PRIu64 " bytes that the hub lists", p->file->size);
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(p->fd, (const char *)bytes + done, n - done, (off_t)(p->got + done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return ses_fail_write(p->path, k ? errno : ENOSPC, e);
        done += (size_t)k;
    }
    ses_sha_add(&p->sha, bytes, n);
    p->got += n;
    return true;
}

ses_fetch_end ses_hub_part_end(void *part, ses_err *e)
{
    ses_hub_part *p = part;
    return p->got < p->file->size ? SES_FETCH_SHORT : commit(p, e);
}
