/* Input streams with decompression by zlib, liblzma and libzstd. */
#define _POSIX_C_SOURCE 200809L
#include "input_stream.h"

#include "base/alloc.h"
#include "text_decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef SES_ZLIB
#include <zlib.h>
#endif
#ifdef SES_LZMA
#include <lzma.h>
#endif
#ifdef SES_ZSTD
#include <zstd.h>
#endif

enum { INPUT = 1 << 18 };

/* Input and output of a decompressor. */
typedef struct window {
    const unsigned char *in;
    size_t n_in; /* bytes not consumed */
    unsigned char *out;
    size_t n_out; /* bytes not filled */
} window;

typedef enum { CONTINUES, STREAM_END, INVALID } state;

/* A compression format. step consumes w->in and fills w->out. A file may be several concatenated streams, as
 * `cat a.gz b.gz` creates. */
typedef struct decompressor {
    const char *name, *command, *magic;
    size_t n_magic;
    void *(*open)(void); /* NULL: no memory */
    state (*step)(void *m, window *w, bool last, const char **why);
    bool (*reset)(void *m); /* prepares for the next stream */
    void (*close)(void *m);
} decompressor;

struct ses_input_stream {
    int fd;
    const decompressor *format; /* NULL: not compressed */
    void *decoder;
    unsigned char *buf; /* [INPUT] */
    window w;
    uint64_t taken;
    uint64_t given;    /* decompressed bytes */
    uint64_t size;     /* when it was opened; 0: not a regular file */
    bool end, between; /* end of the file; between two streams */
    ses_text_decoder to_utf8;
    ses_buf text; /* converted, if the encoding is not UTF-8 */
    size_t text_at;
    bool text_ended;
    ses_err broken; /* reported after the text before it */
};

/* ---- gzip ---- */

#ifdef SES_ZLIB
static void *gz_open(void)
{
    z_stream *z = ses_alloc(sizeof *z, NULL);
    if (z && inflateInit2(z, 15 + 16) == Z_OK) return z; /* 16: gzip header */
    ses_free(z);
    return NULL;
}

static state gz_step(void *m, window *w, bool last, const char **why)
{
    z_stream *z = m;
    (void)last;
    z->next_in = (Bytef *)w->in;
    z->avail_in = (uInt)w->n_in;
    z->next_out = w->out;
    z->avail_out = (uInt)w->n_out;
    int got = inflate(z, Z_NO_FLUSH);
    w->in = z->next_in, w->n_in = z->avail_in;
    w->out = z->next_out, w->n_out = z->avail_out;
    if (got == Z_STREAM_END) return STREAM_END;
    if (got == Z_OK || got == Z_BUF_ERROR) return CONTINUES;
    *why = z->msg ? z->msg : "invalid data";
    return INVALID;
}

static bool gz_reset(void *m) { return inflateReset(m) == Z_OK; }

static void gz_close(void *m)
{
    inflateEnd(m);
    ses_free(m);
}
#define GZ gz_open, gz_step, gz_reset, gz_close
#else
#define GZ NULL, NULL, NULL, NULL
#endif

/* ---- xz ---- */

#ifdef SES_LZMA
enum { XZ_MEMORY = 1 << 30 }; /* xz -9 needs 65 MB */

static bool xz_start(lzma_stream *z) { return lzma_stream_decoder(z, XZ_MEMORY, 0) == LZMA_OK; }

static void *xz_open(void)
{
    static const lzma_stream fresh = LZMA_STREAM_INIT;
    lzma_stream *z = ses_alloc(sizeof *z, NULL);
    if (!z) return NULL;
    *z = fresh;
    if (xz_start(z)) return z;
    ses_free(z);
    return NULL;
}

static state xz_step(void *m, window *w, bool last, const char **why)
{
    lzma_stream *z = m;
    z->next_in = w->in;
    z->avail_in = w->n_in;
    z->next_out = w->out;
    z->avail_out = w->n_out;
    lzma_ret got = lzma_code(z, last ? LZMA_FINISH : LZMA_RUN);
    w->in = z->next_in, w->n_in = z->avail_in;
    w->out = z->next_out, w->n_out = z->avail_out;
    if (got == LZMA_STREAM_END) return STREAM_END;
    if (got == LZMA_OK || got == LZMA_BUF_ERROR) return CONTINUES;
    *why = got == LZMA_MEMLIMIT_ERROR ? "needs more than 1 GiB to decompress" : "invalid data";
    return INVALID;
}

