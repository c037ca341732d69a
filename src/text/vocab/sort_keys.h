/* Keys in the order of their bytes. */
#ifndef SES_TEXT_SORT_KEYS_H
#define SES_TEXT_SORT_KEYS_H

#include "sesame/tokenizer.h"

/* Indices of n keys in order; equal keys stay in theirs. ses_free. NULL: no memory. */
uint32_t *ses_sort_keys(const ses_string *key, size_t n, ses_err *e);

#endif
