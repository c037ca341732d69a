/* Area under the ROC curve: the probability that a positive example has a higher value than a negative one;
 * equal values count half. Thread-safe. */
#ifndef SES_MATH_AUC_H
#define SES_MATH_AUC_H

#include "sesame/base.h"

typedef struct ses_auc_item { /* scratch */
    float value;
    uint8_t positive;
} ses_auc_item;

/* NaN: all examples are positive, or none is. scratch: [n]. */
double ses_auc(const float *value, const uint8_t *positive, size_t n, ses_auc_item *scratch);

#endif
