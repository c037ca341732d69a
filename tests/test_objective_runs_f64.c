/* Gradients of every objective's loss against finite differences. Texts have one piece: mems carry no
 * gradient. */
#include "objective_runs.h"

#include <math.h>

/* The loss of the first batch; with gradients if the tape records. */
static bool loss_at(objective_run *r, ses_tape *t, double *loss, ses_err *e)
{
    ses_batch b;
    ses_real x = 0;
    ses_tape_reset(t, &(ses_tape_options){ .record = true, .seed = 3 });
    if (!run_batch(r, 0, 0, &b, e)) return false;
    ses_tensor *l = ses_objective_mix_loss(r->mix, t, &b, e);
    if (!l) return false;
    ses_backward(t, l);
    bool ok = ses_tape_ok(t, e) && ses_tape_read(t, l, &x);
    *loss = (double)x;
    return ok;
}

/* Central difference of one element of a parameter. */
static void check_number(objective_run *r, ses_tape *t, const ses_param *p, int64_t at, double grad)
{
    const double step = 1e-6; /* a larger one steps over kinks of T5's ReLU */
    double up = 0, down = 0, was = (double)p->tensor->f[at];
    ses_err e = { 0 };
    p->tensor->f[at] = (ses_real)(was + step);
    bool ok = loss_at(r, t, &up, &e);
    p->tensor->f[at] = (ses_real)(was - step);
    ok = ok && loss_at(r, t, &down, &e);
    p->tensor->f[at] = (ses_real)was;
    double slope = (up - down) / (2 * step), off = fabs(slope - grad);
    CHECK_MSG(ok && off < 1e-6 + 1e-5 * fabs(slope), "%s: %s[%lld]: gradient %.9f, slope %.9f %s",
              r->c->objectives, p->name, (long long)at, grad, slope, e.msg);
}

static void test_case(const run_case *c)
{
    objective_run r;
    ses_err e = { 0 };
    double loss;
    bool ok = run_open(&r, c, 1, 1, &e);
    ses_tape *t = ok ? ses_tape_new(r.dev, &(ses_tape_options){ .record = true }, &e) : NULL;
    ses_model *of[] = { r.model, r.generator };
    ses_rng_stream d = ses_rng_stream_of(1, 2, 3);
    for (size_t m = 0; t && m < SES_LEN(of) && of[m]; m++) {
        ses_store *s = ses_model_store(of[m]);
        for (size_t i = 0; i < ses_store_count(s); i += 3) {
            const ses_param *p = ses_store_at(s, i);
            if (p->role != SES_PARAM_TRAINED) continue;
            int64_t at = ses_draw_below(&d, ses_count(p->tensor));
            if (strstr(p->name, "embed.token")) at = (FIRST_WORD + 3) * ses_cols(p->tensor) + 2;
            for (size_t j = 0; j < SES_LEN(of) && of[j]; j++) ses_store_zero_grad(ses_model_store(of[j]));
            ok = loss_at(&r, t, &loss, &e);
            CHECK_MSG(ok, "%s: %s", c->objectives, e.msg);
            if (ok) check_number(&r, t, p, at, (double)p->tensor->grad[at]);
        }
    }
    CHECK_MSG(t, "%s: %s", c->objectives, e.msg);
    ses_tape_free(t);
    run_close(&r);
}

int main(void)
{
    for (size_t i = 0; i < SES_LEN(run_cases); i++) test_case(&run_cases[i]);
    return check_report();
}
