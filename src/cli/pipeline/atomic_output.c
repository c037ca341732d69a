/* Redirects standard output to a temporary file that gets its name on success. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "atomic_output.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/standard_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file without a name, where the file system supports it, else one with the temporary name. */
static int open_file(ses_atomic_output *r)
{
    int fd = -1;
#ifdef O_TMPFILE
    char *dir = access("/proc/self/fd/1", F_OK) ? NULL : ses_path_parent(r->temp, NULL);
    if (dir) fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    ses_free(dir);
    r->unnamed = fd >= 0;
#endif
    return fd >= 0 ? fd : open(r->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Gives the file on standard output its temporary name. */
static bool name_file(ses_atomic_output *r)
{
    if (!r->unnamed) return true;
    if (linkat(AT_FDCWD, "/proc/self/fd/1", AT_FDCWD, r->temp, AT_SYMLINK_FOLLOW)) return false;
    r->unnamed = false;
    return true;
}

bool ses_atomic_output_begin(ses_atomic_output *r, const char *path, bool overwrite, ses_err *e)
{
    ses_buf name = { 0 };
    *r = (ses_atomic_output){ .before = -1, .overwrite = overwrite };
    if (!overwrite && ses_path_exists(path)) return ses_fail_exists(path, e);
    ses_buf_appendf(&name, "%.*s.sesame-%ld.tmp", (int)(ses_path_basename(path) - path), path,
                    (long)getpid());
    r->path = ses_strdup(path, e);
    r->temp = r->path && ses_buf_ok(&name, e) ? ses_strdup(name.data, e) : NULL;
    ses_buf_free(&name);
    int fd = r->temp ? open_file(r) : -1;
    if (r->temp && fd < 0) {
        ses_fail_write(path, errno, e);
        ses_free(r->temp);
        r->temp = NULL; /* created by another process */
    }
    fflush(stdout);
    r->before = fd >= 0 ? dup(STDOUT_FILENO) : -1;
    bool ok = fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0;
    if (fd >= 0) close(fd);
    if (!ok && fd >= 0) ses_fail_write(path, errno, e);
    if (!ok) ses_atomic_output_end(r, e);
    return ok;
}

bool ses_atomic_output_commit(ses_atomic_output *r, ses_err *e)
{
    if (!ses_stdout_flush(e)) return false;
    if (fsync(STDOUT_FILENO) || !name_file(r)) return ses_fail_write(r->path, errno, e);
    if (!ses_file_place(r->temp, r->path, r->overwrite, e)) return false;
    ses_free(r->temp);
    r->temp = NULL;
    return true;
}

void ses_atomic_output_end(ses_atomic_output *r, ses_err *e)
{
    if (r->before < 0 && !r->path) return; /* not begun */
    fflush(stdout);
    clearerr(stdout);
    ses_stdout_rename(e, r->path ? r->path : "");
    if (r->before >= 0) {
        dup2(r->before, STDOUT_FILENO);
        close(r->before);
    }
    if (r->temp && !r->unnamed) unlink(r->temp);
    ses_free(r->temp);
    ses_free(r->path);
    *r = (ses_atomic_output){ .before = -1 };
}
