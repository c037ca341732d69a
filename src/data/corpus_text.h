/* Texts cut into documents, some megabytes at a time. */
#ifndef SES_DATA_CORPUS_TEXT_H
#define SES_DATA_CORPUS_TEXT_H

#include "base/str.h"
#include "io/input_stream.h"

enum { CORPUS_DOCUMENT = 16 << 20, CORPUS_LINE = 256 << 20 }; /* bytes of a document, of a JSON line */

typedef struct ses_text_document {
    const char *p;
    size_t n;
    uint64_t line; /* of its first, from 1 */
    bool cut;      /* goes on in the next */
} ses_text_document;

typedef struct ses_texts {
    ses_input_stream *in;
    bool lines;      /* JSON lines: every line is a document */
    bool end;        /* of the file */
    uint64_t offset; /* bytes of documents given out, and what lies between them */
    uint64_t line;   /* lines among these */
    ses_buf buf;
    size_t used; /* of buf, given out in the last round */
    ses_text_document *doc;
    size_t n, cap;
} ses_texts;

/* Zeroed before; to be freed whatever happens. Begins at `offset`, which is line `line` + 1. */
bool ses_texts_open(ses_texts *t, const char *path, bool lines, uint64_t offset, uint64_t line, ses_err *e);
void ses_texts_free(ses_texts *t);

/* The next documents, t->doc[0 .. t->n): about so many bytes. Borrowed until the next call. Where documents
 * begin and end does not depend on the calls. t->n == 0 with t->end: no more. */
bool ses_texts_next(ses_texts *t, size_t bytes, ses_err *e);

/* Where the sentence that begins at p ends, blanks behind it included: after . ! ? and closing marks, where
 * white space and no lower-case letter follow, but not after an initial or a common abbreviation. */
size_t ses_sentence_end(const char *p, size_t n);

#endif
