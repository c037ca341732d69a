/* Every op on each of its cases: every kernel level against kernel/ref, on 1, 2 and 3 threads. */
#include "check.h"
#include "op/op_check.h"

#include <math.h>

static void check_case(const ses_op *op, size_t i, ses_isa isa, int threads)
{
    ses_err e = { 0 };
    ses_device *ref = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_REF }, &e);
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = threads, .isa = isa }, &e);
    ses_trial a, b;
    const char *where = "";
    CHECK_MSG(ref && dev && ses_trial_run(&b, ref, op, &op->cases[i], NULL, &e), "%s case %zu: %s", op->name,
              i, e.msg);
    CHECK_MSG(ses_trial_run(&a, dev, op, &op->cases[i], NULL, &e), "%s case %zu: %s", op->name, i, e.msg);
    double d = ses_trial_distance(&a, &b, &op->cases[i], &where);
    CHECK_MSG(d <= 1, "%s case %zu %s %d threads: %s is %.3g of the tolerance away", op->name, i,
              ses_isa_name(isa), threads, where, d);
    ses_trial_free(&a);
    ses_trial_free(&b);
    ses_device_free(dev);
    ses_device_free(ref);
}

/* A gradient that is zero but for rounding cannot be compared with another device's: it must be exactly zero.
 * The gradient that flows in is about 1. */
static void check_zeros(const ses_op *op, size_t i)
{
    ses_err e = { 0 };
    ses_device *ref = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_REF }, &e);
    ses_trial a;
    CHECK_MSG(ref && ses_trial_run(&a, ref, op, &op->cases[i], NULL, &e), "%s case %zu: %s", op->name, i,
              e.msg);
    for (int g = 0; g < SES_MAX_IN; g++) {
        double largest = 0;
        for (int64_t k = 0; a.grad[g] && k < a.n_grad[g]; k++)
            largest = fmax(largest, fabs((double)a.grad[g][k]));
        CHECK_MSG(largest == 0 || largest > 1e-7, "%s case %zu: the largest number of grad %d is %g",
                  op->name, i, g, largest);
    }
    ses_trial_free(&a);
    ses_device_free(ref);
}

/* The results have the same bits for any number of threads. */
static void check_threads(const ses_op *op, size_t i, ses_isa isa)
{
    ses_trial a, b;
    ses_err e = { 0 };
    ses_device *one = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = isa }, &e);
    ses_device *three = ses_device_open("cpu", &(ses_device_options){ .threads = 3, .isa = isa }, &e);
    CHECK(ses_trial_run(&a, one, op, &op->cases[i], NULL, &e) &&
          ses_trial_run(&b, three, op, &op->cases[i], NULL, &e));
    CHECK(a.n_out == b.n_out && !memcmp(a.out, b.out, (size_t)a.n_out * sizeof *a.out));
    for (int g = 0; g < SES_MAX_IN; g++)
        CHECK(!a.grad[g] || !memcmp(a.grad[g], b.grad[g], (size_t)a.n_grad[g] * sizeof *a.grad[g]));
    ses_trial_free(&a);
    ses_trial_free(&b);
    ses_device_free(one);
    ses_device_free(three);
}

int main(void)
{
    for (const ses_op *const *op = ses_ops(); *op; op++) {
        CHECK_MSG((*op)->n_cases > 0, "%s has no cases", (*op)->name);
        for (size_t i = 0; i < (*op)->n_cases; i++) {
            check_zeros(*op, i);
            for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
                check_case(*op, i, (ses_isa)isa, 2);
                check_threads(*op, i, (ses_isa)isa);
            }
        }
    }
    return check_report();
}
