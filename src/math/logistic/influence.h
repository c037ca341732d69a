/* Influence functions (Koh and Liang 2017) of a logistic regression: by how much the loss of one example
 * would rise if a training example were left out, to first order. Plain functions; safe in all threads. */
#ifndef SES_MATH_INFLUENCE_H
#define SES_MATH_INFLUENCE_H

#include "sesame/unstable/logreg.h"

typedef struct ses_influence_data {
    const float *x;   /* [n, width] training examples that m was fitted to */
    const int32_t *y; /* [n] labels */
    size_t n, width, classes;
    double c; /* inverse regularization strength of the fit */
} ses_influence_data;

/* out [n]: the rise of the loss of `test` [width] with `label` without each training example. Solves with the
 * Hessian of the training objective by conjugate gradients. Fails out of memory, or if they do not
 * converge. */
bool ses_influence(const ses_logreg *m, const ses_influence_data *d, const float *test, int32_t label,
                   double *out, ses_err *e);

#endif
