/* Ablation studies: the whole command. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "cli/train/command_text.h"
#include "cli/train/train_monitor.h"

void ses_ablate_free(ses_ablate *s)
{
    for (size_t i = 0; i < s->n_jobs; i++) {
        ses_free(s->job[i].dir);
        ses_json_free(s->job[i].record);
    }
    ses_free(s->job);
    ses_free(s->command);
    ses_json_free(s->recipe);
    ses_json_free(s->set);
    ses_json_free(s->tune_set);
    ses_strmap_free(&s->checked);
    ses_arena_free(&s->mem);
}

static bool describe(ses_ablate *s, ses_err *e)
{
    ses_command_text t;
    if (!ses_command_text_with_values(s->c, NULL, 0, &t, e)) return false;
    s->command = t.line;
    ses_free(t.options);
    return true;
}

static bool read_jobs(ses_ablate *s, ses_err *e)
{
    for (size_t i = 0; i < s->n_jobs; i++) {
        ses_ablate_job *j = &s->job[i];
        bool stale = j->base.after != SIZE_MAX && s->job[j->base.after].base.state != SES_JOB_DONE;
        if (!(stale ? ses_ablate_reset_job(s, j, e) : ses_ablate_read_job(s, j, e)))
            return ses_wrap(e, "%s", j->base.name);
    }
    return true;
}

static bool run(ses_ablate *s, bool *stopped, ses_err *e)
{
    if (!ses_dir_make(s->a->output, e)) return false;
    ses_dir_lock *lock = ses_dir_lock_new(s->a->output, e);
    if (!lock) return false;
    bool ok = read_jobs(s, e) && ses_ablate_run_jobs(s, stopped, e) && ses_ablate_fill(s, e) &&
              ses_ablate_write_json(s, e) && (*stopped || ses_ablate_show(s, e));
    ses_dir_lock_free(lock);
    return ok;
}

/* Whether all jobs are done; a message gives the number of the others. */
static bool report_failures(const ses_ablate *s)
{
    size_t n = 0;
    const ses_ablate_job *first = NULL;
    for (size_t i = 0; i < s->n_jobs; i++) {
        if (s->job[i].base.state != SES_JOB_FAILED) continue;
        if (!first) first = &s->job[i];
        n++;
    }
    if (n)
        fprintf(stderr,
                "sesame: %zu of %zu jobs failed, see %s/" SES_ABLATE_LOG
                "; the same command tries them again\n",
                n, s->n_jobs, first->dir);
    return !n;
}

static bool check_args(const ses_ablate_args *a, ses_err *e)
{
    ses_dtype t = ses_compute_device_options(&a->compute).dtype;
    if (t != SES_F32 && t != SES_BF16)
        return ses_fail(e, SES_EUSAGE, "--dtype: models are trained in f32 or bf16");
    return !(a->resume && a->overwrite) ||
           ses_fail(e, SES_EUSAGE, "--resume continues a study, --overwrite repeats it: set one");
}

bool ses_ablate_command(ses_call *c, ses_err *e)
{
    ses_ablate s = { .c = c, .a = c->args, .path = c->operands[0] };
    bool stopped = false;
    ses_train_monitor_catch_signals();
    bool ok = check_args(s.a, e) && ses_ablate_read(&s, e) && ses_ablate_plan(&s, e) &&
              ses_ablate_check_inputs(&s, e) && describe(&s, e);
    if (ok && !c->quiet) ses_ablate_show_overlap(&s);
    if (ok && s.a->plan)
        ok = (!ses_path_exists(s.a->output) || read_jobs(&s, e)) && ses_ablate_print_plan(&s, e);
    else if (ok)
        ok = run(&s, &stopped, e);
    if (ok && stopped) {
        fprintf(stderr, "stopped; the same command continues\n");
        ok = false; /* main exits with the code of the signal */
    } else if (ok && !s.a->plan)
        ok = report_failures(&s);
    ses_ablate_free(&s);
    return ok;
}
