/* Failing system calls: each call of the file layer fails in turn, with several error codes. A file being
 * replaced must be the complete old or the complete new one, and no temporary may remain. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "sesame/json.h"
#include "sesame/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum { OPEN, FSTAT, READ, MMAP, WRITE, FSYNC, CLOSE, LINK, RENAME, FCHMOD, CALLS } call;
static const char *const call_name[CALLS] = { "open",  "fstat", "read", "mmap",   "write",
                                              "fsync", "close", "link", "rename", "fchmod" };

enum { NOTHING = -1 };

static struct {
    long calls, fail_at; /* 0: none */
    int why;             /* errno; 0: a short read or write; NOTHING: 0 bytes written */
    int times;           /* consecutive failures */
    call first;          /* calls that failed */
    bool hit;
    long closed_twice;
} io;

static bool fails(call which)
{
    io.calls++;
    if (!io.fail_at || io.calls < io.fail_at || io.calls >= io.fail_at + io.times) return false;
    bool transfer = which == READ || which == WRITE;
    if (!io.why && !transfer) return false; /* only calls that can be short or interrupted */
    if (io.why == NOTHING && which != WRITE) return false;
    if (io.why == EINTR && !transfer && which != OPEN && which != FSYNC && which != CLOSE) return false;
    if (!io.hit) io.first = which;
    io.hit = true;
    errno = io.why;
    return true;
}

int __real_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *st);
ssize_t __real_read(int fd, void *p, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
ssize_t __real_write(int fd, const void *p, size_t n);
int __real_close(int fd);
int __real_link(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __real_fchmod(int fd, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fstat(int fd, struct stat *st);
ssize_t __wrap_read(int fd, void *p, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
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
    return fails(OPEN) ? -1 : __real_open(path, flags, mode);
}
int __wrap_fstat(int fd, struct stat *st) { return fails(FSTAT) ? -1 : __real_fstat(fd, st); }
ssize_t __wrap_read(int fd, void *p, size_t n)
{
    if (!fails(READ)) return __real_read(fd, p, n);
    return io.why ? -1 : __real_read(fd, p, (n + 1) / 2);
}
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (fd < 0) return __real_mmap(at, n, prot, flags, fd, offset); /* memory, not a file */
    return fails(MMAP) ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
}
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (fd <= 2 || !fails(WRITE)) return __real_write(fd, p, n);
    if (io.why == NOTHING) return 0;
    return io.why ? -1 : __real_write(fd, p, (n + 1) / 2);
}
int __wrap_fsync(int fd) /* a no-op, which saves minutes; test_file uses the real one */
{
    (void)fd;
    return fails(FSYNC) ? -1 : 0;
}
int __wrap_close(int fd)
{
    bool bad = fails(CLOSE);
    int why = errno, done = __real_close(fd);
    if (done != 0 && errno == EBADF) io.closed_twice++;
    if (!bad) return done;
    errno = why;
    return -1;
}
int __wrap_link(const char *from, const char *to) { return fails(LINK) ? -1 : __real_link(from, to); }
int __wrap_rename(const char *from, const char *to) { return fails(RENAME) ? -1 : __real_rename(from, to); }
int __wrap_fchmod(int fd, mode_t mode) { return fails(FCHMOD) ? -1 : __real_fchmod(fd, mode); }

static char dir[64], file[96], model[96];

static bool note_temp(void *ctx, const char *name)
{
    *(int *)ctx += strncmp(name, ".sesame-", 8) == 0;
    return true;
}

static int temps(const char *path)
{
    int n = 0;
    return ses_dir_each(path, note_temp, &n, NULL) ? n : -1;
}

/* ---- scenarios: prepare, run with failures, check the files ---- */

enum { SIZE = 200000 };

static bool fill(const char *path, char c)
{
    char *data = malloc(SIZE);
    memset(data, c, SIZE);
    bool ok = ses_file_write(path, data, SIZE, true, NULL);
    free(data);
    return ok;
}

/* 'o' or 'n': the complete old or new file; 0: absent; '?': anything else */
static int kind(const char *path)
{
    size_t n;
    char *s = ses_file_read(path, 2 * SIZE, &n, NULL);
    int c = s ? s[0] : 0;
    for (size_t i = 0; s && i < n; i++)
        if (n != SIZE || s[i] != c) c = '?';
    ses_free(s);
    return c;
}

static bool replace_file(ses_err *e)
{
    char *data = malloc(SIZE);
    memset(data, 'n', SIZE);
    ses_file_writer *w = ses_file_writer_open(file, true, e);
    bool ok = w && ses_file_writer_put(w, data, 10, e) && ses_file_writer_put(w, data, SIZE - 10, e) &&
              ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    free(data);
    return ok;
}

static bool create_file(ses_err *e)
{
    char *data = malloc(SIZE);
    memset(data, 'n', SIZE);
    bool ok = ses_file_write(file, data, SIZE, false, e);
    free(data);
    return ok;
}

static bool read_text(ses_err *e)
{
    size_t n = 0;
    char *s = ses_file_read(file, 2 * SIZE, &n, e);
    CHECK(!s || (n == SIZE && s[SIZE - 1] == 'o'));
    ses_free(s);
    return s != NULL;
}

static bool save_model(float value, size_t shard, ses_err *e)
{
    float data[64];
    for (int i = 0; i < 64; i++) data[i] = value;
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    bool ok = w != NULL;
    for (int i = 0; i < 3 && ok; i++)
        ok = ses_safetensors_writer_add(w, (const char *const[]){ "a", "b", "c" }[i], SES_F32, 1,
                                        &(int64_t){ 64 }, data, e);
    ok = ok && ses_checkpoint_save(w, model, shard, true, e);
    ses_safetensors_writer_free(w);
    return ok;
}

/* 'o' or 'n': all tensors are of one save; 0: refused. */
static int model_kind(void)
{
    ses_safetensors *s = ses_checkpoint_open(model, NULL);
    int c = 0;
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        float x[64] = { 0 };
        int k = ses_tensor_entry_to_f32(ses_safetensors_at(s, i), x, NULL) && x[0] == x[63]
                    ? (x[0] == 1 ? 'o' : 'n')
                    : '?';
        c = c && c != k ? '?' : k;
    }
    if (s && ses_safetensors_count(s) != 3) c = '?';
    ses_safetensors_free(s);
    return c;
}

