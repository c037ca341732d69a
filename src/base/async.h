/* One piece of work at a time in a thread of its own, while who gave it goes on with something else. */
#ifndef SES_BASE_ASIDE_H
#define SES_BASE_ASIDE_H

#include "sesame/err.h"

typedef struct ses_async ses_async;
typedef bool ses_async_fn(void *ctx, ses_err *e);

ses_async *ses_async_new(ses_err *e);
void ses_async_free(ses_async *a); /* what runs is waited for */
/* Each begin is followed by an end, which waits and returns what fn did, with its error. ctx is fn's until
 * then. */
void ses_async_start(ses_async *a, ses_async_fn *fn, void *ctx);
bool ses_async_wait(ses_async *a, ses_err *e);

#endif
