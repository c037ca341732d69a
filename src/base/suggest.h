/* "did you mean": the closest of several candidates, if one is close enough. Strings are borrowed. */
#ifndef SES_BASE_SUGGEST_H
#define SES_BASE_SUGGEST_H

#include "sesame/err.h"

typedef struct ses_suggestion {
    const char *word; /* the unknown word */
    const char *best; /* closest candidate so far; NULL: none is close */
    size_t best_len, distance;
} ses_suggestion;

void ses_suggest_offer(ses_suggestion *s, const char *candidate, size_t len);

/* Appends "; did you mean 'PREFIXbest'?" to the error, if there is a best candidate. Returns false. */
bool ses_suggest_add(const ses_suggestion *s, const char *prefix, ses_err *e);

#endif
