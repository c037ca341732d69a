/* Words of a text, one after another, and the ends of its lines. The text may be compressed or standard
 * input ("-"). A word that is longer than SES_WORD_MAX bytes is skipped and counted. A reader belongs to one
 * thread. */
#ifndef SES_VECTORS_WORD_READER_H
#define SES_VECTORS_WORD_READER_H

#include "base/str.h"
#include "io/input_stream.h"
#include "word_split.h"

enum { SES_WORD_MAX = 1000 };

/* Words that were skipped and the line of the first. */
typedef struct ses_words_skipped {
    int64_t too_long;
    uint64_t first_line;
} ses_words_skipped;

typedef struct ses_word_reader {
    ses_input_stream *in;
    ses_words_rule rule;
    char *buffer;
    size_t at, end; /* unread bytes of buffer */
    bool ended;
    uint64_t line;              /* lines that are complete */
    int64_t line_start;         /* where the current line begins in buffer; negative: before it */
    ses_text_encoding encoding; /* set before the open */
    ses_words_skipped skipped;
    ses_buf pieces;    /* SES_WORDS_TEXT: the current blank-separated word in lower case */
    size_t next_piece; /* where the next word of pieces starts */
} ses_word_reader;

/* Whether all n files can be opened and are texts: the last one may be read after hours. */
bool ses_word_files_check(const char *const *path, size_t n, ses_err *e);
/* *r must be zeroed, except for the encoding; free it even if this fails. */
bool ses_word_reader_open(ses_word_reader *r, const char *path, ses_words_rule rule, ses_err *e);
void ses_word_reader_free(ses_word_reader *r);
/* The next word, valid until the next call. *n is 0 for the end of a line; *s is NULL at the end of the text,
 * which ends the last line too. */
bool ses_word_reader_next(ses_word_reader *r, const char **s, size_t *n, ses_err *e);

#endif
