/* Thread pool: fork, run numbered chunks, join. What a chunk computes depends on its number only, so
 * results are the same on any number of threads. Callers from several threads take turns. */
#ifndef SES_BASE_POOL_H
#define SES_BASE_POOL_H

#include "sesame/err.h"

typedef struct ses_thread_pool ses_thread_pool;

enum { SES_SCRATCH_BYTES = 4 << 20 }; /* bytes of scratch each running chunk may use, SES_ALIGN aligned */

/* Body of a parallel loop: chunk i of ctx; scratch is this thread's own SES_SCRATCH_BYTES bytes. */
typedef void ses_chunk_fn(void *ctx, int64_t i, void *scratch);

ses_thread_pool *ses_thread_pool_new(int threads, ses_err *e); /* the caller's thread counts as one */
void ses_thread_pool_free(ses_thread_pool *p);
int ses_thread_pool_size(const ses_thread_pool *p);
void ses_parallel_for(ses_thread_pool *p, int64_t chunks, ses_chunk_fn *fn,
                      void *ctx); /* not from inside a chunk */
int ses_cpu_count(void);          /* cores this process may use */

#endif
