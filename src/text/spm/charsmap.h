/* SentencePiece's precompiled_charsmap: u32 size of a trie in bytes; the trie, a double array of
 * little-endian u32 with byte labels; NUL-terminated replacements. The value of a leaf is the offset of
 * its replacement. The bytes are untrusted: every step is checked. A ses_charsmap borrows the bytes and is
 * read-only. */
#ifndef SES_TEXT_CHARSMAP_H
#define SES_TEXT_CHARSMAP_H

#include "text/stage.h"

typedef struct ses_charsmap {
    const unsigned char *unit; /* [units], 4 bytes each */
    size_t units;
    const char *text; /* replacements */
    size_t n;
} ses_charsmap;

bool ses_charsmap_open(ses_charsmap *m, const char *bytes, size_t n, ses_err *e); /* borrows the bytes */

typedef enum { SES_CHARSMAP_NONE, SES_CHARSMAP_FOUND, SES_CHARSMAP_BROKEN } ses_charsmap_result;

/* Find a key that p starts with and its replacement: the shortest (rule of HF Tokenizers) or the longest
 * (rule of SentencePiece). */
ses_charsmap_result ses_charsmap_shortest(const ses_charsmap *m, const char *p, size_t n, ses_string *to,
                                          ses_err *e);
ses_charsmap_result ses_charsmap_longest(const ses_charsmap *m, const char *p, size_t n, size_t *len,
                                         ses_string *to, ses_err *e);

/* whether some key starts with p[0, n) */
bool ses_charsmap_has_prefix(const ses_charsmap *m, const char *p, size_t n);

/* Whether a key may contain this byte; false: no key does. */
bool ses_charsmap_has_byte(const ses_charsmap *m, unsigned char byte);

#endif
