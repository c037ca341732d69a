/* SentencePiece's precompiled_charsmap: u32 size of a trie in bytes, the trie (a double array of u32,
 * little endian, labels are bytes), then the replacements, each ended by NUL. A leaf's value is where its
 * replacement starts. The bytes come from outside: every step is checked, and one that leads astray is an
 * error. */
#ifndef SES_TEXT_CHARSMAP_H
#define SES_TEXT_CHARSMAP_H

#include "text/stage.h"

typedef struct ses_charsmap {
    const unsigned char *unit; /* [units] of 4 bytes */
    size_t units;
    const char *text; /* the replacements */
    size_t n;
} ses_charsmap;

bool ses_charsmap_open(ses_charsmap *m, const char *bytes, size_t n, ses_err *e); /* borrows the bytes */

typedef enum { SES_CHARSMAP_NONE, SES_CHARSMAP_FOUND, SES_CHARSMAP_BROKEN } ses_charsmap_result;

/* A key that p begins with, and what replaces it: the shortest (as the reference's tokenizer.json rule
 * takes) or the longest (as SentencePiece itself does). */
ses_charsmap_result ses_charsmap_shortest(const ses_charsmap *m, const char *p, size_t n, ses_string *to,
                                          ses_err *e);
ses_charsmap_result ses_charsmap_longest(const ses_charsmap *m, const char *p, size_t n, size_t *len,
                                         ses_string *to, ses_err *e);

bool ses_charsmap_has_prefix(const ses_charsmap *m, const char *p, size_t n); /* some key begins so */

/* Whether a key may have this byte in it; false: none has. */
bool ses_charsmap_has_byte(const ses_charsmap *m, unsigned char byte);

#endif
