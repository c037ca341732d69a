/* Runs ops on their own cases: for tests/test_ops.c, and for `sesame selftest` on a user's machine. */
#ifndef SES_OP_CHECK_H
#define SES_OP_CHECK_H

#include "base/arena.h"
#include "op.h"

/* One run of a case: what came out, and the gradients of a random weighting of it. */
typedef struct ses_trial {
    ses_arena mem;
    double loss; /* the weighted sum of out */
    int64_t n_out, n_aux, n_grad[SES_MAX_IN];
    ses_real *out, *aux, *grad[SES_MAX_IN]; /* grad NULL: an input without one */
} ses_trial;

/* Where an input is nudged, for finite differences. */
typedef struct ses_perturbation {
    int input;
    int64_t index;
    double delta;
} ses_perturbation;

bool ses_trial_run(ses_trial *r, ses_device *dev, const ses_op *op, const ses_case *c,
                   const ses_perturbation *nudge, ses_err *e);
void ses_trial_free(ses_trial *r);

/* How much further bf16 may be off than f32: 16 bits less of mantissa, and errors add up. */
enum { SES_BF16_TOL_FACTOR = 5000 };

/* How far a is from ref as a share of the case's tolerance; *where names the worst part ("out", "grad 1"). */
double ses_trial_distance(const ses_trial *a, const ses_trial *ref, const ses_case *c, const char **where);

/* Gradients against central differences on dev: the worst error relative to the largest gradient of its
 * input. */
bool ses_op_gradcheck(ses_device *dev, const ses_op *op, const ses_case *c, double *worst, ses_err *e);

#endif
