/* The trainer and its evaluations: the schedule plateau, the start of the average of asgd. */
#define _DEFAULT_SOURCE
#include "trainer_fixture.h"

#include <math.h>
#include <unistd.h>

static char folder[64];

static void prepare_plateau(run *r, ses_err *e)
{
    run_prepare(r, 1, folder);
    r->o.eval_every = 1;
    r->o.updates = 8;
    r->o.lower_is_better = r->o.keep_last = true;
    CHECK(ses_schedule_defaults("plateau", &r->o.schedule, e));
    r->o.schedule.patience = 1;
    r->o.schedule.decay = 0.25;
    CHECK(run_start(r, e));
}

/* The second evaluation in a row without improvement lowers the rate, also across a resume. The last weights
 * stay. */
static void test_plateau(void)
{
    static const double lr[8] = { 0.01, 0.01, 0.01, 0.01, 0.0025, 0.0025, 0.000625, 0.000625 };
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    ses_resume_result from;
    for (int resumed = 0; resumed < 2; resumed++) {
        watch w = { .stop_at = resumed ? 3 * ACCUMULATE : -1,
                    .r = &r,
                    .metric = { 3, 2, 2, 2.5, 2.1, 2.2, 1, 2 } };
        ses_trainer_hooks h = { .ctx = &w, .evaluate = evaluate, .on_step = stepped, .should_stop = stop };
        prepare_plateau(&r, &e);
        CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
        if (resumed) {
            CHECK(end == SES_RUN_STOPPED);
            run_free(&r);
            prepare_plateau(&r, &e);
            w.stop_at = -1;
            CHECK(ses_trainer_resume(r.trainer, &from, &e) && from.found);
            CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
        }
        for (int i = 0; i < 8; i++) CHECK_MSG(fabs(w.lr[i] - lr[i]) < 1e-12, "update %d: %g", i, w.lr[i]);
        const ses_train_state *at = ses_trainer_state(r.trainer);
        CHECK(end == SES_RUN_COMPLETE && at->best == 1 && at->best_update == -1 && at->decays == 2);
        CHECK(!ses_trainer_best_dir(r.trainer));
        run_free(&r);
        empty(folder);
    }
    prepare_plateau(&r, &e);
    CHECK(!ses_trainer_run(r.trainer, &(ses_trainer_hooks){ 0 }, &end, &e));
    CHECK_STR(e.msg, "schedule plateau needs evaluations: give evaluation data");
    run_free(&r);
    empty(folder);
}

static void prepare_asgd(run *r, ses_err *e)
{
    run_prepare(r, 1, folder);
    r->o.eval_every = 1;
    r->o.updates = 8;
    r->o.lower_is_better = r->o.keep_last = true;
    CHECK(ses_optim_defaults("asgd", &r->o.optim, e));
    r->o.optim.average_trigger = 2;
    CHECK(run_start(r, e));
}

/* The average starts at the first evaluation that is worse than the best one before the last 2; a resumed run
 * knows the evaluations before it and has the same bits. */
static void test_asgd(void)
{
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    ses_resume_result from;
    ses_real *want = NULL;
    size_t n = 0, m = 0;
    for (int stop_at = 0; stop_at < 8; stop_at += 3) {
        watch w = { .stop_at = stop_at ? stop_at * ACCUMULATE : -1,
                    .r = &r,
                    .metric = { 3, 2, 2.5, 2.4, 2.2, 1, 1, 2 } };
        ses_trainer_hooks h = { .ctx = &w, .evaluate = evaluate, .on_step = stepped, .should_stop = stop };
        prepare_asgd(&r, &e);
        CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
        if (stop_at) {
            CHECK(end == SES_RUN_STOPPED);
            run_free(&r);
            prepare_asgd(&r, &e);
            w.stop_at = -1;
            CHECK(ses_trainer_resume(r.trainer, &from, &e) && from.found);
            CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
        }
        CHECK_MSG(ses_trainer_state(r.trainer)->average_from == 5, "averaged from update %d",
                  (int)ses_trainer_state(r.trainer)->average_from);
        ses_real *got = bits(&r, stop_at ? &m : &n);
        if (stop_at) CHECK(n == m && !memcmp(want, got, n));
        if (stop_at) free(got);
        if (!stop_at) want = got;
        run_free(&r);
        empty(folder);
    }
    free(want);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/sesame-evaluations-%ld", (long)getpid());
    test_plateau();
    test_asgd();
    return check_report();
}
