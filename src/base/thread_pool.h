/* Thread pool: fork, run numbered chunks, join. What a chunk computes depends on its number only, so
 * results are the same on any number of threads. Callers from several threads take turns. */
#ifndef SES_BASE_POOL_H
#define SES_BASE_POOL_H

#include "sesame/err.h"

typedef struct ses_pool ses_pool;

enum { SES_SCRATCH = 4 << 20 }; /* bytes of scratch each running chunk may use, SES_ALIGN aligned */

/* Body of a parallel loop: chunk i of ctx; scratch is this thread's own SES_SCRATCH bytes. */
typedef void ses_chunk_fn(void *ctx, int64_t i, void *scratch);

ses_pool *ses_pool_new(int threads, ses_err *e); /* the caller's thread counts as one */
void ses_pool_free(ses_pool *p);
int ses_pool_threads(const ses_pool *p);
void ses_parallel(ses_pool *p, int64_t chunks, ses_chunk_fn *fn, void *ctx); /* not from inside a chunk */
int ses_cpu_count(void);                                                     /* cores this process may use */

#endif
