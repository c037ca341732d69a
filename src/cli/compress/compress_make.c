/* Makes the models of candidates: runs their commands as processes, several at a time. */
#define _POSIX_C_SOURCE 200809L
#include "compress.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/jobs/child_process.h"
#include "cli/jobs/job_queue.h"
#include "cli/ui/show_values.h"
#include "train/checkpoint_dir.h"
#include "tune/finetuner.h"

#include <string.h>
#include <sys/wait.h>

/* The commands of a candidate. */
typedef struct job {
    const char *at; /* the line that runs, in the candidate's commands; NULL: not started */
    double start;
} job;

typedef struct job_run {
    ses_compress *z;
    job *job; /* one per candidate */
    size_t done, total;
    double start;
    ses_progress line;
} job_run;

/* ---- one command ---- */

/* The word after --output, or the second operand of convert and quantize; NULL: none. */
static const char *output_of(char *const *word)
{
    for (size_t i = 2; word[0] && word[1] && word[i]; i++)
        if (!strcmp(word[i], "--output") || !strcmp(word[i], "--write")) return word[i + 1];
    return word[0] && word[1] && word[2] ? word[3] : NULL;
}

/* Starts the command of a line. threads 0: the command's own number. */
static int execute(char **word, const char *log, bool resume, int threads, ses_err *e)
{
    char count[24], *argv[512];
    size_t n = 0;
    for (; word[n] && n < SES_LEN(argv) - 6; n++) argv[n] = word[n];
    argv[n++] = (char *)(uintptr_t) "--quiet";
    if (threads && strcmp(word[1], "convert") != 0) {
        snprintf(count, sizeof count, "%d", threads);
        argv[n++] = (char *)(uintptr_t) "--threads";
        argv[n++] = count;
    }
    if (resume) argv[n++] = (char *)(uintptr_t) "--resume";
    argv[n] = NULL;
    return ses_child_start(argv, log, NULL, e);
}

/* Starts the command at job[i].at. Output of an earlier call is continued or removed. */
static bool start(job_run *s, size_t i, int *pid, ses_err *e)
{
    const ses_compress *z = s->z;
    const char *at = s->job[i].at;
    char **word = ses_compress_split(at, (size_t)(ses_compress_step_end(at) - at), e),
         *log = ses_compress_path(z, i, ".log", e);
    const char *out = word ? output_of(word) : NULL;
    bool ok = word && log, resume = ok && out && !strcmp(word[1], "finetune") && ses_checkpoint_any(out);
    int threads = ses_compute_threads(&z->a->tune.compute) / (int)z->a->jobs;
    if (ok && out && !resume && ses_path_exists(out)) ok = ses_dir_remove_all(out, e);
    *pid = ok ? execute(word, log, resume, threads > 1 ? threads : 1, e) : 0;
    ses_free(word);
    ses_free(log);
    return ok && *pid > 0;
}

/* Why the commands of a candidate failed: from its log. */
static void read_reason(const ses_compress *z, size_t i, char *reason, size_t size)
{
    char *path = ses_compress_path(z, i, ".log", NULL);
    ses_child_reason(path ? path : "", reason, size);
    ses_free(path);
}

/* ---- candidates ---- */

static void fail(ses_candidate *x, ses_err *why)
{
    x->state = SES_CANDIDATE_FAILED;
    x->is_unsupported = why->code == SES_EUNSUPPORTED;
    ses_quote(x->reason, sizeof x->reason, why->msg, strlen(why->msg));
}

static void show(job_run *s, const ses_candidate *x)
{
    char time[SES_NUMBER_TEXT];
    s->done++;
    if (s->z->c->quiet) return;
    ses_progress_end(&s->line);
    if (x->state == SES_CANDIDATE_MADE)
        fprintf(stderr, "[%zu/%zu] %s: made in %s\n", s->done, s->total, x->name,
                ses_elapsed_text(time, x->seconds));
    else
        fprintf(stderr, "[%zu/%zu] %s: %s\n", s->done, s->total, x->name, x->reason);
}

/* Candidates that cannot be made: the method does not fit, needs data, or the one before it failed. */
static bool is_excluded(const ses_compress *z, size_t i, ses_err *why)
{
    const ses_candidate *x = &z->candidate[i], *parent = &z->candidate[x->parent];
    const char *task = z->a->tune.data.task;
    if (!x->method) return z->is_new && !z->train && !ses_fail(why, SES_EUSAGE, "needs --data");
    if (parent->state == SES_CANDIDATE_FAILED)
        return !ses_fail(why, parent->is_unsupported ? SES_EUNSUPPORTED : SES_EARG, "%s was not made",
                         parent->name);
    if (x->method->trains && !z->train)
        return !ses_fail(why, SES_EUNSUPPORTED, "needs training data: --data FILE");
    if (x->method->tasks && !ses_list_has(x->method->tasks, z->task->name))
        return !ses_fail(why, SES_EUNSUPPORTED, "not for the task %s", task);
    return false;
}