static bool xz_reset(void *m) { return xz_start(m); }

static void xz_close(void *m)
{
    lzma_end(m);
    ses_free(m);
}
#define XZ xz_open, xz_step, xz_reset, xz_close
#else
#define XZ NULL, NULL, NULL, NULL
#endif

/* ---- Zstandard ---- */

#ifdef SES_ZSTD
static void *zst_open(void) { return ZSTD_createDStream(); }

static state zst_step(void *m, window *w, bool last, const char **why)
{
    ZSTD_inBuffer in = { w->in, w->n_in, 0 };
    ZSTD_outBuffer out = { w->out, w->n_out, 0 };
    (void)last;
    size_t got = ZSTD_decompressStream(m, &out, &in);
    w->in += in.pos, w->n_in -= in.pos;
    w->out += out.pos, w->n_out -= out.pos;
    if (ZSTD_isError(got)) return *why = ZSTD_getErrorName(got), INVALID;
    return got == 0 ? STREAM_END : CONTINUES;
}

static bool zst_reset(void *m) { return !ZSTD_isError(ZSTD_initDStream(m)); }
static void zst_close(void *m) { ZSTD_freeDStream(m); }
#define ZST zst_open, zst_step, zst_reset, zst_close
#else
#define ZST NULL, NULL, NULL, NULL
#endif

static const decompressor formats[] = {
    { "gzip", "gzip -dc", "\x1f\x8b", 2, GZ },
    { "xz", "xz -dc", "\xfd\x37zXZ", 5, XZ },
    { "zstd", "zstd -dc", "\x28\xb5\x2f\xfd", 4, ZST },
};

bool ses_input_stream_supports(const char *name)
{
    for (size_t i = 0; i < SES_LEN(formats); i++)
        if (!strcmp(formats[i].name, name)) return formats[i].open != NULL;
    return false;
}

bool ses_input_stream_has_suffix(const char *path, const char *end)
{
    static const char *const packed[] = { ".gz", ".xz", ".zst" };
    size_t n = strlen(path), k = strlen(end);
    for (size_t i = 0; i < SES_LEN(packed); i++) {
        size_t m = strlen(packed[i]);
        if (n > m && !memcmp(path + n - m, packed[i], m)) {
            n -= m;
            break;
        }
    }
    return n >= k && !memcmp(path + n - k, end, k);
}

/* ---- reading ---- */

/* The size of a regular file; 0: another kind of input. */
static uint64_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static bool fill(ses_input_stream *p, ses_err *e)
{
    ssize_t got;
    if (p->w.n_in) memmove(p->buf, p->w.in, p->w.n_in);
    do got = read(p->fd, p->buf + p->w.n_in, INPUT - p->w.n_in);
    while (got < 0 && errno == EINTR);
    if (got < 0) return ses_fail(e, SES_EIO, "%s", strerror(errno));
    if (got == 0 && p->size && size_of(p->fd) < p->size) /* other files may end before their size: /sys */
        return ses_fail(e, SES_EIO, "only %llu of %llu bytes: the file was truncated while it was read",
                        (unsigned long long)p->taken, (unsigned long long)p->size);
    p->end = got == 0;
    p->taken += (uint64_t)got;
    p->w.in = p->buf;
    p->w.n_in += (size_t)got;
    return true;
}

/* Whether more bytes could still complete the magic number of a format. Avoids blocking on a short line of
 * terminal input. */
static bool may_be_compressed(const window *w)
{
    for (size_t i = 0; i < SES_LEN(formats); i++)
        if (w->n_in < formats[i].n_magic && !memcmp(w->in, formats[i].magic, w->n_in)) return true;
    return false;
}

static bool detect_format(ses_input_stream *p, ses_err *e)
{
    do
        if (!fill(p, e)) return false;
    while (!p->end && may_be_compressed(&p->w));
    for (size_t i = 0; i < SES_LEN(formats); i++) {
        const decompressor *u = &formats[i];
        if (p->w.n_in < u->n_magic || memcmp(p->w.in, u->magic, u->n_magic)) continue;
        if (!u->open)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "compressed with %s, which this build does not support: decompress it first (%s)",
                            u->name, u->command);
        p->format = u;
        p->decoder = u->open();
        return p->decoder || ses_fail(e, SES_ENOMEM, "out of memory for %s decompression", u->name);
    }
    return true;
}

