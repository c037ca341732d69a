/* How uncertain a prediction is, for the choice of examples to label (Settles 2009). Pure functions. */
#ifndef SES_METRIC_UNCERTAINTY_H
#define SES_METRIC_UNCERTAINTY_H

#include "sesame/base.h"

typedef enum {
    SES_BY_ENTROPY,         /* -sum p ln p, in nats */
    SES_BY_MARGIN,          /* the highest probability minus the second */
    SES_BY_LEAST_CONFIDENCE /* 1 minus the highest probability */
} ses_uncertainty;

#define SES_UNCERTAINTY_CHOICES "entropy|margin|least-confidence"

/* The uncertainty of a distribution over n classes. */
double ses_uncertainty_of(ses_uncertainty by, const float *p, size_t n);
/* The same for n independent labels with these probabilities: the mean over the labels, each as two
 * classes. */
double ses_uncertainty_of_labels(ses_uncertainty by, const float *p, size_t n);
/* Whether prediction a is more uncertain than b. */
bool ses_uncertainty_is_above(ses_uncertainty by, double a, double b);

#endif
