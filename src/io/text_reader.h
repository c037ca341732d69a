/* Line reader for a file (possibly compressed, see input_stream.h), a pipe or memory. A reader belongs to
 * one thread. */
#ifndef SES_IO_TEXT_READER_H
#define SES_IO_TEXT_READER_H

#include "base/str.h"
#include "input_stream.h"

typedef struct ses_text_reader {
    ses_input_stream *in; /* NULL: memory */
    const char *at;       /* unread bytes, of memory or of buf */
    size_t left, next;    /* bytes at `at`; how many of them the last line took */
    ses_buf buf;
    size_t max;                 /* maximum bytes of a line */
    ses_text_encoding encoding; /* set before the open */
    bool done;                  /* the input has ended */
    uint64_t line;              /* number of the last line, from 1; after a skip: see ses_text_reader_line */
    uint64_t offset;            /* decompressed bytes before `at` */
    char *skipped;              /* the path, if lines were skipped that are not counted */
    uint64_t skipped_to, lines_before_skip;
} ses_text_reader;

/* *l must be zeroed, except for the encoding. Free it even if the open fails. "-" is standard input. */
bool ses_text_reader_open(ses_text_reader *l, const char *path, size_t max, ses_err *e);
/* Reads from memory, which is borrowed. */
void ses_text_reader_from_text(ses_text_reader *l, const char *text, size_t n, size_t max);
void ses_text_reader_free(ses_text_reader *l);

/* The next line without its line end, valid until the next call; *s is NULL at the end. The line is valid
 * UTF-8 without NUL. */
bool ses_text_reader_next(ses_text_reader *l, const char **s, size_t *n, ses_err *e);

/* Bytes that the next calls return, at least n_lines lines of them unless the input ends before or a line is
 * too long; *whole: the input ends there. They are not checked. Before the first line. */
bool ses_text_reader_peek(ses_text_reader *l, size_t n_lines, const char **s, size_t *n, bool *whole,
                          ses_err *e);

/* Byte offset of the line that the next call returns, in the decompressed input. */
uint64_t ses_text_reader_offset(const ses_text_reader *l);
/* Skips to the first line that starts at byte `to` or later; nothing if that is the next line. path: as it
 * was opened. */
bool ses_text_reader_skip(ses_text_reader *l, const char *path, uint64_t to, ses_err *e);
/* Number of the last line. Counts the skipped lines at the first call; from then on l->line is right. */
uint64_t ses_text_reader_line(ses_text_reader *l);

/* Whether a line has only spaces and tabs. */
bool ses_text_is_blank(const char *s, size_t n);
/* Detects common files that are not text by their first n bytes: how to convert such a file, or NULL. */
const char *ses_text_binary_format(const char *s, size_t n);

#endif
