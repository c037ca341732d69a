/* Writer of TensorBoard event files: records, CRC-32C and the few protocol buffer messages they need. */
#define _POSIX_C_SOURCE 200809L
#include "event_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/wire/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SESSION_START = 1 };

struct ses_event_file {
    int fd;
    char *path;
    ses_buf record, event, summary, value; /* scratch, kept to reuse their memory */
};

static uint32_t masked(const void *p, size_t n) { return ses_crc32c_mask(ses_crc32c(p, n)); }

/* ---- protocol buffers ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_little(ses_buf *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) ses_buf_put(b, (char)((x >> 8 * i) & 0xFF));
}

static void put_varint(ses_buf *b, uint64_t x)
{
    for (; x >= 0x80; x >>= 7) ses_buf_put(b, (char)((x & 0x7F) | 0x80));
    ses_buf_put(b, (char)x);
}

static void put_key(ses_buf *b, int field, int type) { put_varint(b, (uint64_t)(field << 3 | type)); }

static void put_bytes(ses_buf *b, int field, const char *p, size_t n)
{
    put_key(b, field, BYTES);
    put_varint(b, n);
    ses_buf_append(b, p, n);
}

static void begin_event(ses_buf *b, double wall, int64_t step)
{
    uint64_t bits;
    memcpy(&bits, &wall, sizeof bits);
    b->len = 0;
    put_key(b, 1, FIXED64);
    put_little(b, bits, 8);
    put_key(b, 2, VARINT);
    put_varint(b, (uint64_t)step);
}

/* ---- files ---- */

static bool write_event(ses_event_file *f, ses_err *e)
{
    ses_buf *r = &f->record;
    if (!ses_buf_ok(&f->event, e)) return false;
    r->len = 0;
    put_little(r, f->event.len, 8);
    put_little(r, r->data ? masked(r->data, 8) : 0, 4);
    ses_buf_append(r, f->event.data, f->event.len);
    put_little(r, masked(f->event.data, f->event.len), 4);
    return ses_buf_ok(r, e) && ses_fd_write(f->fd, r->data, r->len, f->path, e);
}

/* Readers sort files by name, which contains the time in microseconds. An existing file is never reused. */
static bool create(ses_event_file *f, const char *dir, double wall, ses_err *e)
{
    for (int i = 0; i < 1000; i++) {
        char name[96];
        int64_t micro = (int64_t)(wall * 1e6) + i;
        snprintf(name, sizeof name, "events.out.tfevents.%010" PRId64 ".%06" PRId64 ".sesame",
                 micro / 1000000, micro % 1000000);
        ses_free(f->path);
        f->path = ses_path_join(dir, name, e);
        if (!f->path) return false;
        f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0) return true;
        if (errno != EEXIST) break;
    }
    return ses_fail_write(f->path, errno, e);
}

ses_event_file *ses_event_file_new(const char *dir, double wall, int64_t step, ses_err *e)
{
    static const char version[] = "brain.Event:2";
    ses_event_file *f = ses_alloc(sizeof *f, e);
    if (!f) return NULL;
    f->fd = -1;
    if (!ses_dir_make(dir, e) || !create(f, dir, wall, e)) goto fail;
    begin_event(&f->event, wall, 0);
    put_bytes(&f->event, 3, version, sizeof version - 1);
    if (!write_event(f, e)) goto fail;
    begin_event(&f->event, wall, step);
    put_bytes(&f->event, 7, (const char[]){ 1 << 3 | VARINT, SESSION_START }, 2);
    if (!write_event(f, e)) goto fail;
    return f;
fail:
    ses_event_file_free(f);
    return NULL;
}

void ses_event_file_free(ses_event_file *f)
{
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    ses_buf_free(&f->record);
    ses_buf_free(&f->event);
    ses_buf_free(&f->summary);
    ses_buf_free(&f->value);
    ses_free(f->path);
    ses_free(f);
}

const char *ses_event_file_path(const ses_event_file *f) { return f->path; }

typedef struct removal {
    const char *dir;
    ses_err *e;
    bool failed;
} removal;

static bool remove_if_ours(void *ctx, const char *name)
{
    static const char begin[] = "events.out.tfevents.", end[] = ".sesame";
    removal *r = ctx;
    size_t n = strlen(name);
    if (strncmp(name, begin, sizeof begin - 1) || n < sizeof begin + sizeof end ||
        strcmp(name + n - (sizeof end - 1), end))
        return true;
    char *path = ses_path_join(r->dir, name, r->e);
    r->failed = !path || !ses_file_remove(path, r->e);
    ses_free(path);
    return !r->failed;
}

bool ses_event_files_remove(const char *dir, ses_err *e)
{
    removal r = { .dir = dir, .e = e };
    return !ses_path_exists(dir) || (ses_dir_each(dir, remove_if_ours, &r, e) && !r.failed);
}

bool ses_event_file_put(ses_event_file *f, double wall, int64_t step, const ses_event_value *v, size_t n,
                        ses_err *e)
{
    f->summary.len = 0;
    for (size_t i = 0; i < n; i++) {
        float x = (float)v[i].value;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        f->value.len = 0;
        put_bytes(&f->value, 1, v[i].tag, strlen(v[i].tag));
        put_key(&f->value, 2, FIXED32);
        put_little(&f->value, bits, 4);
        if (!ses_buf_ok(&f->value, e)) return false;
        put_bytes(&f->summary, 1, f->value.data, f->value.len);
    }
    begin_event(&f->event, wall, step);
    if (!ses_buf_ok(&f->summary, e)) return false;
    put_bytes(&f->event, 5, f->summary.data, f->summary.len);
    return write_event(f, e);
}