static bool begin(void *ctx, size_t i, int *pid, ses_err *e)
{
    job_run *s = ctx;
    ses_candidate *x = &s->z->candidate[i];
    ses_err why = { 0 };
    x->commands.len = 0;
    if (is_excluded(s->z, i, &why) || !ses_compress_put_steps(s->z, i, &x->commands, &why)) {
        fail(x, &why);
        show(s, x);
        return ses_compress_write_candidate(s->z, i, e);
    }
    if (x->method && x->method->kind == SES_COMPRESS_RULE) { /* the model of its parent */
        x->state = SES_CANDIDATE_MADE;
        s->done++;
        return ses_compress_note_files(s->z, i, e) && ses_compress_write_candidate(s->z, i, e);
    }
    s->job[i] = (job){ .at = x->commands.data, .start = ses_seconds() };
    return start(s, i, pid, e);
}

/* After a command of a candidate has ended: the next one, or the end of the candidate. */
static bool go_on(void *ctx, size_t i, int status, bool stopping, int *pid, ses_err *e)
{
    job_run *s = ctx;
    job *j = &s->job[i];
    ses_candidate *x = &s->z->candidate[i];
    bool ok = WIFEXITED(status) && !WEXITSTATUS(status);
    const char *end = ses_compress_step_end(j->at);
    if (ok && end[0] && end[1] && !stopping) {
        j->at = end + 1;
        return start(s, i, pid, e);
    }
    if (ok && (!end[0] || !end[1])) {
        x->seconds += ses_seconds() - j->start;
        x->state = SES_CANDIDATE_MADE;
    } else if (!stopping) {
        x->state = SES_CANDIDATE_FAILED;
        read_reason(s->z, i, x->reason, sizeof x->reason);
    }
    bool written = x->state == SES_CANDIDATE_OPEN ||
                   ((x->state != SES_CANDIDATE_MADE || ses_compress_note_files(s->z, i, e)) &&
                    ses_compress_write_candidate(s->z, i, e));
    if (x->state != SES_CANDIDATE_OPEN) show(s, x);
    j->at = NULL;
    return written;
}

/* The next candidate that can be started or excluded. After --budget the original alone. */
static size_t next(void *ctx)
{
    const job_run *s = ctx;
    const ses_compress *z = s->z;
    bool late = z->a->budget > 0 && ses_seconds() - s->start > 60 * z->a->budget;
    for (size_t i = 0; i < (late ? 1 : z->n); i++) {
        ses_candidate_state parent = z->candidate[z->candidate[i].parent].state;
        if (z->candidate[i].state == SES_CANDIDATE_OPEN && !s->job[i].at &&
            (!i || parent != SES_CANDIDATE_OPEN))
            return i;
    }
    return SIZE_MAX;
}

static void idle(void *ctx)
{
    job_run *s = ctx;
    ses_progress_show(&s->line, (int64_t)s->done);
}

bool ses_compress_make(ses_compress *z, bool *stopped, ses_err *e)
{
    static const ses_job_calls calls = { next, begin, go_on, idle };
    job_run s = { .z = z, .start = ses_seconds(), .job = ses_alloc_array(z->n, sizeof *s.job, e) };
    if (!s.job) return false;
    for (size_t i = 0; i < z->n; i++) s.total += z->candidate[i].state == SES_CANDIDATE_OPEN;
    if (s.total < z->n && !z->c->quiet && z->a->resume)
        fprintf(stderr, "%zu model%s made, %zu %s left\n", z->n - s.total,
                z->n - s.total == 1 ? " is" : "s are", s.total, s.total == 1 ? "is" : "are");
    s.line = ses_progress_start(stderr, &z->c->err, z->c->quiet, "models", (int64_t)s.total);
    bool ok = ses_job_queue_run(&calls, &s, (size_t)z->a->jobs, stopped, e);
    ses_progress_end(&s.line);
    ses_free(s.job);
    for (size_t i = 0; ok && !*stopped && i < z->n; i++)
        if (z->candidate[i].state == SES_CANDIDATE_OPEN && !*z->candidate[i].reason)
            snprintf(z->candidate[i].reason, sizeof z->candidate[i].reason,
                     "not made: --budget was used up; --resume continues");
    return ok;
}
