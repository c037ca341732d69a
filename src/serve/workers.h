/* Worker threads: they take new requests and computed jobs from a queue. Computed jobs come first.
 *
 * Threads: push functions from any thread. */
#ifndef SES_SERVE_WORKERS_H
#define SES_SERVE_WORKERS_H

#include "job.h"

typedef struct ses_workers ses_workers;

typedef struct ses_workers_options {
    struct ses_server *server;
    int n;
    size_t max_pending;                        /* new requests in the queue */
    void (*handle)(ses_worker *w, ses_job *j); /* a new request */
    void (*begin)(ses_worker *w, ses_job *j);  /* the same in ses_workers_help: it must not compute */
    void (*finish)(ses_worker *w, ses_job *j); /* a computed job */
} ses_workers_options;

ses_workers *ses_workers_new(const ses_workers_options *o, ses_err *e);
void ses_workers_free(ses_workers *p); /* finishes the queued jobs, joins the threads; p may be NULL */

/* Queues a new request; bulk: behind the small requests. False: the queue is full. */
bool ses_workers_push(ses_workers *p, ses_job *j, bool bulk);
void ses_workers_push_computed(ses_workers *p, ses_job *j);
/* One worker will call fn(ctx), before it takes a job. A call that is waiting is replaced: there is one kind
 * of calls. */
void ses_workers_call(ses_workers *p, void (*fn)(void *ctx, ses_worker *w), void *ctx);
/* For a worker that is about to compute: answers the computed jobs and begins the small requests that are
 * queued now, together with the other workers. They would need the cores during the batch otherwise. */
void ses_workers_help(ses_workers *p, ses_worker *w);
size_t ses_workers_pending(ses_workers *p);
bool ses_workers_have_idle(ses_workers *p); /* a worker waits for a job */

#endif
