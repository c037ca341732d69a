/* Lines of a file (packed or not: see input_stream.h), a pipe or of memory, one by one. */
#ifndef SES_IO_LINES_H
#define SES_IO_LINES_H

#include "base/str.h"
#include "input_stream.h"

typedef struct ses_text_reader {
    ses_input_stream *in; /* NULL: memory */
    const char *at;       /* what is left of memory, or of buf */
    size_t left, next;    /* next: bytes of `at` that the last line took */
    ses_buf buf;
    size_t max; /* bytes a line may have */
    bool done;  /* nothing more will come */
    uint64_t line;
} ses_text_reader;

/* Zero it first; free it whatever happens. "-" is standard input. */
bool ses_text_reader_open(ses_text_reader *l, const char *path, size_t max, ses_err *e);
void ses_text_reader_from_text(ses_text_reader *l, const char *text, size_t n, size_t max);
void ses_text_reader_free(ses_text_reader *l);

/* The next line without its end, borrowed until the next call; *s NULL at the end. It is UTF-8 without
 * NUL. */
bool ses_text_reader_next(ses_text_reader *l, const char **s, size_t *n, ses_err *e);

#endif
