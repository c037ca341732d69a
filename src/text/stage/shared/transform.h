/* Rewriting of text by normalizers, with source ranges. A ses_transform lives on the caller's stack. */
#ifndef SES_TEXT_TRANSFORM_H
#define SES_TEXT_TRANSFORM_H

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "text/stage.h"

/* Writes the characters of the new text in order, each with its `change` (see ses_change). A replaced
 * character passes on its source range. An inserted one gets the range of the last consumed character;
 * before the first, the empty range at in->base. Starts with at = begin. */
typedef struct ses_transform {
    const ses_text *in;
    size_t begin, end; /* input range */
    size_t at;         /* consumed up to here */
    ses_text *out;
} ses_transform;

bool ses_transform_put(ses_transform *t, uint32_t cp, int32_t change, ses_err *e);
bool ses_transform_changes(ses_transform *t, const ses_changes *c, ses_err *e);
/* Copy n bytes unchanged and consume them. */
bool ses_transform_copy(ses_transform *t, size_t n, ses_err *e);

/* Append a character; the caller has reserved 4 bytes. */
static inline void ses_text_put_char_reserved(ses_text *t, uint32_t cp, ses_offset from)
{
    size_t k = ses_utf8_encode(cp, t->byte + t->n);
    for (size_t i = 0; i < k; i++) t->from[t->n + i] = from;
    t->n += k;
}

#endif
