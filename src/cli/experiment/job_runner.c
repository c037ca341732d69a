/* Runs jobs as child processes or in this one, several at a time. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "job_runner.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "child_process.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct slot {
    size_t job;
    pid_t pid;
} slot;

typedef struct queue {
    const ses_job_runner *r;
    slot slot[SES_JOBS_MAX];
    size_t n, done, total;
    double start;
    bool stopping;
    ses_progress line;
} queue;

void ses_job_fail(ses_planned_job *j, const ses_err *why)
{
    j->state = SES_JOB_FAILED;
    j->is_unsupported = why->code == SES_EUNSUPPORTED;
    ses_quote(j->reason, sizeof j->reason, why->msg, strlen(why->msg));
}

static ses_planned_job *job_at(const queue *q, size_t i) { return q->r->job(q->r->ctx, i); }

/* ---- one job ---- */

static void show(queue *q, size_t i)
{
    const ses_planned_job *j = job_at(q, i);
    char text[300];
    q->done++;
    if (q->r->c->quiet || j->is_quiet || !q->r->result) return;
    if (q->r->noun) ses_progress_end(&q->line);
    fprintf(stderr, "[%zu/%zu] %s: %s\n", q->done, q->total, j->name,
            j->state == SES_JOB_FAILED ? j->reason : q->r->result(q->r->ctx, i, text, sizeof text));
}

/* Stops the other jobs. */
static void stop(queue *q)
{
    if (q->stopping) return;
    q->stopping = true;
    for (size_t k = 0; k < q->n; k++) kill(q->slot[k].pid, SIGTERM);
}

/* After a job has ended, or was stopped. */
static bool close_job(queue *q, size_t i, ses_err *e)
{
    ses_planned_job *j = job_at(q, i);
    if (j->state == SES_JOB_STARTED) { /* stopped */
        j->state = SES_JOB_OPEN;
        stop(q);
        return true;
    }
    if (q->r->save && !q->r->save(q->r->ctx, i, e)) return false;
    show(q, i);
    return true;
}

static bool start(queue *q, size_t i, ses_err *e)
{
    ses_planned_job *j = job_at(q, i);
    int pid = 0;
    j->state = SES_JOB_STARTED;
    j->start = ses_seconds();
    if (!q->r->start(q->r->ctx, i, &pid, e)) return false;
    if (pid <= 0) return close_job(q, i, e);
    q->slot[q->n++] = (slot){ i, (pid_t)pid };
    return true;
}

static void fail_process(const queue *q, size_t i, int status)
{
    ses_planned_job *j = job_at(q, i);
    char *log = q->r->log(q->r->ctx, i, NULL);
    j->state = SES_JOB_FAILED;
    if (WIFSIGNALED(status))
        snprintf(j->reason, sizeof j->reason, "ended by signal %d", WTERMSIG(status));
    else
        ses_child_reason(log ? log : "", j->reason, sizeof j->reason);
    ses_free(log);
}

static bool end_process(queue *q, size_t i, int status, ses_err *e)
{
    ses_planned_job *j = job_at(q, i);
    ses_err why = { 0 };
    int pid = 0;
    bool ok = WIFEXITED(status) && !WEXITSTATUS(status);
    j->seconds = ses_seconds() - j->start;
    if (ok && !q->r->end(q->r->ctx, i, q->stopping, &pid, &why))
        ses_job_fail(j, &why);
    else if (!ok && !q->stopping)
        fail_process(q, i, status);
    if (pid <= 0) return close_job(q, i, e);
    q->slot[q->n++] = (slot){ i, (pid_t)pid };
    return true;
}

/* ---- the queue ---- */

/* The next job that may start; SIZE_MAX: none now. */
static size_t next(const queue *q)
{
    bool late = q->r->limit > 0 && ses_seconds() - q->start > q->r->limit;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < (late ? 1 : q->r->n); i++) {
            const ses_planned_job *j = job_at(q, i);
            bool waits = j->after != SIZE_MAX && job_at(q, j->after)->state < SES_JOB_DONE;
            if (j->state == SES_JOB_OPEN && j->comes_first == !pass && !waits) return i;
        }
    return SIZE_MAX;
}

