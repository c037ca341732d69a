/* Reading and mapping files; paths and folders. */
#define _DEFAULT_SOURCE /* madvise */
#include "file.h"

#include "alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A regular file open for reading and its size; -1 on failure. */
static int open_regular(const char *path, size_t *size, ses_err *e)
{
    int fd;
    do /* O_NONBLOCK: opening a pipe without a writer must not block */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        ses_fail(e, SES_EIO, "%s", strerror(errno));
        return -1;
    }
    struct stat st;
    if (fstat(fd, &st) != 0)
        ses_fail(e, SES_EIO, "%s", strerror(errno));
    else if (S_ISDIR(st.st_mode))
        ses_fail(e, SES_EIO, "%s", strerror(EISDIR));
    else if (!S_ISREG(st.st_mode))
        ses_fail(e, SES_EIO, "not a regular file");
    else if (st.st_size < 0 || (uintmax_t)st.st_size >= SIZE_MAX)
        ses_fail(e, SES_EIO, "%s", strerror(EFBIG));
    else
        return *size = (size_t)st.st_size, fd;
    close(fd);
    return -1;
}

static bool read_all(int fd, char *data, size_t size, ses_err *e)
{
    for (size_t got = 0; got < size;) {
        ssize_t k = read(fd, data + got, size - got);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return ses_fail(e, SES_EIO, "%s", strerror(errno));
        if (k == 0)
            return ses_fail(e, SES_EIO, "only %zu of %zu bytes: the file changed while it was read", got,
                            size);
        got += (size_t)k;
    }
    return true;
}

char *ses_file_read(const char *path, size_t max_bytes, size_t *n, ses_err *e)
{
    size_t size;
    char *data = NULL;
    int fd = open_regular(path, &size, e);
    if (fd < 0) goto fail;
    if (size > max_bytes) {
        ses_fail(e, SES_EFORMAT, "file of %zu bytes, the maximum is %zu", size, max_bytes);
        goto fail;
    }
    data = ses_realloc_array(NULL, size + 1, 1, e);
    if (!data || !read_all(fd, data, size, e)) goto fail;
    data[size] = 0;
    close(fd);
    *n = size;
    return data;
fail:
    ses_wrap(e, "%s", path);
    ses_free(data);
    if (fd >= 0) close(fd);
    return NULL;
}

bool ses_mmap_open(ses_mmap *m, const char *path, ses_err *e)
{
    *m = (ses_mmap){ 0 };
    size_t size;
    int fd = open_regular(path, &size, e);
    if (fd < 0) return ses_wrap(e, "%s", path);
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (data == MAP_FAILED) ses_fail(e, SES_EIO, "cannot map %zu bytes: %s", size, strerror(errno));
    close(fd);
    if (data == MAP_FAILED) return ses_wrap(e, "%s", path);
    *m = (ses_mmap){ data, size };
    return true;
}

void ses_mmap_free(ses_mmap *m)
{
    if (m->size) munmap((void *)m->data, m->size);
    *m = (ses_mmap){ 0 };
}

void ses_mmap_release(const void *p, size_t n)
{
    long page = sysconf(_SC_PAGESIZE);
    if (page <= 0) return;
    uintptr_t size = (uintptr_t)page, begin = ((uintptr_t)p + size - 1) / size * size,
              end = ((uintptr_t)p + n) / size * size;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* a hint */
}

char *ses_path_join(const char *dir, const char *name, ses_err *e)
{
    size_t n = strlen(dir), k = strlen(name), slash = n && dir[n - 1] != '/';
    char *path = ses_alloc(n + k + 2, e);
    if (!path) return NULL;
    memcpy(path, dir, n);
    if (slash) path[n] = '/';
    memcpy(path + n + slash, name, k);
    return path;
}

const char *ses_path_basename(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    return path + n;
}

char *ses_path_parent(const char *path, ses_err *e)
{
    const char *base = ses_path_basename(path);
    if (base == path) return ses_strdup(".", e);
    size_t n = (size_t)(base - path);
    return ses_strndup(path, n > 1 ? n - 1 : 1, e);
}

ses_path_name ses_path_name_of(const char *path)
{
    ses_path_name name;
    snprintf(name.s, sizeof name.s, "%s", ses_path_basename(path));
    ses_path_trim(name.s);
    return name;
}

void ses_path_trim(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/';) path[--n] = 0;
}

/* A dangling link exists: opening it reports the error. */
bool ses_path_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

bool ses_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool ses_path_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool ses_dir_check(const char *path, ses_err *e)
{
    struct stat st;
    int why = stat(path, &st) != 0      ? errno
              : !S_ISDIR(st.st_mode)    ? ENOTDIR
              : access(path, X_OK) != 0 ? errno
                                        : 0;
    return !why || ses_fail(e, SES_EIO, "%s: %s", path, strerror(why));
}

bool ses_dir_make(const char *path, ses_err *e)
{
    char *part = ses_strdup(path, e);
    if (!part) return false;
    int why = 0;
    for (char *at = part; *at && !why;) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char end = *at;
        *at = 0;
        if (*part && mkdir(part, 0777) != 0 && errno != EEXIST) why = errno;
        if (why == EROFS || why == EACCES)
            why = ses_path_is_dir(part) ? 0 : why; /* some systems report these before EEXIST */
        *at = end;
    }
    ses_free(part);
    if (why) return ses_fail_write(path, why, e);
    return ses_dir_check(path, e);
}

bool ses_dir_each(const char *path, bool (*fn)(void *ctx, const char *name), void *ctx, ses_err *e)
{
    DIR *d = opendir(path);
    if (!d) return ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    const struct dirent *x = NULL;
    do {
        errno = 0;
        x = readdir(d);
    } while (x && (!strcmp(x->d_name, ".") || !strcmp(x->d_name, "..") || fn(ctx, x->d_name)));
    int why = x ? 0 : errno;
    closedir(d);
    return !why || ses_fail(e, SES_EIO, "%s: %s", path, strerror(why));
}

typedef struct emptiness {
    const char *except;
    bool empty;
} emptiness;

static bool note_entry(void *ctx, const char *name)
{
    emptiness *x = ctx;
    return x->empty = x->except && !strcmp(name, x->except);
}

bool ses_dir_is_empty(const char *path, const char *except, bool *empty, ses_err *e)
{
    emptiness x = { except, true };
    bool ok = ses_dir_each(path, note_entry, &x, e);
    *empty = x.empty;
    return ok;
}

bool ses_file_remove(const char *path, ses_err *e)
{
    if (unlink(path) == 0 || errno == ENOENT) return true;
    return ses_fail(e, SES_EIO, "%s: cannot remove: %s", path, strerror(errno));
}
