/* Errors about unknown words: "did you mean" with the closest candidate, or all of them. Strings are
 * borrowed. */
#ifndef SES_BASE_SUGGEST_H
#define SES_BASE_SUGGEST_H

#include "sesame/base.h"

typedef struct ses_suggestion {
    const char *word; /* the unknown word */
    const char *best; /* closest candidate so far; NULL: none is close */
    size_t best_len, distance;
} ses_suggestion;

void ses_suggest_offer(ses_suggestion *s, const char *candidate, size_t len);

/* Appends "; did you mean 'PREFIXbest'?" to the error, if there is a best candidate. Returns false. */
bool ses_suggest_add(const ses_suggestion *s, const char *prefix, ses_err *e);

/* Name i of a list; NULL past its end. */
typedef const char *ses_name_fn(const void *ctx, size_t i);
/* The error 'unknown WHAT "WORD"; choose one of A, B, C'. Returns false. */
bool ses_fail_unknown(ses_err *e, ses_code code, const char *what, ses_string word, ses_name_fn *name_of,
                      const void *ctx);

#endif
