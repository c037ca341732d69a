/* Temporary files of co-occurrence records. */
#define _POSIX_C_SOURCE 200809L
#include "record_file.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool ses_record_file_open(ses_record_file *f, const char *beside, ses_err *e)
{
    *f = (ses_record_file){ .fd = -1, .beside = beside };
    f->buffer = ses_alloc_array(SES_RECORD_BUFFER, sizeof *f->buffer, e);
    return f->buffer && (f->fd = ses_file_unnamed(beside, e)) >= 0;
}

bool ses_record_file_flush(ses_record_file *f, ses_err *e)
{
    bool ok = ses_fd_write(f->fd, f->buffer, f->held * sizeof *f->buffer, f->beside, e);
    f->held = 0;
    return ok;
}

bool ses_record_file_put(ses_record_file *f, const ses_record *r, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n;) {
        size_t part = SES_RECORD_BUFFER - f->held < n - i ? SES_RECORD_BUFFER - f->held : n - i;
        memcpy(f->buffer + f->held, r + i, part * sizeof *r);
        f->held += part;
        i += part;
        if (f->held == SES_RECORD_BUFFER && !ses_record_file_flush(f, e)) return false;
    }
    f->n += (int64_t)n;
    return true;
}

void ses_record_file_free(ses_record_file *f)
{
    if (f->buffer && f->fd >= 0) close(f->fd);
    ses_free(f->buffer);
    *f = (ses_record_file){ 0 };
}

bool ses_record_reader_open(ses_record_reader *r, const ses_record_file *f, int64_t at, int64_t end,
                            ses_err *e)
{
    *r = (ses_record_reader){ .file = f, .at = at, .end = end };
    return (r->buffer = ses_alloc_array(SES_RECORD_BUFFER, sizeof *r->buffer, e)) != NULL;
}

static bool fill(ses_record_reader *r, ses_err *e)
{
    int64_t n = r->end - r->at < SES_RECORD_BUFFER ? r->end - r->at : SES_RECORD_BUFFER;
    size_t size = (size_t)n * sizeof *r->buffer, got = 0;
    while (got < size) {
        ssize_t part = pread(r->file->fd, (char *)r->buffer + got, size - got,
                             (off_t)(r->at * (int64_t)sizeof *r->buffer + (int64_t)got));
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0)
            return ses_fail(e, SES_EIO, "temporary file beside %s: cannot be read: %s", r->file->beside,
                            part < 0 ? strerror(errno) : "it is too short");
        got += (size_t)part;
    }
    r->at += n;
    r->held = (size_t)n;
    r->next = 0;
    return true;
}

bool ses_record_reader_next(ses_record_reader *r, ses_record *out, ses_err *e)
{
    if (r->next == r->held && (r->at == r->end || !fill(r, e))) return false;
    *out = r->buffer[r->next++];
    return true;
}

void ses_record_reader_free(ses_record_reader *r)
{
    ses_free(r->buffer);
    *r = (ses_record_reader){ 0 };
}
