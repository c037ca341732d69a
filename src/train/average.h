/* The mean of the weights of several models of one architecture: checkpoint averaging, "model soups"
 * (Wortsman et al. 2022). Ownership and threads: as sesame/model.h. */
#ifndef SES_TRAIN_AVERAGE_H
#define SES_TRAIN_AVERAGE_H

#include "sesame/model.h"

/* Adds the weights of `other` to the weights of m. Both are on the CPU, not open for training, and have
 * values (no_packing). Fails, with m unchanged, if class, parameters, shapes, label names, or keys of
 * config.json that matter to inference differ (SES_EARG). */
bool ses_model_add_weights(ses_model *m, const ses_model *other, ses_err *e);

/* Multiplies the weights, for the mean of a sum. Model as above. */
bool ses_model_scale_weights(ses_model *m, double factor, ses_err *e);

#endif
