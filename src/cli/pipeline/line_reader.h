/* Lines of files, one after the other, as they come; and whether more is there, so that who waits for an
 * answer gets it before the next line is read. */
#ifndef SES_CLI_LINE_READER_H
#define SES_CLI_LINE_READER_H

#include "base/str.h"

typedef struct ses_line_reader {
    const char *const *file; /* the next to open, up to n_files; "-" is standard input */
    size_t n_files;
    const char *name; /* of the file open; NULL: none is */
    int fd;
    ses_buf buf;
    size_t at;           /* in buf: where the next line begins */
    bool end;            /* of the file open: everything is in buf */
    int64_t line, bytes; /* of the file, from 1; of all files, read so far */
} ses_line_reader;

typedef enum { SES_LINE_END, SES_LINE_OK, SES_LINE_ERROR } ses_line_status;

/* The next line without its end (LF or CRLF), borrowed until the next call. */
ses_line_status ses_line_next(ses_line_reader *r, const char **line, size_t *n, ses_err *e);
bool ses_line_ready(const ses_line_reader *r); /* a line, or a part of one, can be had without waiting */
int64_t ses_line_total_bytes(const ses_line_reader *r); /* bytes of all files; 0: some is no regular file */
void ses_line_reader_close(ses_line_reader *r);

#endif
