/* Work of the logreg command: read, split, cross-validate, fit, test. Data and results own their arrays; one
 * thread. */
#ifndef SES_CLI_LOGREG_RUN_H
#define SES_CLI_LOGREG_RUN_H

#include "io/matrix.h"
#include "sesame/examples.h"
#include "sesame/metric.h"
#include "sesame/unstable/logreg.h"

enum { SES_MAX_C = 64 };

typedef struct ses_logreg_data {
    ses_matrix x; /* [examples, features] */
    int32_t *y;
    size_t classes;
    ses_examples *labels; /* label names; NULL: labels are integers */
} ses_logreg_data;

/* like: NULL, or the training data, whose labels and width are required. */
bool ses_logreg_data_read(ses_logreg_data *d, const char *features, const char *labels,
                          const ses_data_spec *spec, const ses_logreg_data *like, ses_err *e);
void ses_logreg_data_free(ses_logreg_data *d);
const char *ses_logreg_label(const ses_logreg_data *d, size_t i, char buf[24]);

/* One value of C: mean and standard deviation of the accuracy over the folds. */
typedef struct ses_logreg_try {
    double c, mean, deviation;
    int64_t n_unconverged; /* fits that reached the iteration limit */
} ses_logreg_try;

typedef struct ses_logreg_plan {
    ses_logreg_options options;
    ses_logreg_try tried[SES_MAX_C];
    size_t n_tried;
    int64_t folds; /* 0: no cross-validation, a single C */
    double test_size;
    uint64_t seed;
} ses_logreg_plan;

typedef struct ses_logreg_result {
    size_t *order; /* rows: the training rows, then the test rows */
    size_t n_train, n_test;
    size_t best; /* index in tried */
    ses_logreg model;
    ses_scores scores;  /* on the test set */
    int64_t *confusion; /* [classes, classes] on the test set: true, predicted */
    double train_accuracy;
    double baseline; /* test accuracy of always predicting the most common class */
} ses_logreg_result;

/* test NULL: a stratified part of d of plan->test_size. */
bool ses_logreg_plan_run(const ses_logreg_data *d, const ses_logreg_data *test, ses_logreg_plan *plan,
                         ses_logreg_result *r, ses_err *e);
void ses_logreg_result_free(ses_logreg_result *r);

#endif