/* Ended processes. */
static bool collect(queue *q, ses_err *e)
{
    for (size_t k = 0; k < q->n;) {
        int status = 0;
        pid_t r = waitpid(q->slot[k].pid, &status, WNOHANG);
        if (r == 0 || (r < 0 && errno == EINTR)) {
            k++;
            continue;
        }
        slot ended = q->slot[k];
        q->slot[k] = q->slot[--q->n];
        if (ses_train_monitor_should_stop()) stop(q); /* Ctrl-C ends children, too: perhaps this one */
        if (!end_process(q, ended.job, r < 0 ? 1 << 8 : status, e)) return false;
    }
    return true;
}

static bool run_queue(queue *q, ses_err *e)
{
    bool ok = true;
    size_t at_once = q->r->at_once < SES_JOBS_MAX ? q->r->at_once : SES_JOBS_MAX;
    for (;;) {
        size_t job = SIZE_MAX;
        if (ses_train_monitor_should_stop()) stop(q);
        if (ok && !q->stopping && q->n < at_once) job = next(q);
        if (job != SIZE_MAX) {
            ok = start(q, job, e);
            if (!ok) stop(q);
            continue;
        }
        if (!q->n) break;
        if (!collect(q, ok ? e : NULL)) ok = false, stop(q);
        if (q->r->noun) ses_progress_show(&q->line, (int64_t)q->done);
        if (q->n) nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
    }
    return ok;
}

/* ---- copies of this process ---- */

/* Runs open jobs in their order; `taken`, shared with other processes, counts the ones that have begun. */
static bool run_some(queue *q, _Atomic size_t *taken, ses_err *e)
{
    size_t number = 0, mine = atomic_fetch_add(taken, 1);
    bool ok = true;
    for (size_t i = 0; ok && i < q->r->n && !ses_train_monitor_should_stop() && !q->stopping; i++) {
        if (job_at(q, i)->state != SES_JOB_OPEN || number++ < mine) continue;
        q->done = mine;
        ok = start(q, i, e);
        mine = atomic_fetch_add(taken, 1);
    }
    return ok;
}

/* Waits for the copies, to which a signal is passed on. */
static bool wait_all(queue *q)
{
    bool ok = true;
    while (q->n) {
        int status = 0;
        pid_t r = waitpid(q->slot[q->n - 1].pid, &status, 0);
        if (ses_train_monitor_should_stop()) stop(q);
        if (r < 0 && errno == EINTR) continue;
        ok &= r > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
        q->n--;
    }
    return ok;
}

static bool run_copies(queue *q, _Atomic size_t *taken, ses_err *e)
{
    fflush(NULL);
    for (; q->n < q->r->at_once && q->n < SES_JOBS_MAX; q->n++) {
        pid_t pid = q->slot[q->n].pid = fork();
        if (pid < 0) break;
        if (pid) continue;
        ses_err why = { 0 };
        bool ok = run_some(q, taken, &why);
        if (!ok) fprintf(stderr, "sesame: %s\n", why.msg);
        fflush(NULL);
        _exit(ok ? 0 : 1);
    }
    if (!q->n) return ses_fail(e, SES_EIO, "--jobs: a process cannot be started: %s", strerror(errno));
    bool ok = wait_all(q);
    for (size_t i = 0; i < q->r->n; i++)
        if (job_at(q, i)->state == SES_JOB_OPEN) q->r->load(q->r->ctx, i);
    return ok || ses_train_monitor_should_stop() || ses_fail(e, SES_EIO, "a process of --jobs has failed");
}

static bool copy_and_run(queue *q, ses_err *e)
{
    void *taken =
        mmap(NULL, sizeof(_Atomic size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (taken == MAP_FAILED) return ses_fail(e, SES_ENOMEM, "out of memory");
    bool ok = run_copies(q, taken, e);
    munmap(taken, sizeof(_Atomic size_t));
    return ok;
}

/* ---- all jobs ---- */

bool ses_job_runner_run(const ses_job_runner *r, bool *stopped, ses_err *e)
{
    queue q = { .r = r, .start = ses_seconds() };
    for (size_t i = 0; i < r->n; i++) q.total += job_at(&q, i)->state == SES_JOB_OPEN;
    if (r->noun) q.line = ses_progress_start(stderr, &r->c->err, r->c->quiet, r->noun, (int64_t)q.total);
    bool ok = !r->end && r->at_once > 1 && q.total > 1 ? copy_and_run(&q, e) : run_queue(&q, e);
    if (r->noun) ses_progress_end(&q.line);
    *stopped = ses_train_monitor_should_stop();
    return ok;
}
