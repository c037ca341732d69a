/* Async worker: runs one function at a time in its own thread, while the calling thread continues. The
 * worker is owned by its creator and used from one thread. */
#ifndef SES_BASE_ASYNC_H
#define SES_BASE_ASYNC_H

#include "sesame/base.h"

typedef struct ses_async ses_async;
typedef bool ses_async_fn(void *ctx, ses_err *e);

ses_async *ses_async_new(ses_err *e);
void ses_async_free(ses_async *a); /* waits for a running function; a may be NULL */
/* Starts fn(ctx). Each start needs a ses_async_wait, which returns fn's result and error. Until then ctx must
 * not be accessed. */
void ses_async_start(ses_async *a, ses_async_fn *fn, void *ctx);
bool ses_async_wait(ses_async *a, ses_err *e);

#endif
