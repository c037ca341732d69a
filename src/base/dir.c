/* Atomic replacement of folders, and locks. */
#define _DEFAULT_SOURCE   /* flock */
#define _XOPEN_SOURCE 700 /* nftw */
#include "dir.h"

#include "alloc.h"
#include "file.h"
#include "str.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static bool failed(const char *path, const char *doing, ses_err *e)
{
    int why = errno;
    ses_fail(e, SES_EIO, "%s: %s", doing, strerror(why));
    return ses_wrap(e, "%s", path);
}

bool ses_dir_sync(const char *path, ses_err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(path, "cannot open", e);
    bool ok = fsync(fd) == 0 || errno == EINVAL; /* some file systems have nothing to sync */
    if (!ok) ses_fail_write(path, errno, e);
    close(fd);
    return ok;
}

/* Callback of ses_dir_each: appends the name and its NUL to a ses_buf. */
static bool collect(void *ctx, const char *name) { return ses_buf_append(ctx, name, strlen(name) + 1); }

/* Removes a folder with these files. Allocates nothing. */
static bool remove_files(const char *path, const ses_buf *names, ses_err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0;
    for (size_t at = 0; ok && at < names->len; at += strlen(names->data + at) + 1)
        ok = unlinkat(fd, names->data + at, 0) == 0 || errno == ENOENT;
    ok = (ok && rmdir(path) == 0) || failed(path, "cannot remove", e);
    if (fd >= 0) close(fd);
    return ok;
}

