/* A classifier that learns scores of texts instead of labels: T^2 KL(scores / T || model / T), as in
 * distillation. */
#ifndef SES_TUNE_SOFT_LABELS_H
#define SES_TUNE_SOFT_LABELS_H

#include "tune_method.h"

/* Trains the final classifier on the unlabeled texts of r; score [texts, labels] lives as long as r. */
bool ses_soft_labels_learn(ses_tune_run *r, const float *score, ses_err *e);

#endif