ses_input_stream *ses_input_stream_open(const char *path, ses_err *e)
{
    ses_input_stream *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    bool in = !strcmp(path, "-");
    do p->fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    while (p->fd < 0 && errno == EINTR);
    if (p->fd < 0)
        ses_fail(e, SES_EIO, "%s", strerror(errno));
    else if (p->size = size_of(p->fd), (p->buf = ses_alloc(INPUT, e)) && detect_format(p, e))
        return p;
    ses_input_stream_free(p);
    return NULL;
}

void ses_input_stream_free(ses_input_stream *p)
{
    if (!p) return;
    if (p->decoder) p->format->close(p->decoder);
    if (p->fd > STDIN_FILENO) close(p->fd);
    ses_buf_free(&p->text);
    ses_free(p->buf);
    ses_free(p);
}

/* Whether the input, not compressed, has the byte order mark of UTF-16, with which UTF-8 never begins. */
static bool begins_as_utf16(ses_input_stream *p)
{
    while (!p->format && !p->end && p->w.n_in == 1 && p->w.in[0] >= 0xFE)
        if (!fill(p, &p->broken)) return false;
    return !p->format && p->w.n_in >= 2 && (p->w.in[0] ^ p->w.in[1]) == 1 && p->w.in[0] >= 0xFE;
}

ses_input_stream *ses_input_stream_open_text(const char *path, ses_text_encoding encoding, ses_err *e)
{
    ses_input_stream *p = ses_input_stream_open(path, e);
    if (p) p->to_utf8.encoding = encoding;
    if (p && encoding == SES_ENCODING_UTF8 && begins_as_utf16(p)) p->to_utf8.encoding = SES_ENCODING_UTF16;
    return p;
}

static bool decompress(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e)
{
    p->w.out = buf;
    p->w.n_out = n;
    while (p->w.n_out == n) {
        const char *why = "";
        if (!p->w.n_in && !p->end && !fill(p, e)) return false;
        if (!p->w.n_in && p->end && p->between) break;
        if (p->between && !p->format->reset(p->decoder))
            return ses_fail(e, SES_ENOMEM, "out of memory for %s decompression", p->format->name);
        p->between = false;
        size_t before = p->w.n_in;
        state s = p->format->step(p->decoder, &p->w, p->end, &why);
        if (s == INVALID)
            return ses_fail(e, SES_EFORMAT, "%s near byte %llu of the compressed file: %s", p->format->name,
                            (unsigned long long)(p->taken - p->w.n_in), why);
        if (s == STREAM_END) p->between = true;
        if (s == CONTINUES && p->end && p->w.n_in == before && p->w.n_out == n)
            return ses_fail(e, SES_EFORMAT, "%s: truncated after %llu bytes of the compressed file",
                            p->format->name, (unsigned long long)p->taken);
        if (s == CONTINUES && !p->end && p->w.n_in == before && !fill(p, e)) return false;
    }
    *got = n - p->w.n_out;
    return true;
}

static bool copy(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e)
{
    if (!p->w.n_in && !p->end && !fill(p, e)) return false;
    *got = n < p->w.n_in ? n : p->w.n_in;
    if (*got) memcpy(buf, p->w.in, *got);
    p->w.in += *got;
    p->w.n_in -= *got;
    return true;
}

static bool fail_broken(const ses_input_stream *p, ses_err *e)
{
    if (e) *e = p->broken;
    return false;
}

/* Converts more input, unless there is converted text. */
static bool convert(ses_input_stream *p, ses_err *e)
{
    enum { PIECE = 1 << 16 };
    if (p->text_at == p->text.len && p->broken.code) return fail_broken(p, e);
    while (p->text_at == p->text.len && !p->text_ended) {
        unsigned char *piece = ses_alloc(PIECE, e);
        size_t got = 0;
        p->text.len = p->text_at = 0;
        bool ok = piece && (p->format ? decompress : copy)(p, piece, PIECE, &got, e);
        if (ok && !ses_text_decode(&p->to_utf8, piece, got, !got, &p->text, &p->broken))
            ok = p->text.len > 0 || fail_broken(p, e);
        p->text_ended = got == 0;
        ses_free(piece);
        if (!ok) return false;
    }
    return true;
}

