/* Division of the input of a command into blocks and shards. */
#define _POSIX_C_SOURCE 200809L
#include "shard_plan.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "io/input_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

/* ---- the option ---- */

static bool parse_count(const char **at, int64_t *out)
{
    const char *p = *at;
    for (*out = 0; *p >= '0' && *p <= '9' && *out <= SES_SHARD_MAX; p++) *out = 10 * *out + (*p - '0');
    bool ok = p > *at && *out <= SES_SHARD_MAX;
    *at = p;
    return ok;
}

bool ses_shard_parse(const char *text, ses_shard *out, ses_err *e)
{
    *out = (ses_shard){ 0 };
    if (!text) return true;
    const char *p = text;
    bool ok = parse_count(&p, &out->index) && *p++ == '/' && parse_count(&p, &out->count) && !*p;
    if (ok && out->index < out->count) return true;
    ses_quoted quoted = ses_quoted_of(text, strlen(text));
    if (ok && out->count)
        return ses_fail(e, SES_EUSAGE, "--shard %s: the shards are numbered from 0 to %lld", quoted.s,
                        (long long)out->count - 1);
    return ses_fail(e, SES_EUSAGE, "--shard \"%s\": expected I/N, such as 0/8: I below N, N at most %d",
                    quoted.s, SES_SHARD_MAX);
}

/* ---- standard input ---- */

static bool is_regular_at_start(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0;
}

static bool copy_stdin(int to, ses_err *e)
{
    char *block = ses_alloc(CHUNK, e);
    ssize_t got = block ? 1 : 0;
    bool ok = block != NULL;
    while (ok && got) {
        got = read(STDIN_FILENO, block, CHUNK);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) ok = ses_fail(e, SES_EIO, "standard input: %s", strerror(errno));
        ok = ok && ses_fd_write(to, block, (size_t)got, "the temporary copy of standard input", e);
    }
    ses_free(block);
    return ok;
}

/* The number of blocks must be known before the first is chosen: a pipe becomes a file without a name. */
static bool make_stdin_seekable(ses_err *e)
{
    if (is_regular_at_start(STDIN_FILENO)) return true;
    const char *dir = getenv("TMPDIR");
    char *path = ses_path_join(dir && *dir ? dir : "/tmp", "standard-input", e);
    int fd = path ? ses_file_unnamed(path, e) : -1;
    ses_free(path);
    bool ok = fd >= 0 && copy_stdin(fd, e);
    if (ok && (lseek(fd, 0, SEEK_SET) || dup2(fd, STDIN_FILENO) < 0))
        ok = ses_fail(e, SES_EIO, "standard input: %s", strerror(errno));
    if (fd >= 0) close(fd);
    return ok;
}

/* ---- blocks ---- */

static bool measure(ses_shard_file *f, ses_err *e)
{
    if (!strcmp(f->name, "-") && !make_stdin_seekable(e)) return false;
    if (!ses_input_measure(f->name, &f->bytes, &f->compressed, e))
        return ses_wrap(e, "%s", strcmp(f->name, "-") ? f->name : "standard input");
    f->blocks = f->bytes / SES_SHARD_BLOCK + (f->bytes % SES_SHARD_BLOCK != 0);
    if (!f->blocks) f->blocks = 1;
    return true;
}

bool ses_shard_plan_make(ses_shard_plan *p, ses_shard shard, const char *const *file, size_t n, ses_err *e)
{
    p->shard = shard;
    p->file = ses_alloc_array(n, sizeof *p->file, e);
    if (!p->file) return false;
    for (; p->n_files < n; p->n_files++) {
        ses_shard_file *f = &p->file[p->n_files];
        f->name = file[p->n_files];
        if (shard.count && !measure(f, e)) return false;
        p->blocks += f->blocks;
    }
    uint64_t i = (uint64_t)shard.index, of = shard.count ? (uint64_t)shard.count : 1;
    if (!shard.count) p->blocks = 1;
    p->first = p->blocks / of * i + p->blocks % of * i / of;
    p->last = p->blocks / of * (i + 1) + p->blocks % of * (i + 1) / of;
    return true;
}

void ses_shard_plan_free(ses_shard_plan *p)
{
    ses_free(p->file);
    *p = (ses_shard_plan){ 0 };
}

uint64_t ses_span_block(const ses_span *s, uint64_t offset)
{
    return s->first_block + (offset - s->begin) / SES_SHARD_BLOCK;
}

ses_span *ses_shard_plan_spans(const ses_shard_plan *p, uint64_t from, uint64_t to, size_t *n, ses_err *e)
{
    ses_span *span = ses_alloc_array(p->n_files + 1, sizeof *span, e);
    uint64_t at = 0; /* first block of the file */
    *n = 0;
    for (size_t i = 0; span && i < p->n_files; at += p->file[i++].blocks) {
        const ses_shard_file *f = &p->file[i];
        if (!p->shard.count) {
            span[(*n)++] = (ses_span){ f->name, 0, UINT64_MAX, 0 };
            continue;
        }
        uint64_t first = from > at ? from - at : 0, last = to > at ? to - at : 0;
        if (first >= f->blocks || first >= last) continue;
        uint64_t end = last < f->blocks ? last * SES_SHARD_BLOCK : UINT64_MAX;
        span[(*n)++] = (ses_span){ f->name, first * SES_SHARD_BLOCK, end, at + first };
    }
    return span;
}

/* ---- the hash ---- */

/* Adds bytes [begin, end) of the stored file. */
static bool hash_bytes(const char *name, uint64_t begin, uint64_t end, uint64_t *hash, ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 9 };
    bool in = !strcmp(name, "-"), ok = true;
    int fd = in ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    char *block = fd >= 0 ? ses_alloc(CHUNK, e) : NULL;
    if (fd < 0) ses_fail(e, SES_EIO, "%s: %s", name, strerror(errno));
    for (ssize_t got = 1; ok && block && got && begin < end; begin += (uint64_t)got) {
        size_t want = end - begin < CHUNK ? (size_t)(end - begin) : CHUNK, n = 0;
        do { /* whole chunks: the hash must not depend on how the system divides reads */
            got = pread(fd, block + n, want - n, (off_t)(begin + n));
            if (got < 0 && errno != EINTR) ok = ses_fail(e, SES_EIO, "%s: %s", name, strerror(errno));
            if (got > 0) n += (size_t)got;
        } while (ok && got && n < want);
        got = (ssize_t)n;
        uint64_t pair[2] = { *hash, ses_hash(key, block, n) };
        *hash = ses_hash(key, pair, sizeof pair);
    }
    ok = ok && block;
    ses_free(block);
    if (fd >= 0 && !in) close(fd);
    return ok;
}

/* The last record of a part may end in the block after it. */
bool ses_shard_plan_hash(const ses_shard_plan *p, uint64_t *hash, ses_err *e)
{
    uint64_t at = 0;
    *hash = 0;
    if (p->n_files && !hash_bytes(p->file[0].name, 0, SES_SHARD_BLOCK, hash, e)) return false;
    for (size_t i = 0; i < p->n_files; at += p->file[i++].blocks) {
        const ses_shard_file *f = &p->file[i];
        uint64_t first = p->first > at ? p->first - at : 0, last = p->last > at ? p->last - at : 0;
        if (first >= f->blocks || first >= last) continue;
        uint64_t begin = f->compressed ? 0 : first * SES_SHARD_BLOCK;
        uint64_t end = f->compressed || last >= f->blocks ? UINT64_MAX : (last + 1) * SES_SHARD_BLOCK;
        if (!hash_bytes(f->name, begin, end, hash, e)) return false;
    }
    return true;
}
