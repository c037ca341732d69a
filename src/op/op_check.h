/* Runs ops on their test cases, for tests/test_ops.c and `sesame selftest`. Ownership: free a trial with
 * ses_trial_free. Threads: one at a time per device. */
#ifndef SES_OP_CHECK_H
#define SES_OP_CHECK_H

#include "base/arena.h"
#include "op.h"

/* One run of a case: outputs, and gradients of a random weighted sum of them. */
typedef struct ses_trial {
    ses_arena mem;
    double loss; /* the weighted sum of out */
    int64_t n_out, n_aux, n_grad[SES_MAX_IN];
    ses_real *out, *aux, *grad[SES_MAX_IN]; /* grad NULL: an input without gradient */
} ses_trial;

/* A change of one input element, for finite differences. */
typedef struct ses_perturbation {
    int input;
    int64_t index;
    double delta;
} ses_perturbation;

bool ses_trial_run(ses_trial *r, ses_device *dev, const ses_op *op, const ses_case *c,
                   const ses_perturbation *change, ses_err *e);
void ses_trial_free(ses_trial *r);

/* Tolerance factor of bf16: 16 fewer mantissa bits, and errors accumulate. */
enum { SES_BF16_TOL_FACTOR = 5000 };

/* Distance of a to ref as a fraction of the case's tolerance; *where names the worst part ("out", "grad
 * 1"). */
double ses_trial_distance(const ses_trial *a, const ses_trial *ref, const ses_case *c, const char **where);

#endif
