/* Runs jobs as child processes, several at a time. Jobs are numbers; their owner decides by its callbacks
 * which one may start, so that jobs can wait for others. A signal (train_monitor.h) stops the processes,
 * which save checkpoints. The queue owns nothing; main thread only. */
#ifndef SES_CLI_JOB_QUEUE_H
#define SES_CLI_JOB_QUEUE_H

#include "sesame/err.h"

enum { SES_JOBS_MAX = 64 };

typedef struct ses_job_calls {
    /* The next job to start, which is then no longer a candidate; SIZE_MAX: none now. */
    size_t (*next)(void *ctx);
    /* Starts a job. *pid: its process; 0: it has ended without one. */
    bool (*start)(void *ctx, size_t job, int *pid, ses_err *e);
    /* The process of a job has ended. stopping: the queue has asked it to. *pid: the next process of the job;
     * 0: the job has ended. */
    bool (*end)(void *ctx, size_t job, int status, bool stopping, int *pid, ses_err *e);
    void (*idle)(void *ctx); /* called while jobs run; NULL: nothing to do */
} ses_job_calls;

/* Runs until no job is left. The first error of a callback stops the processes. *stopped: by a signal. */
bool ses_job_queue_run(const ses_job_calls *calls, void *ctx, size_t at_once, bool *stopped, ses_err *e);

#endif
