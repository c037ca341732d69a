/* Steps of fastText's binary logistic regression over rows of the output matrix: negative samples, nodes of a
 * tree, or one row per label. Rows of a group are distinct, so their products with the hidden vector do not
 * depend on each other, and the result is that of one row after another, bit for bit. */
#ifndef SES_VECTORS_LOGISTIC_GROUP_H
#define SES_VECTORS_LOGISTIC_GROUP_H

#include "sesame/base.h"

enum { SES_LOGISTIC_GROUP = 16, SES_SIGMOID_STEPS = 512, SES_SIGMOID_MAX = 8 };

typedef struct ses_logistic_group {
    int dim, n;
    const float *x;  /* [dim] */
    float *gradient; /* [dim]: of x; added to */
    float rate;
    bool diverged; /* a product was NaN; nothing is trained from then on */
    float *row[SES_LOGISTIC_GROUP];
    float label[SES_LOGISTIC_GROUP];
    float sigmoid[SES_SIGMOID_STEPS + 1];
} ses_logistic_group;

void ses_logistic_group_init(ses_logistic_group *g, int dim, const float *x, float *gradient);
/* Trains a row towards its label, 0 or 1, now or when the group is full. */
void ses_logistic_group_add(ses_logistic_group *g, float *row, float label);
void ses_logistic_group_end(ses_logistic_group *g); /* trains the rows that were added */
/* Products of x with four rows, each in the order of the columns. */
void ses_dot_four(const float *const row[4], const float *x, int dim, float out[4]);

#endif
