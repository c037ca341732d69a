/* Atomic replacement of a file: writes a temporary in the same folder, syncs it, renames it. */
#define _POSIX_C_SOURCE 200809L
#include "file.h"

#include "alloc.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BUFFER = 64 * 1024, TRIES = 8 };

struct ses_file_writer {
    char *path, *dir, *temp; /* temp: the temporary file; NULL: removed or renamed */
    int fd;                  /* -1 once synced */
    bool overwrite, failed, synced, committed;
    size_t used;  /* bytes in buffer */
    char *buffer; /* freed once synced */
};

bool ses_fail_write(const char *name, int why, ses_err *e)
{
    bool full = why == ENOSPC || why == EDQUOT;
    return ses_fail(e, SES_EIO, "%s: cannot be written: %s%s", name, why ? strerror(why) : "write error",
                    full ? "; free disk space and run the command again" : "");
}

bool ses_fail_exists(const char *path, ses_err *e)
{
    return ses_fail(e, SES_EIO, "%s: already exists; use --overwrite to replace it", path);
}

/* On file systems without hard links an empty file reserves the name, which the rename replaces. A process
 * killed in between leaves the empty file. */
static bool reserve_and_rename(const char *temp, const char *path, ses_err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return errno == EEXIST ? ses_fail_exists(path, e) : ses_fail_write(path, errno, e);
    close(fd);
    if (rename(temp, path) == 0) return true;
    ses_fail_write(path, errno, e);
    unlink(path);
    return false;
}

/* link fails if the name exists, even if it was created a moment ago; rename would replace it. */
bool ses_file_place(const char *temp, const char *path, bool overwrite, ses_err *e)
{
    if (overwrite) return rename(temp, path) == 0 || ses_fail_write(path, errno, e);
    if (link(temp, path) == 0) {
        unlink(temp);
        return true;
    }
    return errno == EEXIST ? ses_fail_exists(path, e) : reserve_and_rename(temp, path, e);
}

bool ses_fd_write(int fd, const void *p, size_t n, const char *name, ses_err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = write(fd, (const char *)p + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return ses_fail_write(name, k ? errno : ENOSPC, e);
        done += (size_t)k;
    }
    return true;
}

static bool failed(ses_file_writer *w, ses_err *e)
{
    int why = errno;
    w->failed = true;
    return ses_fail_write(w->path, why, e);
}

static bool make_temp(ses_file_writer *w, ses_err *e)
{
    for (int i = 0; i < TRIES; i++) {
        char name[48];
        snprintf(name, sizeof name, ".sesame-%016" PRIx64 ".tmp", ses_hash_key_new().k0);
        char *temp = ses_path_join(w->dir, name, e);
        if (!temp) return false;
        w->fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) {
            w->temp = temp;
            return true;
        }
        ses_free(temp);
        if (errno != EEXIST && errno != EINTR) break;
    }
    return failed(w, e);
}

int ses_file_unnamed(const char *path, ses_err *e)
{
    ses_file_writer w = { .path = (char *)path, .dir = ses_path_parent(path, e), .fd = -1 };
    if (w.dir && make_temp(&w, e) && unlink(w.temp)) {
        failed(&w, e);
        close(w.fd);
        w.fd = -1;
    }
    ses_free(w.temp);
    ses_free(w.dir);
    return w.fd;
}

ses_file_writer *ses_file_writer_open(const char *path, bool overwrite, ses_err *e)
{
    ses_file_writer *w = ses_alloc(sizeof *w, e);
    if (!w) return NULL;
    w->fd = -1;
    w->overwrite = overwrite;
    w->path = ses_strdup(path, e);
    w->dir = ses_path_parent(path, e);
    w->buffer = ses_realloc_array(NULL, BUFFER, 1, e);
    if (!w->path || !w->dir || !w->buffer) goto fail;
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) {
        ses_fail(e, SES_EIO, "%s: %s", path, strerror(EISDIR));
        goto fail;
    }
    if (exists && !overwrite) {
        ses_fail_exists(path, e);
        goto fail;
    }
    if (exists && !S_ISREG(st.st_mode)) { /* the rename would replace the device */
        ses_fail(e, SES_EIO, "%s: a device or a pipe, expected a regular file", path);
        goto fail;
    }
    if (!make_temp(w, e)) goto fail;
    if (exists && fchmod(w->fd, st.st_mode & 0777) != 0) { /* keep the permissions of the replaced file */
        failed(w, e);
        goto fail;
    }
    return w;
