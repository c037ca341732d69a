/* One piece of work at a time in a thread of its own, while who gave it goes on with something else. */
#ifndef SES_BASE_ASIDE_H
#define SES_BASE_ASIDE_H

#include "sesame/err.h"

typedef struct ses_aside ses_aside;
typedef bool ses_aside_fn(void *ctx, ses_err *e);

ses_aside *ses_aside_new(ses_err *e);
void ses_aside_free(ses_aside *a); /* what runs is waited for */
/* Each begin is followed by an end, which waits and returns what fn did, with its error. ctx is fn's until
 * then. */
void ses_aside_begin(ses_aside *a, ses_aside_fn *fn, void *ctx);
bool ses_aside_end(ses_aside *a, ses_err *e);

#endif
