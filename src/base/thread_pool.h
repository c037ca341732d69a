/* Thread pool: fork-join loops over numbered chunks. The result of a chunk may depend on its index only, so
 * that results are the same for any number of threads. Several threads may call ses_parallel_for; their
 * loops run one after another. */
#ifndef SES_BASE_THREAD_POOL_H
#define SES_BASE_THREAD_POOL_H

#include "sesame/base.h"

typedef struct ses_thread_pool ses_thread_pool;

enum { SES_SCRATCH_BYTES = 4 << 20 }; /* scratch memory of each thread, aligned to SES_ALIGN */

/* Loop body: runs chunk i; scratch is SES_SCRATCH_BYTES of memory private to the thread. */
typedef void ses_chunk_fn(void *ctx, int64_t i, void *scratch);

ses_thread_pool *ses_thread_pool_new(int threads, ses_err *e); /* the calling thread counts as one */
void ses_thread_pool_free(ses_thread_pool *p);                 /* p may be NULL */
int ses_thread_pool_size(const ses_thread_pool *p);
/* Runs fn for i in [0, chunks) and waits. Not to be called from a chunk. p NULL: this thread, no scratch. */
void ses_parallel_for(ses_thread_pool *p, int64_t chunks, ses_chunk_fn *fn, void *ctx);
int ses_cpu_count(void); /* cores this process may use */

#endif
