/* The rule for texts from outside: UTF-8 without NUL. Anything else is refused with its line and byte, or
 * converted if its encoding is given. */
#ifndef SES_IO_TEXT_DECODER_H
#define SES_IO_TEXT_DECODER_H

#include "base/opt_table.h"
#include "base/str.h"
#include "sesame/unstable/table.h"

/* ---- the check ---- */

size_t ses_text_good(const char *s, size_t n); /* bytes before the first that is invalid UTF-8 or a NUL */
/* Fails with "byte B: ..." unless the n bytes are text. */
bool ses_text_check(const char *s, size_t n, ses_err *e);
/* The same for an argument of the command line, which --encoding does not convert. */
bool ses_text_check_argument(const char *s, size_t n, ses_err *e);
/* Fails with "line L, byte B: ..."; the first of the lines has the number `line`. */
bool ses_text_check_lines(const char *s, size_t n, uint64_t line, ses_err *e);

/* ---- conversion ---- */

/* Converts an input to UTF-8, piece by piece. Zeroed except for the encoding. */
typedef struct ses_text_decoder {
    ses_text_encoding encoding;
    bool begun, big_endian;
    unsigned char rest[4]; /* the beginning of a character */
    size_t n_rest;
    uint64_t lines, column; /* complete lines; bytes of the input since the last line end */
} ses_text_decoder;

/* Appends n more bytes of the input to out, as UTF-8. last: the input ends here. A byte that the encoding
 * does not use is an error with its line and byte; the text before it is appended. */
bool ses_text_decode(ses_text_decoder *d, const unsigned char *p, size_t n, bool last, ses_buf *out,
                     ses_err *e);

/* The choices of an option --encoding, in the order of ses_text_encoding. */
#define SES_TEXT_ENCODINGS                                                                                 \
    "utf-8|utf-8-replace|latin1|latin9|windows-1250|windows-1251|windows-1252|koi8-r|utf-16|utf-16le|utf-" \
    "16be"

/* The option --encoding; field: an int. */
#define SES_OPT_ENCODING(struct_, field)                                                                     \
    SES_OPT_CHOICE(struct_, field, "encoding", "utf-8", SES_TEXT_ENCODINGS,                                  \
                   "encoding of the texts in files and standard input: utf-8, utf-8-replace (invalid bytes " \
                   "become U+FFFD), latin1, latin9, windows-1250, windows-1251, windows-1252, koi8-r, "      \
                   "utf-16, utf-16le or utf-16be",                                                           \
                   .value = "NAME", .group = "data")

#endif
