/* Two queues of jobs and the choice of batches: interactive jobs run before bulk jobs. The scheduler
 * has no thread: a worker that submits a job computes until the queues are empty, unless another one is
 * computing already; the others encode and answer meanwhile. A batch starts as soon as compute is free and
 * takes the queued sequences, up to batch_tokens.
 *
 * A job is admitted whole or rejected. Jobs whose client has left or whose deadline has passed are dropped
 * before their next batch.
 *
 * Ownership: a job belongs to the scheduler from submit until it is passed to `finished`. Threads: all
 * functions may be called from any thread. */
#ifndef SES_SERVE_SCHEDULER_H
#define SES_SERVE_SCHEDULER_H

#include "job.h"

typedef struct ses_scheduler ses_scheduler;

typedef struct ses_scheduler_options {
    int64_t batch_tokens, queue_inputs, queue_tokens;
    /* A job has been computed, or has j->error; w is the computing worker. more: it continues with another
     * batch. */
    void (*finished)(void *ctx, ses_worker *w, ses_job *j, bool more);
    /* After each batch, in the computing thread. */
    void (*on_batch)(void *ctx, size_t sequences, int64_t tokens, uint64_t ns);
    /* Before each batch but the first of ses_scheduler_run, in the computing thread; it may submit jobs. */
    void (*between)(void *ctx, ses_worker *w);
    void *ctx;
} ses_scheduler_options;

ses_scheduler *ses_scheduler_new(const ses_scheduler_options *o, ses_err *e);
void ses_scheduler_free(ses_scheduler *s); /* all jobs have been finished; s may be NULL */

/* Queues a prepared job. False and j->error: overloaded. */
bool ses_scheduler_submit(ses_scheduler *s, ses_job *j);
/* Computes batches until no job is queued, at most max_batches (0: no limit); returns at once if another
 * thread is computing. Returns true if jobs are left that no thread computes. */
bool ses_scheduler_run(ses_scheduler *s, ses_worker *w, int max_batches);
/* Makes the calling thread the one that computes, after the current batch, for work without jobs; only for
 * devices that one thread at a time may use. Not in a thread that computes. After leave, the thread calls
 * ses_scheduler_run for jobs that were submitted meanwhile. */
void ses_scheduler_enter(ses_scheduler *s);
void ses_scheduler_leave(ses_scheduler *s);
/* No thread is computing, no text is being generated, and the queued jobs with `tokens` tokens more take
 * about `seconds` at most. */
bool ses_scheduler_is_quick(ses_scheduler *s, int64_t tokens, double seconds);
/* The job is not to be computed any further, because of j->error: its client has left, or its deadline has
 * passed. */
bool ses_job_is_dropped(ses_job *j, uint64_t now);
/* Seconds until the queue will probably have been worked off, at least 1. */
int ses_scheduler_retry_after(ses_scheduler *s);

typedef struct ses_priority_stats {
    int64_t jobs, inputs, tokens; /* queued, not dispatched completely */
    double age;                   /* seconds since the oldest was queued */
} ses_priority_stats;
typedef struct ses_scheduler_stats {
    ses_priority_stats priority[SES_PRIORITIES];
    int64_t admitted_inputs, admitted_tokens; /* queued or computing */
    size_t last_sequences;
    int64_t last_tokens, batch_tokens;
    double seconds_since_progress; /* while jobs are queued; else 0 */
} ses_scheduler_stats;
ses_scheduler_stats ses_scheduler_get_stats(ses_scheduler *s);

#endif
