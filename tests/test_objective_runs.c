#define _DEFAULT_SOURCE /* mkdtemp */
/* Each objective trains a small model: losses fall, the same on any number of threads and after a resume. */
#include "objective_runs.h"

#include <math.h>
#include <stdlib.h>

enum { UPDATES = 40 };

static ses_trainer *trainer(objective_run *r, const char *dir, ses_err *e)
{
    ses_trainer_options o = { .model = r->model,
                              .generator = r->generator,
                              .source = { .ctx = r, .count = run_count, .batch = run_batch },
                              .loss = ses_objective_mix_loss,
                              .loss_ctx = r->mix,
                              .updates = UPDATES,
                              .max_grad_norm = 1,
                              .seed = 4,
                              .dir = dir };
    if (!ses_optim_defaults("adamw", &o.optim, e)) return NULL;
    o.optim.lr = 1e-2;
    return ses_trainer_new(&o, e);
}

/* Losses of a run that is stopped and resumed before update `stop`. */
static bool train(const run_case *c, int threads, int stop, const char *dir, double loss[UPDATES])
{
    objective_run r;
    ses_err e = { 0 };
    ses_step_result s;
    ses_resume_result found;
    bool ok = run_open(&r, c, threads, 2, &e);
    ses_trainer *t = ok ? trainer(&r, dir, &e) : NULL;
    for (int i = 0; t && i < UPDATES; i++) {
        if (i == stop) {
            ok = ses_trainer_save(t, &e);
            ses_trainer_free(t);
            run_close(&r);
            t = ok && run_open(&r, c, threads, 2, &e) ? trainer(&r, dir, &e) : NULL;
            if (!t || !ses_trainer_resume(t, &found, &e) || !found.found) break;
        }
        if (!ses_trainer_step(t, &s, &e)) break;
        loss[i] = s.loss;
    }
    ok = t && ses_trainer_done(t);
    CHECK_MSG(ok, "%s: %s", c->objectives, e.msg);
    ses_trainer_free(t);
    run_close(&r);
    return ok;
}

static double mean(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] / n;
    return sum;
}

static void test_run(const run_case *c, size_t number)
{
    double a[UPDATES], b[UPDATES];
    char dir[] = "/tmp/sesame-objectives-XXXXXX";
    if (!train(c, 1, -1, NULL, a)) return;
    double was = mean(a, 5), is = mean(a + UPDATES - 5, 5);
    if (c->first > 0) CHECK_MSG(a[0] < c->first, "%s: begins with a loss of %f", c->objectives, a[0]);
    CHECK_MSG(is <= c->to * was, "%s: loss from %f to %f", c->objectives, was, is);
    CHECK(mkdtemp(dir));
    if (train(c, 3, 17, dir, b))
        CHECK_MSG(!memcmp(a, b, sizeof a), "%s (%zu): stopped and on 3 threads another run", c->objectives,
                  number);
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
}

/* Accuracies and losses of an evaluation. */
static void test_measure(const run_case *c)
{
    objective_run r;
    ses_err e = { 0 };
    ses_metric_sums tally = { 0 };
    ses_batch b;
    bool ok = run_open(&r, c, 1, 2, &e);
    ses_tape *t = ok ? ses_tape_new(r.dev, &(ses_tape_options){ 0 }, &e) : NULL;
    ok = t && run_batch(&r, 0, 0, &b, &e) && ses_objective_mix_measure(r.mix, t, &b, &tally, &e);
    CHECK_MSG(ok, "%s: %s", c->objectives, e.msg);
    CHECK_MSG(tally.n >= 2, "%s", c->objectives);
    for (size_t i = 0; i < tally.n; i++) {
        double x = tally.item[i].sum / tally.item[i].count;
        bool loss = strstr(tally.item[i].name, "_loss") != NULL;
        CHECK_MSG(tally.item[i].count >= 0 && (!tally.item[i].count || (x >= 0 && x <= (loss ? 20 : 1))),
                  "%s %f", tally.item[i].name, x);
    }
    ses_tape_free(t);
    run_close(&r);
}

int main(void)
{
    for (size_t i = 0; i < SES_LEN(run_cases); i++) test_run(&run_cases[i], i), test_measure(&run_cases[i]);
    return check_report();
}
