/* Runs the jobs of a study as child processes. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/jobs/child_process.h"
#include "cli/jobs/job_queue.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>

typedef struct job_run {
    ses_ablate *s;
    size_t done, total;
    ses_progress line;
} job_run;

/* ---- the command line of a job ---- */

/* Adds a word; "{model}" in it, and in a pretraining run the name of the run it starts from, become the
 * folder of the model. */
static bool put_word(ses_ablate *s, const ses_ablate_job *j, ses_ablate_words *w, const char *word,
                     bool *used, ses_err *e)
{
    static const char variable[] = "{model}";
    const char *model = ses_ablate_model_of(s, j), *at = model ? strstr(word, variable) : NULL,
               *equal = strchr(word, '=');
    size_t from = s->run[j->run].from, n = sizeof variable - 1;
    if (!at && equal && from != SIZE_MAX && j->task == SIZE_MAX &&
        ses_ablate_is_model(s, &s->run[from], equal + 1))
        at = equal + 1, n = strlen(at);
    if (!at) return ses_ablate_add_word(s, w, word, "", e);
    ses_buf b = { 0 };
    ses_buf_append(&b, word, (size_t)(at - word));
    ses_buf_appendf(&b, "%s%s", model, at + n);
    bool ok = ses_buf_ok(&b, e) && ses_ablate_add_word(s, w, b.data, "", e);
    ses_buf_free(&b);
    *used = true;
    return ok;
}

static bool has_option(const ses_ablate_job *j, const char *name)
{
    for (size_t i = 0; i < j->n_words; i++)
        if (!strncmp(j->word[i], name, strlen(name))) return true;
    return false;
}

/* Options of the machine, which change no result. */
static bool put_machine(ses_ablate *s, const ses_ablate_job *j, ses_ablate_words *w, ses_err *e)
{
    const ses_compute_args *a = &s->a->compute;
    int threads = ses_compute_threads(a) / (int)s->a->jobs;
    char count[24];
    snprintf(count, sizeof count, "%d", threads > 1 ? threads : 1);
    return (has_option(j, "--threads=") || ses_ablate_add_word(s, w, "--threads=", count, e)) &&
           (a->isa < 0 || has_option(j, "--isa=") ||
            ses_ablate_add_word(s, w, "--isa=", ses_isa_name(ses_compute_isa(a)), e)) &&
           (!strcmp(a->device, "cpu") || has_option(j, "--device=") ||
            ses_ablate_add_word(s, w, "--device=", a->device, e));
}

/* The whole command; resume: its folder has a checkpoint. */
static bool put_command(ses_ablate *s, const ses_ablate_job *j, bool resume, ses_ablate_words *w, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    const ses_command *c = t ? t->command : ses_command_find("pretrain");
    const char *model = ses_ablate_model_of(s, j), given[] = "--model=";
    bool trains = !t || t->tunes, used = false;
    bool ok = ses_ablate_add_word(s, w, "sesame", "", e) && ses_ablate_add_word(s, w, c->name, "", e);
    if (ok && model && c->has_model_operand) ok = ses_ablate_add_word(s, w, model, "", e);
    for (size_t i = 0; ok && i < j->n_words; i++)
        ok = (t && model && !strncmp(j->word[i], given, sizeof given - 1)) ||
             put_word(s, j, w, j->word[i], &used, e);
    if (ok && t && model && !c->has_model_operand && !used) ok = ses_ablate_add_word(s, w, given, model, e);
    if (ok && trains)
        ok = ses_ablate_add_word(s, w, "--output=", j->dir, e) &&
             ses_ablate_add_word(s, w, resume ? "--resume" : "--overwrite", "", e);
    return ok && (trains || ses_ablate_add_word(s, w, "--json", "", e)) && put_machine(s, j, w, e);
}

bool ses_ablate_print_plan(ses_ablate *s, ses_err *e)
{
    ses_buf out = { 0 };
    for (size_t i = 0; i < s->n_jobs; i++) {
        ses_ablate_words w = { 0 };
        if (!put_command(s, &s->job[i], false, &w, e)) return ses_buf_free(&out), false;
        if (s->job[i].state == SES_JOB_DONE) ses_buf_puts(&out, "# finished: ");
        for (size_t k = 0; k < w.n; k++) {
            if (k) ses_buf_put(&out, ' ');
            ses_shell_word_put(&out, w.word[k], strlen(w.word[k]));
        }
        ses_buf_put(&out, '\n');
    }
    bool ok = ses_buf_ok(&out, e) && ses_stdout_write(out.data, out.len, e);
    ses_buf_free(&out);
    return ok;
}

/* ---- one job ---- */

