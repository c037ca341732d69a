/* Reads lines of files and standard input. */
#define _POSIX_C_SOURCE 200809L
#include "line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

static const char *display_name(const char *name) { return strcmp(name, "-") ? name : "standard input"; }

static bool open_next(ses_line_reader *r, ses_err *e)
{
    r->name = *r->file++;
    r->n_files--;
    r->fd = strcmp(r->name, "-") ? open(r->name, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    r->buf.len = r->at = 0;
    r->line = 0;
    r->end = false;
    return r->fd >= 0 || ses_fail(e, SES_EIO, "%s: %s", r->name, strerror(errno));
}

static void close_one(ses_line_reader *r)
{
    if (r->name && r->fd > STDIN_FILENO) close(r->fd);
    r->name = NULL;
}

/* Reads more bytes, after the unread rest of the buffer. */
static bool read_more(ses_line_reader *r, ses_err *e)
{
    if (r->at) {
        memmove(r->buf.data, r->buf.data + r->at, r->buf.len - r->at);
        r->buf.len -= r->at;
        r->at = 0;
    }
    size_t want = r->buf.len < CHUNK ? CHUNK : r->buf.len; /* doubles for a long line */
    if (!ses_buf_reserve(&r->buf, want)) return ses_buf_ok(&r->buf, e);
    ssize_t got;
    do got = read(r->fd, r->buf.data + r->buf.len, want);
    while (got < 0 && errno == EINTR);
    if (got < 0) return ses_fail(e, SES_EIO, "%s: %s", display_name(r->name), strerror(errno));
    r->buf.len += (size_t)got;
    r->bytes += (int64_t)got;
    r->end = got == 0;
    return true;
}

ses_line_status ses_line_next(ses_line_reader *r, const char **line, size_t *n, ses_err *e)
{
    size_t scanned = 0; /* bytes after `at` that hold no line end */
    for (;;) {
        if (!r->name) {
            if (!r->n_files) return SES_LINE_END;
            if (!open_next(r, e)) return SES_LINE_ERROR;
        }
        char *p = r->buf.data ? r->buf.data + r->at : NULL;
        size_t have = r->buf.len - r->at;
        char *lf = have > scanned ? memchr(p + scanned, '\n', have - scanned) : NULL;
        if (lf || (r->end && have)) {
            *n = lf ? (size_t)(lf - p) : have;
            r->at += *n + (lf != NULL);
            if (lf && *n && lf[-1] == '\r') --*n;
            *line = p;
            r->line++;
            return SES_LINE_OK;
        }
        scanned = have;
        if (r->end) {
            close_one(r);
            scanned = 0;
        } else if (!read_more(r, e)) {
            return SES_LINE_ERROR;
        }
    }
}

bool ses_line_ready(const ses_line_reader *r)
{
    if (!r->name) return r->n_files > 0;
    if (r->end || memchr(r->buf.data + r->at, '\n', r->buf.len - r->at)) return true;
    struct pollfd p = { .fd = r->fd, .events = POLLIN };
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLIN | POLLHUP));
}

void ses_line_reader_close(ses_line_reader *r)
{
    close_one(r);
    ses_buf_free(&r->buf);
}
