#define _POSIX_C_SOURCE 200809L
#include "file.h"

#include "alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A regular file open for reading and its size; -1 on failure. */
static int open_regular(const char *path, size_t *size, ses_err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hang us */
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
            return ses_fail(e, SES_EIO, "ends after %zu of %zu bytes: it changed while being read", got,
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
        ses_fail(e, SES_EFORMAT, "file of %zu bytes: at most %zu are read", size, max_bytes);
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