static bool start(void *ctx, size_t job, int *pid, ses_err *e)
{
    job_run *x = ctx;
    ses_ablate_job *j = &x->s->job[job];
    const ses_ablate_task *t = ses_ablate_task_of(x->s, j);
    ses_ablate_words w = { 0 };
    bool resume = false;
    char *log = ses_path_join(j->dir, SES_ABLATE_LOG, e),
         *out = t && !t->tunes ? ses_path_join(j->dir, SES_ABLATE_OUTPUT, e) : NULL;
    bool ok = log && ses_ablate_begin_job(x->s, j, &resume, e) && put_command(x->s, j, resume, &w, e);
    if (ok && !resume) ok = ses_file_remove(log, e);
    j->state = SES_JOB_STARTED;
    j->start = ses_seconds();
    *pid = ok ? ses_child_start(w.word, log, out, e) : 0;
    ses_free(log);
    ses_free(out);
    return ok && *pid > 0;
}

static void show(job_run *x, const ses_ablate_job *j)
{
    char name[2 * SES_ABLATE_FOLDER], time[SES_NUMBER_TEXT];
    const ses_ablate_task *t = ses_ablate_task_of(x->s, j);
    x->done++;
    if (x->s->c->quiet) return;
    ses_progress_end(&x->line);
    fprintf(stderr, "[%zu/%zu] %s: ", x->done, x->total, ses_ablate_job_name(x->s, j, name, sizeof name));
    if (j->state == SES_JOB_FAILED)
        fprintf(stderr, "%s\n", j->reason);
    else if (t)
        fprintf(stderr, "%s %.4f, %s\n", t->metric, ses_ablate_score(x->s, j),
                ses_elapsed_text(time, j->seconds));
    else
        fprintf(stderr, "pretrained in %s\n", ses_elapsed_text(time, j->seconds));
}

/* Tasks of models that were not made, and runs that start from these models. A job comes after the one that
 * makes its model. */
static void fail_tasks(job_run *x)
{
    for (size_t i = 0; i < x->s->n_jobs; i++) {
        ses_ablate_job *j = &x->s->job[i];
        if (j->after == SIZE_MAX || x->s->job[j->after].state != SES_JOB_FAILED || j->state != SES_JOB_OPEN)
            continue;
        j->state = SES_JOB_FAILED;
        snprintf(j->reason, sizeof j->reason, "the pretraining of its model failed");
        x->done++;
    }
}

static bool end(void *ctx, size_t job, int status, bool stopping, int *pid, ses_err *e)
{
    job_run *x = ctx;
    ses_ablate_job *j = &x->s->job[job];
    ses_err why = { 0 };
    bool ok = WIFEXITED(status) && !WEXITSTATUS(status);
    (void)e;
    *pid = 0;
    j->seconds = ses_seconds() - j->start;
    if (!ok && stopping) return j->state = SES_JOB_OPEN, true;
    char *log = ses_path_join(j->dir, SES_ABLATE_LOG, &why);
    if (ok && ses_ablate_finish_job(x->s, j, &why)) {
        j->state = SES_JOB_DONE;
    } else {
        j->state = SES_JOB_FAILED;
        if (!ok && log && WIFSIGNALED(status))
            snprintf(j->reason, sizeof j->reason, "ended by signal %d", WTERMSIG(status));
        else if (!ok && log)
            ses_child_reason(log, j->reason, sizeof j->reason);
        else
            ses_quote(j->reason, sizeof j->reason, why.msg, strlen(why.msg));
    }
    ses_free(log);
    show(x, j);
    if (j->state == SES_JOB_FAILED) fail_tasks(x);
    return true;
}

/* ---- all jobs ---- */

static bool may_start(const ses_ablate *s, const ses_ablate_job *j)
{
    return j->state == SES_JOB_OPEN && (j->after == SIZE_MAX || s->job[j->after].state == SES_JOB_DONE);
}

/* Pretraining runs first: they are the longest, and others wait for them. */
static size_t next(void *ctx)
{
    const ses_ablate *s = ((const job_run *)ctx)->s;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < s->n_jobs; i++)
            if ((s->job[i].task == SIZE_MAX) == !pass && may_start(s, &s->job[i])) return i;
    return SIZE_MAX;
}

static void idle(void *ctx)
{
    job_run *x = ctx;
    ses_progress_show(&x->line, (int64_t)x->done);
}

bool ses_ablate_run_jobs(ses_ablate *s, bool *stopped, ses_err *e)
{
    static const ses_job_calls calls = { next, start, end, idle };
    job_run x = { .s = s };
    for (size_t i = 0; i < s->n_jobs; i++) x.total += s->job[i].state == SES_JOB_OPEN;
    if (!s->c->quiet)
        fprintf(stderr, "%zu job%s: %zu finished before, %zu left, %lld at a time\n", s->n_jobs,
                s->n_jobs == 1 ? "" : "s", s->n_jobs - x.total, x.total, (long long)s->a->jobs);
    x.line = ses_progress_start(stderr, &s->c->err, s->c->quiet, "jobs", (int64_t)x.total);
    bool ok = ses_job_queue_run(&calls, &x, (size_t)s->a->jobs, stopped, e);
    ses_progress_end(&x.line);
    return ok;
}