static bool read_converted(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e)
{
    if (!convert(p, e)) return false;
    size_t left = p->text.len - p->text_at;
    *got = n < left ? n : left;
    if (*got) memcpy(buf, p->text.data + p->text_at, *got);
    p->text_at += *got;
    return true;
}

bool ses_input_stream_read(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e)
{
    bool (*read)(ses_input_stream *, void *, size_t, size_t *, ses_err *) = p->to_utf8.encoding
                                                                                ? read_converted
                                                                            : p->format ? decompress
                                                                                        : copy;
    *got = 0;
    if (n && !read(p, buf, n, got, e)) return false;
    p->given += *got;
    return true;
}

/* ---- positions ---- */

enum { SKIPPED = 1 << 16 };

/* Reads up to byte `to` or the end; lines, if not NULL, counts the line ends. */
static bool read_up_to(ses_input_stream *p, uint64_t to, uint64_t *lines, ses_err *e)
{
    char *block = ses_alloc(SKIPPED, e);
    size_t got = block != NULL;
    bool ok = block != NULL;
    while (ok && got && p->given < to) {
        ok = ses_input_stream_read(p, block, to - p->given < SKIPPED ? (size_t)(to - p->given) : SKIPPED,
                                   &got, e);
        size_t found = 0;
        for (size_t i = 0; ok && lines && i < got; i++) found += block[i] == '\n';
        if (lines) *lines += found;
    }
    ses_free(block);
    return ok;
}

bool ses_input_stream_skip(ses_input_stream *p, uint64_t to, ses_err *e)
{
    bool seeks = !p->format && !p->to_utf8.encoding && p->size && to > p->given + p->w.n_in;
    if (!seeks) return read_up_to(p, to, NULL, e);
    if (to > p->size) to = p->size;
    uint64_t step = to - p->given - p->w.n_in;
    if (lseek(p->fd, (off_t)step, SEEK_CUR) < 0) return ses_fail(e, SES_EIO, "%s", strerror(errno));
    p->taken += p->w.n_in + step;
    p->given = to;
    p->w.n_in = 0;
    return true;
}

ses_input_stream *ses_input_stream_open_start(const char *path, int64_t *before, ses_err *e)
{
    bool in = !strcmp(path, "-");
    *before = in ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
    if (!in || (*before >= 0 && lseek(STDIN_FILENO, 0, SEEK_SET) >= 0))
        return ses_input_stream_open_text(path, SES_ENCODING_UTF8, e);
    ses_fail(e, SES_EIO, "%s", strerror(errno));
    return NULL;
}

bool ses_input_stream_close_start(ses_input_stream *p, int64_t before, ses_err *e)
{
    ses_input_stream_free(p);
    return before < 0 || lseek(STDIN_FILENO, before, SEEK_SET) >= 0 ||
           ses_fail(e, SES_EIO, "%s", strerror(errno));
}

bool ses_input_measure(const char *path, uint64_t *bytes, bool *compressed, ses_err *e)
{
    int64_t before;
    ses_input_stream *p = ses_input_stream_open_start(path, &before, e);
    if (!p) return false;
    bool known = !p->format && !p->to_utf8.encoding && p->size,
         ok = known || read_up_to(p, UINT64_MAX, NULL, e);
    *bytes = known ? p->size : p->given;
    *compressed = p->format != NULL;
    return ses_input_stream_close_start(p, before, e) && ok;
}

bool ses_input_count_lines(const char *path, uint64_t n, uint64_t *lines, ses_err *e)
{
    int64_t before;
    ses_input_stream *p = ses_input_stream_open_start(path, &before, e);
    if (!p) return false;
    *lines = 0;
    bool ok = read_up_to(p, n, lines, e);
    return ses_input_stream_close_start(p, before, e) && ok;
}

bool ses_input_stream_ready(const ses_input_stream *p)
{
    struct pollfd f = { .fd = p->fd, .events = POLLIN };
    return p->w.n_in || p->end || p->text_at < p->text.len || p->broken.code ||
           (poll(&f, 1, 0) == 1 && (f.revents & POLLIN));
}

uint64_t ses_input_stream_offset(const ses_input_stream *p) { return p->given; }
uint64_t ses_input_stream_consumed(const ses_input_stream *p) { return p->taken - p->w.n_in; }
