/* ses_dir_move_into: the process is killed before each system call in turn, or the call fails. A reader that
 * opens `last` first must find files of one kind. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static long calls, at; /* at: the call that fails; 0: none */
static bool deadly;

static bool fails(void)
{
    if (++calls != at) return false;
    if (deadly) kill(getpid(), SIGKILL);
    errno = EIO;
    return true;
}

int __real_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *st);
ssize_t __real_read(int fd, void *p, size_t n);
void *__real_mmap(void *where, size_t n, int prot, int flags, int fd, off_t offset);
ssize_t __real_write(int fd, const void *p, size_t n);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_link(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __real_fchmod(int fd, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fstat(int fd, struct stat *st);
ssize_t __wrap_read(int fd, void *p, size_t n);
void *__wrap_mmap(void *where, size_t n, int prot, int flags, int fd, off_t offset);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_link(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_fchmod(int fd, mode_t mode);

int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails() ? -1 : __real_open(path, flags, mode);
}
int __wrap_fsync(int fd) { return fails() ? -1 : __real_fsync(fd); }
int __wrap_rename(const char *from, const char *to) { return fails() ? -1 : __real_rename(from, to); }
int __wrap_fstat(int fd, struct stat *st) { return __real_fstat(fd, st); }
ssize_t __wrap_read(int fd, void *p, size_t n) { return __real_read(fd, p, n); }
void *__wrap_mmap(void *where, size_t n, int prot, int flags, int fd, off_t offset)
{
    return __real_mmap(where, n, prot, flags, fd, offset);
}
ssize_t __wrap_write(int fd, const void *p, size_t n) { return __real_write(fd, p, n); }
int __wrap_close(int fd) { return __real_close(fd); }
int __wrap_link(const char *from, const char *to) { return __real_link(from, to); }
int __wrap_fchmod(int fd, mode_t mode) { return __real_fchmod(fd, mode); }

static char from[64], to[64];
static const char *const file[] = { "model", "tokenizer", "card", "last" };

static void put(const char *dir, const char *name, const char *text)
{
    char *path = ses_path_join(dir, name, NULL);
    CHECK(ses_file_write(path, text, strlen(text), true, NULL));
    ses_free(path);
}

static bool has(const char *dir, const char *name, const char *text)
{
    size_t n;
    char *path = ses_path_join(dir, name, NULL), *is = ses_file_read(path, 100, &n, NULL);
    bool same = is && !strcmp(is, text);
    ses_free(is);
    ses_free(path);
    return same;
}

static bool all_are(const char *text)
{
    bool all = true;
    for (size_t i = 0; i < SES_LEN(file); i++) all &= has(to, file[i], text);
    return all;
}

static void begin(void)
{
    at = 0;
    ses_dir_remove(from, NULL);
    ses_dir_remove(to, NULL);
    CHECK(ses_dir_make(from, NULL) && ses_dir_make(to, NULL));
    for (size_t i = 0; i < SES_LEN(file); i++) put(from, file[i], "new"), put(to, file[i], "old");
}

/* Whether the move completed although call n fails. */
static bool attempt(long n, bool kills)
{
    int status = 0;
    begin();
    pid_t child = fork();
    if (!child) {
        ses_err e = { 0 };
        calls = 0, at = n, deadly = kills;
        bool ok = ses_dir_move_into(from, to, "last", &e);
        _exit(ok ? 0 : e.code == SES_EIO ? 1 : 2);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    CHECK(WIFEXITED(status) ? WEXITSTATUS(status) < 2 : WTERMSIG(status) == SIGKILL);
    CHECK_MSG(!has(to, "last", "old") || all_are("old"), "call %ld", n);
    CHECK_MSG(!has(to, "last", "new") || all_are("new"), "call %ld", n);
    return ended;
}

int main(void)
{
    char dir[] = "/tmp/sesame-dir-XXXXXX";
    if (!mkdtemp(dir)) return 1;
    snprintf(from, sizeof from, "%s/from", dir);
    snprintf(to, sizeof to, "%s/to", dir);
    for (int kills = 0; kills < 2; kills++) {
        long n = 1;
        while (n < 100 && !attempt(n, kills)) n++;
        CHECK_MSG(n > 6 && n < 100, "%ld calls", n);
        CHECK(all_are("new") && !ses_path_exists(from));
    }
    ses_dir_remove(to, NULL);
    rmdir(dir);
    return check_report();
}
