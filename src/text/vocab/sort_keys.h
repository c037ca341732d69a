/* Sorting of byte strings. */
#ifndef SES_TEXT_SORT_KEYS_H
#define SES_TEXT_SORT_KEYS_H

#include "sesame/tokenizer.h"

/* Indices of n keys in byte order; stable. Free with ses_free. NULL: out of memory. */
uint32_t *ses_sort_keys(const ses_string *key, size_t n, ses_err *e);

#endif