static bool save_single(ses_err *e) { return save_model(2, 0, e); }
static bool save_shards(ses_err *e) { return save_model(2, 256, e); }

static bool open_model(ses_err *e)
{
    ses_safetensors *s = ses_checkpoint_open(model, e);
    ses_safetensors_free(s);
    return s != NULL;
}

typedef struct scenario {
    const char *name;
    bool (*run)(ses_err *e);
    int file;         /* the file before: 'o', or 0 for none */
    int64_t shard;    /* the model before: -1 none, 0 single, else bytes of a shard */
    bool may_be_gone; /* between two renames the model may be missing, but never mixed */
} scenario;

static const scenario scenarios[] = {
    { "replace a file", replace_file, 'o', -1, false },
    { "create a file", create_file, 0, -1, false },
    { "read a file", read_text, 'o', -1, false },
    { "single over single", save_single, 0, 0, false },
    { "single over shards", save_single, 0, 256, false },
    { "shards over single", save_shards, 0, 0, false },
    { "shards over the same shards", save_shards, 0, 256, true },
    { "shards over other shards", save_shards, 0, 512, false },
    { "open a model", open_model, 0, 0, false },
    { "open shards", open_model, 0, 256, false },
};

static const struct {
    int why, times;
    bool recovers; /* must succeed anyway */
} faults[] = { { EIO, 1, false },  { ENOSPC, 1, false }, { EIO, 1000000, false }, { EINTR, 1, true },
               { EINTR, 3, true }, { 0, 1, true },       { NOTHING, 1, false } };

static bool prepare(const scenario *s)
{
    bool ok = s->file ? fill(file, (char)s->file) : ses_file_remove(file, NULL);
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json" };
    for (size_t i = 0; i < SES_LEN(names) && s->shard >= 0; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%s", model, names[i]);
        ok = ok && ses_file_remove(path, NULL);
    }
    return ok && (s->shard < 0 || save_model(1, (size_t)s->shard, NULL));
}

/* One run with one fault; false: the run has fewer calls. */
static bool run_one(const scenario *s, size_t fault, long at, bool *clean)
{
    ses_err e = { 0 };
    *clean = CHECK(prepare(s));
    io.calls = 0;
    io.hit = false;
    io.fail_at = at;
    io.why = faults[fault].why;
    io.times = faults[fault].times;
    bool ok = s->run(&e);
    io.fail_at = 0;
    const char *what = call_name[io.first];
    if (!io.hit) return *clean = CHECK_MSG(ok, "%s: %s", s->name, e.msg) && *clean, io.calls >= at;
    int f = kind(file), m = s->shard < 0 ? 0 : model_kind();
    if (faults[fault].recovers)
        *clean = CHECK_MSG(ok, "%s: %s %ld, fault %zu: %s", s->name, what, at, fault, e.msg) && *clean;
    if (!ok)
        *clean = CHECK_MSG(e.code == SES_EIO && strchr(e.msg, ':'), "%s: %s %ld: \"%s\"", s->name, what, at,
                           e.msg) &&
                 *clean;
    *clean = CHECK_MSG(f == s->file || f == 'n', "%s: %s %ld, fault %zu: file is '%c'", s->name, what, at,
                       fault, f) &&
             *clean;
    if (s->shard >= 0)
        *clean = CHECK_MSG(m == 'o' || m == 'n' || (!m && s->may_be_gone && !ok),
                           "%s: %s %ld, fault %zu: model is '%c'", s->name, what, at, fault, m ? m : '0') &&
                 *clean;
    *clean = CHECK_MSG(temps(dir) == 0 && (s->shard < 0 || temps(model) == 0),
                       "%s: %s %ld: a temporary stays", s->name, what, at) &&
             *clean;
    return true;
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-io-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(model, sizeof model, "%s/model", dir);
    long points = 0;
    for (size_t i = 0; i < SES_LEN(scenarios); i++)
        for (size_t fault = 0; fault < SES_LEN(faults); fault++) {
            long at = 1;
            bool clean = true;
            while (run_one(&scenarios[i], fault, at, &clean) && clean && at < 1000) at++;
            CHECK_MSG(at > 1 && at < 1000, "%s: %ld", scenarios[i].name, at);
            points += at - 1;
        }
    printf("%ld faults\n", points);
    CHECK(!io.closed_twice);

    char path[160];
    static const char *const left[] = { "file", "model/model.safetensors",
                                        "model/model.safetensors.index.json" };
    for (size_t i = 0; i < SES_LEN(left); i++)
        snprintf(path, sizeof path, "%s/%s", dir, left[i]), unlink(path);
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof path, "%s/model-%05d-of-00003.safetensors", model, i);
        unlink(path);
    }
    CHECK_MSG(rmdir(model) == 0 && rmdir(dir) == 0, "%s is not empty", dir);
    return check_report();
}