bool ses_dir_remove(const char *path, ses_err *e)
{
    ses_buf names = { 0 };
    if (!ses_path_exists(path)) return true;
    bool ok =
        ses_dir_each(path, collect, &names, e) && ses_buf_ok(&names, e) && remove_files(path, &names, e);
    ses_buf_free(&names);
    return ok;
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

bool ses_dir_remove_all(const char *path, ses_err *e)
{
    enum { OPEN_FILES = 16 };
    return nftw(path, remove_entry, OPEN_FILES, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT ||
           failed(path, "cannot remove", e);
}

/* Prefix of a folder that is being replaced; the rest is its name, so that ses_dir_recover can restore it. */
static const char *const OLD = ".sesame-old-";

bool ses_dir_replace(const char *from, const char *to, ses_err *e)
{
    ses_buf backup = { 0 }, old = { 0 }; /* old: names in `to`; nothing is allocated after the renames */
    bool ok = false, exists = ses_path_exists(to);
    const char *base = ses_path_basename(to);
    char *above = ses_path_parent(to, e);
    ses_buf_append(&backup, to, (size_t)(base - to));
    ses_buf_appendf(&backup, "%s%s", OLD, base);
    if (!above || !ses_buf_ok(&backup, e) || !ses_dir_sync(from, e)) goto done;
    if (exists &&
        (!ses_dir_remove(backup.data, e) || !ses_dir_each(to, collect, &old, e) || !ses_buf_ok(&old, e)))
        goto done;
    if (exists && rename(to, backup.data)) {
        ses_fail_write(to, errno, e);
        goto done;
    }
    if (rename(from, to)) {
        ses_fail_write(to, errno, e);
        if (exists) rename(backup.data, to);
        goto done;
    }
    ok = ses_dir_sync(above, e);
    if (ok && exists) remove_files(backup.data, &old, NULL); /* what stays, the next replacement removes */
done:
    ses_buf_free(&backup);
    ses_buf_free(&old);
    ses_free(above);
    return ok;
}

bool ses_dir_place(const char *from, const char *to, bool overwrite, ses_err *e)
{
    if (overwrite) return ses_dir_replace(from, to, e);
    char *above = ses_path_parent(to, e); /* nothing is allocated after the rename */
    bool ok = above && ses_dir_sync(from, e);
    if (ok && rename(from, to))
        ok = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR ? ses_fail_exists(to, e)
                                                                       : ses_fail_write(to, errno, e);
    ok = ok && ses_dir_sync(above, e);
    ses_free(above);
    return ok;
}

static bool collect_old(void *ctx, const char *name)
{
    return strncmp(name, OLD, strlen(OLD)) || collect(ctx, name);
}

bool ses_dir_recover(const char *dir, ses_err *e)
{
    ses_buf names = { 0 };
    bool ok = ses_dir_each(dir, collect_old, &names, e) && ses_buf_ok(&names, e);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1) {
        const char *name = names.data + at;
        char *old = ses_path_join(dir, name, e), *to = old ? ses_path_join(dir, name + strlen(OLD), e) : NULL;
        ok = to != NULL;
        if (ok && ses_path_exists(to))
            ok = ses_dir_remove(old, e);
        else if (ok && rename(old, to))
            ok = ses_fail_write(to, errno, e);
        ses_free(old);
        ses_free(to);
    }
    ses_buf_free(&names);
    return ok;
}

static bool move_file(const char *from, const char *to, const char *name, ses_err *e)
{
    char *a = ses_path_join(from, name, e), *b = a ? ses_path_join(to, name, e) : NULL;
    if (b && ses_path_is_dir(b) && !ses_dir_remove(b, e))
        ses_free(b), b = NULL; /* rename cannot replace a folder */
    bool ok = b && (rename(a, b) == 0 || ses_fail_write(b, errno, e));
    ses_free(a);
    ses_free(b);
    return ok;
}

bool ses_dir_move_into(const char *from, const char *to, const char *last, ses_err *e)
{
    ses_buf names = { 0 };
    char *old = ses_path_join(to, last, e);
    bool ok = old && ses_dir_each(from, collect, &names, e) && ses_buf_ok(&names, e) &&
              ses_dir_sync(from, e) && ses_file_remove(old, e) && ses_dir_sync(to, e);
    for (size_t at = 0; ok && at < names.len; at += strlen(names.data + at) + 1)
        if (strcmp(names.data + at, last)) ok = move_file(from, to, names.data + at, e);
    ok = ok && ses_dir_sync(to, e) && move_file(from, to, last, e) && ses_dir_sync(to, e) &&
         ses_dir_remove(from, e);
    ses_buf_free(&names);
    ses_free(old);
    return ok;
}

struct ses_dir_lock {
    int fd;
};

ses_dir_lock *ses_dir_lock_new(const char *dir, ses_err *e)
{
    char pid[32] = "";
    ses_dir_lock *l = ses_alloc(sizeof *l, e);
    char *path = l ? ses_path_join(dir, ".lock", e) : NULL;
    if (!path) goto fail;
    l->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (l->fd < 0) {
        ses_fail_write(path, errno, e);
        goto fail;
    }
    if (flock(l->fd, LOCK_EX | LOCK_NB)) {
        ssize_t n = read(l->fd, pid, sizeof pid - 1);
        for (pid[n > 0 ? n : 0] = 0; n > 0 && (pid[n - 1] < '0' || pid[n - 1] > '9');) pid[--n] = 0;
        ses_fail(e, SES_EIO, "%s: locked by another run (process %s)", dir, *pid ? pid : "unknown");
        goto fail;
    }
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    bool written = ftruncate(l->fd, 0) == 0 && write(l->fd, pid, (size_t)n) == n;
    (void)written; /* the process id is for messages only */
    ses_free(path);
    return l;
fail:
    ses_free(path);
    ses_dir_lock_free(l);
    return NULL;
}

ses_dir_lock *ses_dir_lock_wait(const char *dir, double seconds, ses_err *e)
{
    const double step = 0.05;
    ses_dir_lock *l = NULL;
    for (double waited = 0; !(l = ses_dir_lock_new(dir, waited < seconds ? NULL : e)) && waited < seconds;
         waited += step)
        nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * step) }, NULL);
    return l;
}

void ses_dir_lock_free(ses_dir_lock *l)
{
    if (!l) return;
    if (l->fd > 0) close(l->fd);
    ses_free(l);
}
