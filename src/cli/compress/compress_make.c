/* Makes the models of candidates: runs their commands as processes, several at a time. */
#include "compress.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/experiment/child_process.h"
#include "cli/ui/show_values.h"
#include "train/checkpoint_dir.h"
#include "tune/finetuner.h"

#include <string.h>

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

static ses_planned_job *job_at(void *ctx, size_t i) { return &((ses_compress *)ctx)->candidate[i].base; }

static char *log_of(void *ctx, size_t i, ses_err *e) { return ses_compress_path(ctx, i, ".log", e); }

/* Starts the next command of a candidate. Output of an earlier call is continued or removed. */
static bool start_step(const ses_compress *z, size_t i, int *pid, ses_err *e)
{
    const char *at = z->candidate[i].step;
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

/* ---- candidates ---- */

/* Candidates that cannot be made: the method does not fit, needs data, or the one before it failed. */
static bool is_excluded(const ses_compress *z, size_t i, ses_err *why)
{
    const ses_candidate *x = &z->candidate[i], *parent = &z->candidate[x->parent];
    const char *task = z->a->tune.data.task;
    if (!x->method) return z->is_new && !z->train && !ses_fail(why, SES_EUSAGE, "needs --data");
    if (parent->base.state == SES_JOB_FAILED)
        return !ses_fail(why, parent->base.is_unsupported ? SES_EUNSUPPORTED : SES_EARG, "%s was not made",
                         parent->name);
    if (x->method->trains && !z->train)
        return !ses_fail(why, SES_EUNSUPPORTED, "needs training data: --data FILE");
    if (x->method->tasks && !ses_list_has(x->method->tasks, z->task->name))
        return !ses_fail(why, SES_EUNSUPPORTED, "not for the task %s", task);
    return false;
}

static bool start(void *ctx, size_t i, int *pid, ses_err *e)
{
    ses_compress *z = ctx;
    ses_candidate *x = &z->candidate[i];
    ses_err why = { 0 };
    x->commands.len = 0;
    if (is_excluded(z, i, &why) || !ses_compress_put_steps(z, i, &x->commands, &why)) {
        ses_job_fail(&x->base, &why);
        return true;
    }
    x->step = x->commands.data;
    if (!x->method || x->method->kind != SES_COMPRESS_RULE) return start_step(z, i, pid, e);
    x->base.state = SES_JOB_DONE; /* the model of its parent */
    x->base.is_quiet = true;
    return true;
}

/* After a command of a candidate: the next one, or the end of the candidate. */
static bool end(void *ctx, size_t i, bool stopping, int *pid, ses_err *e)
{
    ses_compress *z = ctx;
    ses_candidate *x = &z->candidate[i];
    const char *end = ses_compress_step_end(x->step);
    if (!end[0] || !end[1]) {
        x->base.state = SES_JOB_DONE;
        return true;
    }
    x->step = end + 1;
    return stopping || start_step(z, i, pid, e);
}

static bool save(void *ctx, size_t i, ses_err *e)
{
    ses_compress *z = ctx;
    return (z->candidate[i].base.state == SES_JOB_FAILED || ses_compress_note_files(z, i, e)) &&
           ses_compress_write_candidate(z, i, e);
}

static const char *result(void *ctx, size_t i, char *buf, size_t size)
{
    const ses_candidate *x = &((ses_compress *)ctx)->candidate[i];
    char time[SES_NUMBER_TEXT];
    snprintf(buf, size, "made in %s", ses_elapsed_text(time, x->base.seconds));
    return buf;
}

bool ses_compress_make(ses_compress *z, bool *stopped, ses_err *e)
{
    ses_job_runner r = { .c = z->x.c,
                         .noun = "models",
                         .n = z->n,
                         .at_once = (size_t)z->a->jobs,
                         .limit = 60 * z->a->budget,
                         .ctx = z,
                         .job = job_at,
                         .start = start,
                         .end = end,
                         .log = log_of,
                         .save = save,
                         .result = result };
    size_t left = 0;
    for (size_t i = 0; i < z->n; i++) left += z->candidate[i].base.state == SES_JOB_OPEN;
    if (left < z->n && !z->x.c->quiet && z->a->resume)
        fprintf(stderr, "%zu model%s made, %zu %s left\n", z->n - left, z->n - left == 1 ? " is" : "s are",
                left, left == 1 ? "is" : "are");
    bool ok = ses_job_runner_run(&r, stopped, e);
    for (size_t i = 0; ok && !*stopped && i < z->n; i++) {
        ses_planned_job *j = &z->candidate[i].base;
        if (j->state == SES_JOB_OPEN && !*j->reason)
            snprintf(j->reason, sizeof j->reason, "not made: --budget was used up; --resume continues");
    }
    return ok;
}
