/* A part of the training file held out for evaluation: `--eval 10%`. */
#ifndef SES_TUNE_HELD_OUT_H
#define SES_TUNE_HELD_OUT_H

#include "sesame/examples.h"

/* Whether an evaluation file is a percentage: digits, perhaps with a fraction, and %. */
bool ses_held_out_is(const char *eval);
/* Divides the examples by seed: classes in proportion, the evaluation part rounded up as train_test_split of
 * scikit-learn does. Both parts borrow the strings of all. Fails if a part is empty. */
bool ses_held_out_take(const char *eval, uint64_t seed, const ses_examples *all, ses_examples **train,
                       ses_examples **part, ses_err *e);

#endif
