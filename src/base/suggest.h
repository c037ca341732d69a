/* "did you mean": the nearest of the words offered, if one is near enough. */
#ifndef SES_BASE_SUGGEST_H
#define SES_BASE_SUGGEST_H

#include "sesame/err.h"

typedef struct ses_suggestion {
    const char *word; /* what was typed */
    const char *best; /* NULL: nothing near */
    size_t best_len, distance;
} ses_suggestion;

void ses_suggest_offer(ses_suggestion *s, const char *candidate, size_t len);

/* Append "; did you mean 'PREFIXbest'?" to the error where there is a best. Returns false. */
bool ses_suggest_add(const ses_suggestion *s, const char *prefix, ses_err *e);

#endif