fail:
    ses_file_writer_free(w);
    return NULL;
}

bool ses_file_writer_check_space(ses_file_writer *w, uint64_t bytes, ses_err *e)
{
    struct statvfs fs;
    if (statvfs(w->dir, &fs) != 0 || fs.f_blocks == 0) return true; /* unknown: a write may still fail */
    uint64_t available;
    if (__builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, &available) ||
        bytes <= available)
        return true;
    w->failed = true;
    return ses_fail(e, SES_EIO,
                    "%s: cannot be written: %" PRIu64 " bytes needed, %" PRIu64
                    " available; free disk space and run the command again",
                    w->path, bytes, available);
}

static bool write_all(ses_file_writer *w, const void *p, size_t n, ses_err *e)
{
    bool ok = ses_fd_write(w->fd, p, n, w->path, e);
    w->failed = w->failed || !ok;
    return ok;
}

static bool usable(ses_file_writer *w, ses_err *e)
{
    if (!w->failed && !w->committed) return true;
    return ses_fail(e, SES_EIO, "%s: %s", w->path,
                    w->failed ? "an earlier write failed" : "already committed");
}

static bool flush(ses_file_writer *w, ses_err *e)
{
    size_t n = w->used;
    w->used = 0;
    return write_all(w, w->buffer, n, e);
}

bool ses_file_writer_put(ses_file_writer *w, const void *p, size_t n, ses_err *e)
{
    if (!usable(w, e)) return false;
    if (w->synced) return ses_fail(e, SES_EIO, "%s: write after sync", w->path);
    if (n > BUFFER - w->used && !flush(w, e)) return false;
    if (n >= BUFFER) return write_all(w, p, n, e);
    if (n) memcpy(w->buffer + w->used, p, n);
    w->used += n;
    return true;
}

bool ses_file_writer_map(ses_file_writer *w, ses_mmap *m, ses_err *e)
{
    *m = (ses_mmap){ 0 };
    return usable(w, e) && flush(w, e) && ses_mmap_open(m, w->temp, e);
}

bool ses_file_writer_patch(ses_file_writer *w, uint64_t at, const void *p, size_t n, ses_err *e)
{
    if (!usable(w, e) || !flush(w, e)) return false;
    if (lseek(w->fd, (off_t)at, SEEK_SET) < 0 || !write_all(w, p, n, e) || lseek(w->fd, 0, SEEK_END) < 0)
        return w->failed ? false : failed(w, e);
    return true;
}

bool ses_file_writer_sync(ses_file_writer *w, ses_err *e)
{
    if (!usable(w, e)) return false;
    if (w->synced) return true;
    if (!flush(w, e)) return false;
    int done;
    while ((done = fsync(w->fd)) != 0 && errno == EINTR) continue;
    if (done != 0) return failed(w, e);
    int fd = w->fd;
    w->fd = -1;
    if (close(fd) != 0 && errno != EINTR) return failed(w, e);
    w->synced = true;
    ses_free(w->buffer);
    w->buffer = NULL;
    return true;
}

static bool sync_folder(ses_file_writer *w, ses_err *e)
{
    int fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return true; /* a folder without read permission; the rename itself was atomic */
    bool ok = fsync(fd) == 0 || errno == EINVAL || errno == EINTR;
    if (!ok)
        ses_fail(e, SES_EIO, "%s: written, but its folder cannot be synced: %s", w->path, strerror(errno));
    close(fd);
    return ok;
}

bool ses_file_writer_commit(ses_file_writer *w, ses_err *e)
{
    if (!ses_file_writer_sync(w, e)) return false;
    if (!ses_file_place(w->temp, w->path, w->overwrite, e)) {
        w->failed = true;
        return false;
    }
    ses_free(w->temp);
    w->temp = NULL;
    w->committed = true;
    return sync_folder(w, e);
}

void ses_file_writer_free(ses_file_writer *w)
{
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    if (w->temp) unlink(w->temp);
    ses_free(w->buffer);
    ses_free(w->temp);
    ses_free(w->path);
    ses_free(w->dir);
    ses_free(w);
}

bool ses_file_write(const char *path, const void *p, size_t n, bool overwrite, ses_err *e)
{
    ses_file_writer *w = ses_file_writer_open(path, overwrite, e);
    bool ok = w && ses_file_writer_put(w, p, n, e) && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    return ok;
}
