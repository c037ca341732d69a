#define _DEFAULT_SOURCE /* flock */
#include "dir.h"

#include "alloc.h"
#include "file.h"
#include "str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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
    if (!ok) failed(path, "cannot be made durable", e);
    close(fd);
    return ok;
}

typedef struct removal {
    const char *dir;
    ses_buf list; /* names, each ended by NUL */
} removal;

static bool note(void *ctx, const char *name)
{
    removal *r = ctx;
    return ses_buf_append(&r->list, name, strlen(name) + 1);
}

bool ses_dir_remove(const char *path, ses_err *e)
{
    removal r = { .dir = path };
    bool ok = true;
    if (!ses_path_exists(path)) return true;
    ok = ses_dir_each(path, note, &r, e) && ses_buf_ok(&r.list, e);
    for (size_t at = 0; ok && at < r.list.len; at += strlen(r.list.data + at) + 1) {
        char *file = ses_path_join(path, r.list.data + at, e);
        ok = file && ses_file_remove(file, e);
        ses_free(file);
    }
    ses_buf_free(&r.list);
    if (ok && rmdir(path)) ok = failed(path, "cannot be removed", e);
    return ok;
}

static char *parent(const char *path, ses_err *e)
{
    const char *base = ses_path_basename(path);
    return base == path ? ses_strdup(".", e) : ses_strndup(path, (size_t)(base - path), e);
}

/* What a folder is called while another takes its name: its own, so that it can be given back. */
static const char *const OLD = ".sesame-old-";

bool ses_dir_replace(const char *from, const char *to, ses_err *e)
{
    ses_buf aside = { 0 };
    bool ok = false, there = ses_path_exists(to);
    const char *base = ses_path_basename(to);
    char *above = parent(to, e);
    ses_buf_append(&aside, to, (size_t)(base - to));
    ses_buf_appendf(&aside, "%s%s", OLD, base);
    if (!above || !ses_buf_ok(&aside, e) || !ses_dir_sync(from, e)) goto done;
    if (there && !ses_dir_remove(aside.data, e)) goto done;
    if (there && rename(to, aside.data)) {
        failed(to, "cannot be renamed", e);
        goto done;
    }
    if (rename(from, to)) {
        failed(to, "cannot be given its name", e);
        if (there) rename(aside.data, to);
        goto done;
    }
    ok = ses_dir_sync(above, e) && (!there || ses_dir_remove(aside.data, e));
done:
    ses_buf_free(&aside);
    ses_free(above);
    return ok;
}

static bool note_old(void *ctx, const char *name)
{
    return strncmp(name, OLD, strlen(OLD)) || note(ctx, name);
}

bool ses_dir_recover(const char *dir, ses_err *e)
{
    removal r = { .dir = dir };
    bool ok = ses_dir_each(dir, note_old, &r, e) && ses_buf_ok(&r.list, e);
    for (size_t at = 0; ok && at < r.list.len; at += strlen(r.list.data + at) + 1) {
        const char *name = r.list.data + at;
        char *old = ses_path_join(dir, name, e), *to = old ? ses_path_join(dir, name + strlen(OLD), e) : NULL;
        ok = to != NULL;
        if (ok && ses_path_exists(to))
            ok = ses_dir_remove(old, e);
        else if (ok && rename(old, to))
            ok = failed(old, "cannot be renamed", e);
        ses_free(old);
        ses_free(to);
    }
    ses_buf_free(&r.list);
    return ok;
}

static bool move_file(const char *from, const char *to, const char *name, ses_err *e)
{
    char *a = ses_path_join(from, name, e), *b = a ? ses_path_join(to, name, e) : NULL;
    if (b && ses_path_is_dir(b) && !ses_dir_remove(b, e)) ses_free(b), b = NULL; /* a folder replaces none */
    bool ok = b && (rename(a, b) == 0 || failed(b, "cannot be given its name", e));
    ses_free(a);
    ses_free(b);
    return ok;
}

bool ses_dir_move_into(const char *from, const char *to, const char *last, ses_err *e)
{
    removal r = { .dir = from };
    char *old = ses_path_join(to, last, e);
    bool ok = old && ses_dir_each(from, note, &r, e) && ses_buf_ok(&r.list, e) && ses_dir_sync(from, e) &&
              ses_file_remove(old, e) && ses_dir_sync(to, e);
    for (size_t at = 0; ok && at < r.list.len; at += strlen(r.list.data + at) + 1)
        if (strcmp(r.list.data + at, last)) ok = move_file(from, to, r.list.data + at, e);
    ok = ok && ses_dir_sync(to, e) && move_file(from, to, last, e) && ses_dir_sync(to, e) &&
         ses_dir_remove(from, e);
    ses_buf_free(&r.list);
    ses_free(old);
    return ok;
}

struct ses_dir_lock {
    int fd;
};

ses_dir_lock *ses_dir_lock_new(const char *dir, ses_err *e)
{
    char who[32] = "";
    ses_dir_lock *l = ses_alloc(sizeof *l, e);
    char *path = l ? ses_path_join(dir, ".lock", e) : NULL;
    if (!path) goto fail;
    l->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (l->fd < 0) {
        failed(path, "cannot create", e);
        goto fail;
    }
    if (flock(l->fd, LOCK_EX | LOCK_NB)) {
        ssize_t n = read(l->fd, who, sizeof who - 1);
        for (who[n > 0 ? n : 0] = 0; n > 0 && (who[n - 1] < '0' || who[n - 1] > '9');) who[--n] = 0;
        ses_fail(e, SES_EIO, "%s: another run (process %s) is writing there", dir, *who ? who : "unknown");
        goto fail;
    }
    int n = snprintf(who, sizeof who, "%ld\n", (long)getpid());
    bool told = ftruncate(l->fd, 0) == 0 && write(l->fd, who, (size_t)n) == n;
    (void)told; /* the name is a courtesy; the lock holds without it */
    ses_free(path);
    return l;
fail:
    ses_free(path);
    ses_dir_lock_free(l);
    return NULL;
}

void ses_dir_lock_free(ses_dir_lock *l)
{
    if (!l) return;
    if (l->fd > 0) close(l->fd);
    ses_free(l);
}
