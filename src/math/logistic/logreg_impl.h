/* Parts of logistic regression: the problem that L-BFGS minimizes, and its evaluation on a device. */
#ifndef SES_MATH_LOGREG_IMPL_H
#define SES_MATH_LOGREG_IMPL_H

#include "sesame/base.h"
#include "sesame/unstable/logreg.h"

typedef struct ses_logreg_problem {
    const float *x;
    const int32_t *y;
    const size_t *pick; /* NULL: all rows */
    size_t n, width, classes, rows;
    double penalty, total; /* penalty of the mean loss: 1 / (C total); total: sum of example weights */
    double *class_weight;  /* [classes] */
    double *score;         /* [rows] */
    bool bias;
} ses_logreg_problem;

/* The loss on a device: products in f32 by its kernels and threads, in blocks of rows whose sums are added in
 * double; and the preconditioner. The same bits for any number of threads. Class weights are not
 * supported. */
typedef struct ses_logreg_device ses_logreg_device;
ses_logreg_device *ses_logreg_device_new(const ses_logreg_problem *p, ses_device *dev, ses_err *e);
void ses_logreg_device_free(ses_logreg_device *d);
double ses_logreg_device_value(void *ctx, const double *w, double *g);
/* Estimates the preconditioner, the inverse of an approximate diagonal of the Hessian: of column k in class r
 * a quarter of f (1 - f) mean(x_k^2) + penalty, f the frequency of the class. It works best with
 * uncorrelated columns; rotated vectors have the same objective. */
bool ses_logreg_device_prepare(ses_logreg_device *d, ses_err *e);
/* Biases that predict the frequencies of the classes, as the start of a fit: from zero, the first step would
 * take the bias of a rare class so far that its probability becomes 0. */
void ses_logreg_device_start(const ses_logreg_device *d, double *bias);
void ses_logreg_device_precondition(void *ctx, double *q);
bool ses_logreg_device_ok(const ses_logreg_device *d, ses_err *e); /* after the last value */

#endif
