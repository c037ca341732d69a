/* PCRE2, for patterns that the backtracking matcher does not support. If the build has no PCRE2, opening
 * fails. */
#ifndef SES_TEXT_REGEX_PCRE2_H
#define SES_TEXT_REGEX_PCRE2_H

#include "sesame/base.h"

typedef struct ses_pcre2 ses_pcre2;           /* a pattern, read-only */
typedef struct ses_pcre2_work ses_pcre2_work; /* belongs to one thread */

/* why: the unsupported construct, for the error message. */
ses_pcre2 *ses_pcre2_open(const char *pattern, size_t n, const char *why, ses_err *e);
void ses_pcre2_close(ses_pcre2 *p);
ses_pcre2_work *ses_pcre2_work_new(const ses_pcre2 *p, ses_err *e);
void ses_pcre2_work_free(ses_pcre2_work *w);
bool ses_pcre2_search(const ses_pcre2 *p, ses_pcre2_work *w, const char *text, size_t n, size_t from,
                      bool *found, size_t *begin, size_t *end, ses_err *e);

#endif
