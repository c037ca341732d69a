/* Queue of exchanges: a thread that runs them in order while the caller continues. */
#ifndef SES_COMM_COMM_QUEUE_H
#define SES_COMM_COMM_QUEUE_H

#include "comm_impl.h"

typedef struct ses_comm_queue ses_comm_queue;
typedef bool ses_comm_queue_fn(void *ctx, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e);

/* Runs fn(ctx, ...) for each pair of arrays of `size` blocks. */
ses_comm_queue *ses_comm_queue_new(int size, ses_comm_queue_fn *fn, void *ctx, ses_err *e);
/* Waits for the exchange that runs; later ones are dropped. q may be NULL. */
void ses_comm_queue_free(ses_comm_queue *q);

/* Copies the arrays. Fails with the error of an earlier exchange. */
bool ses_comm_queue_add(ses_comm_queue *q, const ses_comm_block *send, const ses_comm_block *recv,
                        ses_err *e);
/* Waits until the queue is empty. Fails with the error of the first exchange that failed; later ones did not
 * run. */
bool ses_comm_queue_wait(ses_comm_queue *q, ses_err *e);

#endif
