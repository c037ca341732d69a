/* Private parts of ses_predictor, shared with the predictions of the rows of a file. */
#ifndef SES_TUNE_PREDICTOR_IMPL_H
#define SES_TUNE_PREDICTOR_IMPL_H

#include "tune/finetune_impl.h"

struct ses_predictions {
    ses_predictor *predictor;
    ses_examples *rows; /* read for this prediction; NULL: the caller's examples */
    ses_finetune_set set;
    ses_finetune_outputs outputs;
    ses_prediction *item; /* [set.n_rows] */
    ses_arena mem;
};

/* Predictions for examples, which are borrowed. path: for messages; NULL: examples in memory. */
ses_predictions *ses_predictions_of(ses_predictor *p, const ses_examples *rows, const char *path, ses_err *e);

/* Sentence encoders compare two texts: fails without a column of second ones. The columns were found. */
bool ses_predictor_check_pair(const ses_predictor *p, const ses_data_spec *s, const char *path, ses_err *e);

#endif
