/* A queue of jobs that run as child processes. */
#define _POSIX_C_SOURCE 200809L
#include "job_queue.h"

#include "cli/train/train_monitor.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

typedef struct slot {
    size_t job;
    pid_t pid;
} slot;

typedef struct queue {
    const ses_job_calls *calls;
    void *ctx;
    slot slot[SES_JOBS_MAX];
    size_t n;
    bool stopping;
} queue;

static void stop(queue *q)
{
    if (q->stopping) return;
    q->stopping = true;
    for (size_t k = 0; k < q->n; k++) kill(q->slot[k].pid, SIGTERM);
}

static bool start(queue *q, size_t job, ses_err *e)
{
    int pid = 0;
    if (!q->calls->start(q->ctx, job, &pid, e)) return false;
    if (pid > 0) q->slot[q->n++] = (slot){ job, (pid_t)pid };
    return true;
}

/* Ended processes. */
static bool collect(queue *q, ses_err *e)
{
    for (size_t k = 0; k < q->n;) {
        int status = 0, pid = 0;
        pid_t r = waitpid(q->slot[k].pid, &status, WNOHANG);
        if (r == 0 || (r < 0 && errno == EINTR)) {
            k++;
            continue;
        }
        slot ended = q->slot[k];
        q->slot[k] = q->slot[--q->n];
        if (ses_train_monitor_should_stop()) stop(q); /* Ctrl-C ends children, too: perhaps this one */
        if (!q->calls->end(q->ctx, ended.job, r < 0 ? 1 << 8 : status, q->stopping, &pid, e)) return false;
        if (pid > 0) q->slot[q->n++] = (slot){ ended.job, (pid_t)pid };
    }
    return true;
}

bool ses_job_queue_run(const ses_job_calls *calls, void *ctx, size_t at_once, bool *stopped, ses_err *e)
{
    queue q = { .calls = calls, .ctx = ctx };
    bool ok = true;
    if (at_once > SES_JOBS_MAX) at_once = SES_JOBS_MAX;
    for (;;) {
        size_t job = SIZE_MAX;
        if (ses_train_monitor_should_stop()) stop(&q);
        if (ok && !q.stopping && q.n < at_once) job = calls->next(ctx);
        if (job != SIZE_MAX) {
            ok = start(&q, job, e);
            if (!ok) stop(&q);
            continue;
        }
        if (!q.n) break;
        if (!collect(&q, ok ? e : NULL)) ok = false, stop(&q);
        if (calls->idle) calls->idle(ctx);
        if (q.n) nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
    }
    *stopped = ses_train_monitor_should_stop();
    return ok;
}
