/* Splits input files into documents, some megabytes at a time; and paragraphs into sentences. One thread
 * per ses_texts. */
#ifndef SES_DATA_CORPUS_TEXT_H
#define SES_DATA_CORPUS_TEXT_H

#include "base/str.h"
#include "io/input_stream.h"

enum {
    CORPUS_DOCUMENT = 16 << 20,
    CORPUS_LINE = 256 << 20
}; /* maximum bytes of a document, of a JSON line */

typedef struct ses_text_document {
    const char *p;
    size_t n;
    uint64_t line;  /* number of its first line, from 1 */
    bool continues; /* too long: the next document continues it */
} ses_text_document;

typedef struct ses_texts {
    ses_input_stream *in;
    ses_text_encoding encoding; /* set before the open */
    bool lines;                 /* JSON lines: every line is a document */
    bool end;                   /* the input has ended */
    uint64_t offset;            /* bytes returned so far, with the text between documents */
    uint64_t line;              /* lines in these bytes */
    uint64_t limit; /* set before the open: the input ends at this byte; 0: at the end of the file */
    ses_buf buf;
    size_t used; /* bytes of buf returned by the last call */
    ses_text_document *doc;
    size_t n, cap;
} ses_texts;

/* *t must be zeroed; free it even on failure. Starts at byte `offset`, the start of line `line` + 1. */
bool ses_texts_open(ses_texts *t, const char *path, bool lines, uint64_t offset, uint64_t line, ses_err *e);
void ses_texts_free(ses_texts *t);

/* The border between documents at byte `at` or later: the start of a line, of a blank one unless `lines`.
 * *border: at most the size of the file; 0 and UINT64_MAX stay. */
bool ses_texts_border(const char *path, bool lines, uint64_t at, uint64_t *border, ses_err *e);

/* The next documents, t->doc[0, t->n), about `bytes` bytes; valid until the next call. The division into
 * documents does not depend on `bytes`. t->n == 0 with t->end: no more. */
bool ses_texts_next(ses_texts *t, size_t bytes, ses_err *e);

/* Bytes of the sentence at p with its trailing spaces. A sentence ends after . ! ? and closing marks that are
 * followed by white space and no lower-case letter, but not after an initial or a common abbreviation. */
size_t ses_sentence_end(const char *p, size_t n);

#endif
