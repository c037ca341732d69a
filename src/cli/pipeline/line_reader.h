/* Reads lines of files as they arrive, decompressing gzip, xz and Zstandard, and reports whether more input
 * is ready, so that a pending batch can be answered before the next line blocks. A line is at most
 * SES_MAX_LINE bytes (cli/line_limit.h). Ownership: ses_line_reader_close frees the buffer; names are
 * borrowed. One thread per reader. */
#ifndef SES_CLI_LINE_READER_H
#define SES_CLI_LINE_READER_H

#include "base/str.h"
#include "cli/shard/shard_plan.h"
#include "io/input_stream.h"

typedef struct ses_line_reader {
    ses_text_encoding encoding; /* all files have it */
    const ses_span *span;       /* parts of files not yet opened; "-" is standard input */
    size_t n_spans;
    ses_span open;    /* part of the open file */
    const char *name; /* the open file; NULL: none */
    ses_input_stream *in;
    ses_buf buf;
    size_t at;             /* start of the next line in buf */
    bool end;              /* the rest of the file is in buf */
    int64_t line, bytes;   /* number of the line in its part, from 1; bytes of all parts, as stored */
    int64_t bytes_before;  /* bytes of the parts before the open one */
    uint64_t offset;       /* where buf begins in the file, decompressed */
    uint64_t first, start; /* where the first line of the part starts, and the last one returned */
} ses_line_reader;

typedef enum { SES_LINE_END, SES_LINE_OK, SES_LINE_ERROR } ses_line_status;

/* A part that is a whole file. */
ses_span ses_line_whole_file(const char *name);
/* The next line without its end (LF or CRLF), borrowed until the next call. Not checked: see
 * io/text_decoder.h. */
ses_line_status ses_line_next(ses_line_reader *r, const char **line, size_t *n, ses_err *e);
bool ses_line_ready(const ses_line_reader *r); /* reading would not block */
/* Bytes of all parts, as stored, up to the end of the last line; an estimate in compressed files. */
int64_t ses_line_progress(const ses_line_reader *r);
void ses_line_reader_close(ses_line_reader *r);

#endif
