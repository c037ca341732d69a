/* Every allocation of an objective fails in turn: opening a model, building a batch, loss and gradients. */
#include "oom.h"

#include "objective_runs.h"
#include "train/distill.h"
#include "train/distill/student_config.h"

static bool run(void *ctx, ses_err *e)
{
    objective_run r;
    ses_batch b;
    bool ok = run_open(&r, ctx, 1, 2, e);
    ses_tape *t = ok ? ses_tape_new(r.dev, &(ses_tape_options){ .record = true, .train = true }, e) : NULL;
    ses_tensor *l = t && run_batch(&r, 0, 0, &b, e) ? ses_objective_mix_loss(r.mix, t, &b, e) : NULL;
    if (l) ses_backward(t, l);
    ok = l && ses_tape_ok(t, e);
    ses_tape_free(t);
    run_close(&r);
    return ok;
}

/* Distillation from an identical model. */
static bool teach(void *ctx, ses_err *e)
{
    objective_run student, teacher = { 0 };
    ses_batch b;
    ses_tensor *l = NULL;
    ses_tape *t = NULL;
    ses_distill *d = NULL;
    ses_distill_options o = {
        .temperature = 2, .soft = 1, .hard = 1, .cosine = 1, .hidden = 1, .attention = 1, .relation = 1
    };
    size_t copied;
    bool ok = run_open(&student, ctx, 1, 1, e) && run_open(&teacher, ctx, 1, 1, e) &&
              ses_student_init(student.model, teacher.model, NULL, &copied, e);
    if (ok) d = ses_distill_new(&o, student.model, teacher.model, e);
    if (d && ses_objective_mix_set_teacher(student.mix, d, e))
        t = ses_tape_new(student.dev, &(ses_tape_options){ .record = true }, e);
    if (t && run_batch(&student, 0, 0, &b, e)) l = ses_objective_mix_loss(student.mix, t, &b, e);
    if (l) ses_backward(t, l);
    ok = l && ses_tape_ok(t, e);
    ses_tape_free(t);
    ses_distill_free(d);
    run_close(&student);
    run_close(&teacher);
    return ok;
}

int main(void)
{
    static const char *const swept[] = { "mlm:1,nsp:1", "rtd", "plm", "t5:2,t2t:1", "bart", "mass" };
    for (size_t i = 0; i < SES_LEN(run_cases); i++)
        for (size_t j = 0; j < SES_LEN(swept); j++)
            if (!strcmp(run_cases[i].objectives, swept[j]))
                oom_sweep(swept[j], run, (void *)(uintptr_t)&run_cases[i]);
    oom_sweep("a teacher", teach, (void *)(uintptr_t)&run_cases[0]);
    return check_report();
}
