/* How normalizers rewrite text and keep account of where it came from. */
#ifndef SES_TEXT_TRANSFORM_H
#define SES_TEXT_TRANSFORM_H

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "text/stage.h"

/* Characters of the new text, one after the other, each with the change it stands for (see ses_change): one
 * that takes the place of another has its range; an inserted one has the range of the last character taken,
 * or of none at all, which is the empty range at in->base. Starts with at = begin. */
typedef struct ses_transform {
    const ses_text *in;
    size_t begin, end; /* what is transformed */
    size_t at;         /* taken up to here */
    ses_text *out;
} ses_transform;

bool ses_transform_put(ses_transform *t, uint32_t cp, int32_t change, ses_err *e);
bool ses_transform_changes(ses_transform *t, const ses_changes *c, ses_err *e);
/* n bytes as they are; they are taken. */
bool ses_transform_copy(ses_transform *t, size_t n, ses_err *e);

/* Append a character to text that has 4 bytes of room. */
static inline void ses_text_put_char_reserved(ses_text *t, uint32_t cp, ses_offset from)
{
    size_t k = ses_utf8_encode(cp, t->byte + t->n);
    for (size_t i = 0; i < k; i++) t->from[t->n + i] = from;
    t->n += k;
}

#endif
