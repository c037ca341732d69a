/* A spool of states: blocks of rows, each [n_layers, rows, width], in memory or in a file. */
#define _POSIX_C_SOURCE 200809L
#include "state_spool.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct block {
    size_t first, rows; /* rows first .. first + rows - 1 */
    float *x;           /* [n_layers, rows, width]; NULL: in the file */
    uint64_t offset;    /* in the file */
} block;

struct ses_state_spool {
    size_t n_layers, width, rows, memory, used;
    block *blocks;
    size_t n, cap;
    int fd; /* -1: no file yet */
    uint64_t size;
    char *path; /* a name in the folder of the file */
};

ses_state_spool *ses_state_spool_new(size_t n_layers, size_t width, size_t memory, const char *dir,
                                     ses_err *e)
{
    ses_state_spool *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    *s = (ses_state_spool){ .n_layers = n_layers, .width = width, .memory = memory, .fd = -1 };
    s->path = ses_path_join(dir ? dir : "/tmp", "sesame-states", e);
    if (s->path) return s;
    ses_state_spool_free(s);
    return NULL;
}

void ses_state_spool_free(ses_state_spool *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) ses_free(s->blocks[i].x);
    ses_free(s->blocks);
    ses_free(s->path);
    if (s->fd >= 0) (void)close(s->fd);
    ses_free(s);
}

static bool store_in_file(ses_state_spool *s, block *b, const float *const *x, size_t bytes, ses_err *e)
{
    if (s->fd < 0 && (s->fd = ses_file_unnamed(s->path, e)) < 0) return false;
    b->offset = s->size;
    for (size_t k = 0; k < s->n_layers; k++) {
        if (!ses_fd_write(s->fd, x[k], bytes, "temporary file of hidden states", e)) return false;
        s->size += bytes;
    }
    return true;
}

static bool store_in_memory(ses_state_spool *s, block *b, const float *const *x, size_t bytes, ses_err *e)
{
    b->x = ses_alloc_aligned(bytes * s->n_layers, e);
    for (size_t k = 0; b->x && k < s->n_layers; k++) memcpy(b->x + k * b->rows * s->width, x[k], bytes);
    return b->x != NULL;
}

bool ses_state_spool_add(ses_state_spool *s, const float *const *x, size_t rows, ses_err *e)
{
    size_t bytes, all;
    if (!rows) return true;
    if (!ses_mul_size(rows * sizeof(float), s->width, &bytes) || !ses_mul_size(bytes, s->n_layers, &all))
        return ses_fail(e, SES_ENOMEM, "%zu rows of %zu numbers", rows, s->width);
    if (!ses_array_reserve(&s->blocks, &s->cap, s->n + 1, sizeof *s->blocks, e)) return false;
    block *b = &s->blocks[s->n];
    *b = (block){ .first = s->rows, .rows = rows };
    bool fits = s->fd < 0 && all <= s->memory - s->used;
    if (!(fits ? store_in_memory : store_in_file)(s, b, x, bytes, e)) return false;
    if (fits) s->used += all;
    s->n++, s->rows += rows;
    return true;
}

size_t ses_state_spool_rows(const ses_state_spool *s) { return s->rows; }

static bool read_at(int fd, void *to, size_t n, uint64_t offset, ses_err *e)
{
    for (char *at = to; n;) {
        ssize_t got = pread(fd, at, n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return ses_fail(e, SES_EIO, "temporary file of hidden states: cannot be read: %s",
                            got ? strerror(errno) : "it ends early");
        at += got, n -= (size_t)got, offset += (uint64_t)got;
    }
    return true;
}

/* The block with this row. */
static size_t find_block(const ses_state_spool *s, size_t row)
{
    size_t low = 0, high = s->n;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (s->blocks[mid].first <= row)
            low = mid;
        else
            high = mid;
    }
    return low;
}

bool ses_state_spool_read(ses_state_spool *s, size_t k, size_t first, size_t n, float *to, ses_err *e)
{
    if (k >= s->n_layers || first > s->rows || n > s->rows - first)
        return ses_fail(e, SES_EARG, "rows %zu to %zu of layer %zu: there are %zu rows of %zu layers", first,
                        first + n, k, s->rows, s->n_layers);
    for (size_t i = n ? find_block(s, first) : 0; n; i++) {
        const block *b = &s->blocks[i];
        size_t from = first - b->first, count = b->rows - from < n ? b->rows - from : n,
               at = (k * b->rows + from) * s->width, bytes = count * s->width * sizeof *to;
        if (b->x)
            memcpy(to, b->x + at, bytes);
        else if (!read_at(s->fd, to, bytes, b->offset + at * sizeof *to, e))
            return false;
        to += count * s->width, first += count, n -= count;
    }
    return true;
}
