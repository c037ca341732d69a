/* Added tokens in a text, for shortcuts: whether there are any, and the stretches between them. */
#ifndef SES_TEXT_FAST_ADDED_H
#define SES_TEXT_FAST_ADDED_H

#include "text/tokenizer_impl.h"

/* The bytes that begin added tokens. */
typedef struct ses_added_first_bytes {
    uint8_t byte[8];
    size_t n; /* more than fit: the text is gone through byte by byte */
} ses_added_first_bytes;

void ses_added_first_bytes_init(ses_added_first_bytes *r, const ses_added *a);

/* Whether the text has an added token anywhere, sought as it is. */
bool ses_added_any(const ses_added_first_bytes *r, const ses_added *a, const char *text, size_t n);

/* As in the exact way where no normalizer stands between: tokens sought in the text as it is, those for
 * normal text in what lies between. Tokens are put in the run, the rest is handed on. */
typedef bool ses_span_fn(const void *self, void *work, ses_tokens *k, const char *text, size_t begin,
                         size_t end, ses_err *e);
bool ses_added_for_each_span(const ses_added *a, ses_span_fn *stretch, const void *self, void *work,
                             ses_tokens *k, const char *text, size_t n, ses_err *e);

#endif
