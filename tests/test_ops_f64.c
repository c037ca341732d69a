/* Gradients of every op against central differences, with the whole engine compiled in double precision. */
#include "check.h"
#include "op/op_check.h"

#include <math.h>

/* Gradient of input i against central differences. */
static bool check_input(ses_device *dev, const ses_op *op, const ses_case *c, const ses_trial *base, int i,
                        double *worst, ses_err *e)
{
    enum { MAX_TRIED = 48 }; /* elements tried; an odd stride visits all columns of larger inputs */
    double h = 1e-5 * (c->scale ? c->scale : 1), largest = 0, error = 0;
    int64_t n = base->n_grad[i], stride = n / MAX_TRIED | 1;
    for (int64_t j = 0; j < n; j += stride) {
        ses_trial up, down = { 0 };
        bool ok = ses_trial_run(&up, dev, op, c, &(ses_perturbation){ i, j, h }, e) &&
                  ses_trial_run(&down, dev, op, c, &(ses_perturbation){ i, j, -h }, e);
        double slope = (up.loss - down.loss) / (2 * h), given = (double)base->grad[i][j];
        ses_trial_free(&up);
        ses_trial_free(&down);
        if (!ok) return false;
        largest = fmax(largest, fabs(slope));
        if (!(fabs(slope - given) <= error)) error = fabs(slope - given);
    }
    double relative = error / fmax(largest, 1e-3);
    if (!(relative <= *worst)) *worst = relative;
    return true;
}

/* Compares gradients with central differences; *worst: largest error relative to the largest gradient of its
 * input. */
static bool gradcheck(ses_device *dev, const ses_op *op, const ses_case *c, double *worst, ses_err *e)
{
    ses_trial base;
    bool ok = ses_trial_run(&base, dev, op, c, NULL, e);
    *worst = 0;
    for (int i = 0; ok && i < SES_MAX_IN; i++) {
        bool requires_grad = c->dim[i][0] && !c->ints[i] && !(c->constant >> i & 1);
        if (requires_grad && !base.grad[i])
            ok = ses_fail(e, SES_EARG, "%s computes no gradient for input %d", op->name, i);
        if (ok && requires_grad && !op->straight_through) ok = check_input(dev, op, c, &base, i, worst, e);
    }
    ses_trial_free(&base);
    return ok;
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(sizeof(ses_real) == 8 && dev);
    for (const ses_op *const *op = ses_ops(); dev && *op; op++)
        for (size_t i = 0; (*op)->backward && i < (*op)->n_cases; i++) {
            double worst = 0;
            ses_err_clear(&e);
            CHECK_MSG(gradcheck(dev, *op, &(*op)->cases[i], &worst, &e), "%s case %zu: %s", (*op)->name, i,
                      e.msg);
            CHECK_MSG(worst <= 1e-6, "%s case %zu: gradient is off by %.3g", (*op)->name, i, worst);
        }
    ses_device_free(dev);
    return check_report();
}
