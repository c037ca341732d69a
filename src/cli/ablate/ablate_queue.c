/* Runs the jobs of a study as child processes. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/experiment/child_process.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"

#include <string.h>

/* ---- the command line of a job ---- */

/* Adds a word; "{model}" in it, and in a pretraining run the name of the run it starts from, become the
 * folder of the model. */
static bool put_word(ses_ablate *s, const ses_ablate_job *j, ses_ablate_argv *w, const char *word, bool *used,
                     ses_err *e)
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
static bool put_machine(ses_ablate *s, const ses_ablate_job *j, ses_ablate_argv *w, ses_err *e)
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
static bool put_command(ses_ablate *s, const ses_ablate_job *j, bool resume, ses_ablate_argv *w, ses_err *e)
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
        ses_ablate_argv w = { 0 };
        if (!put_command(s, &s->job[i], false, &w, e)) return ses_buf_free(&out), false;
        if (s->job[i].base.state == SES_JOB_DONE) ses_buf_puts(&out, "# finished: ");
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

static ses_planned_job *job_at(void *ctx, size_t i) { return &((ses_ablate *)ctx)->job[i].base; }

static char *log_of(void *ctx, size_t i, ses_err *e)
{
    return ses_path_join(((ses_ablate *)ctx)->job[i].dir, SES_ABLATE_LOG, e);
}

static bool start(void *ctx, size_t i, int *pid, ses_err *e)
{
    ses_ablate *s = ctx;
    ses_ablate_job *j = &s->job[i];
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    ses_ablate_argv w = { 0 };
    bool resume = false;
    if (j->base.after != SIZE_MAX && s->job[j->base.after].base.state == SES_JOB_FAILED) {
        snprintf(j->base.reason, sizeof j->base.reason, "the pretraining of its model failed");
        j->base.state = SES_JOB_FAILED;
        return true;
    }
    char *log = log_of(s, i, e), *out = t && !t->tunes ? ses_path_join(j->dir, SES_ABLATE_OUTPUT, e) : NULL;
    bool ok = log && ses_ablate_begin_job(s, j, &resume, e) && put_command(s, j, resume, &w, e);
    if (ok && !resume) ok = ses_file_remove(log, e);
    *pid = ok ? ses_child_start(w.word, log, out, e) : 0;
    ses_free(log);
    ses_free(out);
    return ok && *pid > 0;
}

static bool end(void *ctx, size_t i, bool stopping, int *pid, ses_err *e)
{
    ses_ablate *s = ctx;
    ses_ablate_job *j = &s->job[i];
    (void)stopping, (void)pid;
    if (ses_ablate_finish_job(s, j, e)) j->base.state = SES_JOB_DONE;
    return j->base.state == SES_JOB_DONE;
}

static const char *result(void *ctx, size_t i, char *buf, size_t size)
{
    const ses_ablate *s = ctx;
    const ses_ablate_job *j = &s->job[i];
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    char time[SES_NUMBER_TEXT];
    ses_elapsed_text(time, j->base.seconds);
    if (t)
        snprintf(buf, size, "%s %.4f, %s", t->metric, ses_ablate_score(s, j), time);
    else
        snprintf(buf, size, "pretrained in %s", time);
    return buf;
}

bool ses_ablate_run_jobs(ses_ablate *s, bool *stopped, ses_err *e)
{
    ses_job_runner r = { .c = s->c,
                         .noun = "jobs",
                         .n = s->n_jobs,
                         .at_once = (size_t)s->a->jobs,
                         .ctx = s,
                         .job = job_at,
                         .start = start,
                         .end = end,
                         .log = log_of,
                         .result = result };
    size_t left = 0;
    for (size_t i = 0; i < s->n_jobs; i++) left += s->job[i].base.state == SES_JOB_OPEN;
    if (!s->c->quiet)
        fprintf(stderr, "%zu job%s: %zu finished before, %zu left, %lld at a time\n", s->n_jobs,
                s->n_jobs == 1 ? "" : "s", s->n_jobs - left, left, (long long)s->a->jobs);
    return ses_job_runner_run(&r, stopped, e);
}
