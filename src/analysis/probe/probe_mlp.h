/* An MLP with one hidden layer on frozen vectors: ReLU, cross entropy, Adam (1e-3), batches of 256; it stops
 * after three epochs without a better dev loss and keeps the weights of the best one. */
#ifndef SES_ANALYSIS_PROBE_MLP_H
#define SES_ANALYSIS_PROBE_MLP_H

#include "probe_fit.h"
#include "sesame/unstable/store.h"

typedef struct ses_probe_mlp ses_probe_mlp;

/* Trains on the first n rows. */
ses_probe_mlp *ses_probe_mlp_train(const ses_probe_fit_options *o, const ses_probe_set *train, size_t n,
                                   const ses_probe_set *dev, size_t width, size_t classes, ses_err *e);
/* Probabilities [n, classes] of the rows x [n, width]. */
bool ses_probe_mlp_predict(ses_probe_mlp *m, const float *x, size_t n, float *probability, ses_err *e);
void ses_probe_mlp_free(ses_probe_mlp *m); /* m may be NULL */

/* Copies the values of all parameters to `best`, or with restore from it. */
void ses_probe_copy_values(const ses_store *s, ses_real *best, bool restore);

#endif
