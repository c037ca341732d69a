/* A safetensors file that several processes write: one creates it, each fills in its slices. */
#define _GNU_SOURCE /* fallocate */
#include "base/alloc.h"
#include "safetensors_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Header and sorted items. Free both with ses_free and ses_buf_free. */
static const ses_pending_entry **arrange(const ses_safetensors_writer *w, ses_buf *header, uint64_t *total,
                                         ses_err *e)
{
    const ses_pending_entry **item = ses_alloc_array(w->n + 1, sizeof *item, e);
    for (size_t i = 0; item && i < w->n; i++) item[i] = &w->item[i];
    if (item && ses_safetensors_header(w, item, w->n, header, total, e)) return item;
    ses_free(item);
    return NULL;
}

/* Reserves the space, so that a full disk is found before the other processes write; file systems that
 * cannot reserve get the size alone. */
static bool set_size(int fd, uint64_t size)
{
    int why;
    while ((why = fallocate(fd, 0, 0, (off_t)size) ? errno : 0) == EINTR) continue;
    if (why == EOPNOTSUPP || why == ENOSYS) why = ftruncate(fd, (off_t)size) ? errno : 0;
    errno = why;
    return !why;
}

static bool close_synced(int fd, bool ok, const char *path, ses_err *e)
{
    int done = 0;
    while (ok && (done = fsync(fd)) != 0 && errno == EINTR) continue;
    if (ok && done) ok = ses_fail_write(path, errno, e);
    if (close(fd) != 0 && ok && errno != EINTR) ok = ses_fail_write(path, errno, e);
    return ok;
}

bool ses_safetensors_create(const ses_safetensors_writer *w, const char *path, ses_err *e)
{
    ses_buf header = { 0 };
    uint64_t total = 0;
    const ses_pending_entry **item = arrange(w, &header, &total, e);
    int fd = item ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    bool ok = fd >= 0;
    if (item && fd < 0) ses_fail_write(path, errno, e);
    if (ok && !set_size(fd, header.len + total)) ok = ses_fail_write(path, errno, e);
    ok = ok && ses_fd_write(fd, header.data, header.len, path, e);
    if (fd >= 0) ok = close_synced(fd, ok, path, e);
    ses_buf_free(&header);
    ses_free(item);
    return ok;
}

static bool write_at(int fd, const char *p, size_t n, uint64_t at, const char *path, ses_err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return ses_fail_write(path, k ? errno : ENOSPC, e);
        done += (size_t)k;
    }
    return true;
}

/* begin: of the tensor in the file. */
static bool write_slice(int fd, const ses_pending_entry *x, uint64_t begin, char *chunk, const char *path,
                        ses_err *e)
{
    for (size_t at = x->first, end = x->first + x->held; at < end;) {
        size_t n = end - at < SES_SAFETENSORS_CHUNK ? end - at : SES_SAFETENSORS_CHUNK;
        if (!x->source(x->ctx, chunk, at, n, e) || !write_at(fd, chunk, n, begin + at, path, e)) return false;
        at += n;
    }
    return true;
}

bool ses_safetensors_fill(const ses_safetensors_writer *w, const char *path, ses_err *e)
{
    ses_buf header = { 0 };
    uint64_t total = 0;
    const ses_pending_entry **item = arrange(w, &header, &total, e);
    char *chunk = item ? ses_alloc_aligned(SES_SAFETENSORS_CHUNK, e) : NULL;
    int fd = chunk ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    bool ok = fd >= 0;
    if (chunk && fd < 0) ses_fail_write(path, errno, e);
    uint64_t at = header.len;
    for (size_t i = 0; ok && i < w->n; i++) {
        ok = write_slice(fd, item[i], at, chunk, path, e);
        at += item[i]->bytes;
    }
    if (fd >= 0) ok = close_synced(fd, ok, path, e);
    ses_free(chunk);
    ses_buf_free(&header);
    ses_free(item);
    return ok;
}
