/* Added tokens in fast paths: whether a text contains any, and the spans between them. Read-only after
 * initialization. */
#ifndef SES_TEXT_FAST_ADDED_H
#define SES_TEXT_FAST_ADDED_H

#include "text/tokenizer_impl.h"

/* First bytes of all added tokens. */
typedef struct ses_added_first_bytes {
    uint8_t byte[8];
    size_t n; /* more than the array holds: every byte of the text is checked */
} ses_added_first_bytes;

void ses_added_first_bytes_init(ses_added_first_bytes *r, const ses_added *a);

/* Whether the raw text contains an added token. */
bool ses_added_any(const ses_added_first_bytes *r, const ses_added *a, const char *text, size_t n);

/* Split a text at added tokens, as ses_encode_by_stages does without a normalizer: first at tokens
 * for raw text, then the rest at tokens for normalized text. Added tokens are appended to k->tokens;
 * `span` is called for the text between them. */
typedef bool ses_span_fn(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t begin,
                         size_t end, ses_err *e);
bool ses_added_for_each_span(const ses_added *a, ses_span_fn *span, const void *self, void *work,
                             ses_encode_ctx *k, const char *text, size_t n, ses_err *e);

#endif
