/* Runs the jobs of an experiment: `ablate`, `compress`, `curve`, `ladder`, `finetune --grid`. A job runs as
 * child processes, or in this process. Its owner keeps it in a struct of its own, plans it, and reads and
 * writes its record; states, order, progress and failures are the runner's. A signal (train_monitor.h) stops
 * the processes, which save checkpoints. The runner owns nothing; main thread only. */
#ifndef SES_CLI_JOB_RUNNER_H
#define SES_CLI_JOB_RUNNER_H

#include "cli/command.h"

enum { SES_JOBS_MAX = 256 };

typedef enum {
    SES_JOB_OPEN,
    SES_JOB_STARTED,
    SES_JOB_DONE,
    SES_JOB_FAILED,
    SES_JOB_NONE /* not part of the experiment */
} ses_job_state;

typedef struct ses_planned_job {
    const char *name; /* for messages: "lora,size=16,seed=43" */
    size_t after;     /* a job that must have ended, perhaps failed; SIZE_MAX: none */
    bool comes_first; /* starts before the others, which may wait for it */
    ses_job_state state;
    bool is_unsupported; /* trying again is of no use */
    bool is_quiet;       /* its end is not shown */
    char reason[300];    /* why it has no result; "": it was not run, or is done */
    double start;        /* seconds, of the clock */
    double seconds;      /* time of its commands */
} ses_planned_job;

/* Notes why a job has failed. */
void ses_job_fail(ses_planned_job *j, const ses_err *why);

typedef struct ses_job_runner ses_job_runner;
struct ses_job_runner {
    const ses_call *c;
    const char *noun; /* in the line of progress: "models"; NULL: jobs show their own */
    size_t n, at_once;
    double limit; /* seconds after which only job 0 starts; 0: none */
    void *ctx;
    ses_planned_job *(*job)(void *ctx, size_t i);
    /* Starts a job. *pid: its process. 0: the job has ended, and its state is set, or it was stopped. */
    bool (*start)(void *ctx, size_t i, int *pid, ses_err *e);
    /* A process of the job has succeeded. *pid: its next one; 0: none, the job is done. false: it has
     * failed. stopping: no further one may start. NULL: jobs run in this process. */
    bool (*end)(void *ctx, size_t i, bool stopping, int *pid, ses_err *e);
    char *(*log)(void *ctx, size_t i, ses_err *e); /* path of its messages; free with ses_free */
    /* A job has ended, done or failed: writes its record. NULL: it has none. */
    bool (*save)(void *ctx, size_t i, ses_err *e);
    /* Text about the result of a job that is done, shown after its name. NULL: ends of jobs are not shown. */
    const char *(*result)(void *ctx, size_t i, char *buf, size_t size);
    /* Reads the record of a job that ran in a copy of this process. NULL: jobs do not run in copies. */
    void (*load)(void *ctx, size_t i);
};

/* Runs the open jobs. The first error of `start` or `save` stops the processes. *stopped: by a signal. */
bool ses_job_runner_run(const ses_job_runner *r, bool *stopped, ses_err *e);

#endif
