/* The work of the logreg command: split, cross-validate, fit, measure. */
#ifndef SES_CLI_LOGREG_RUN_H
#define SES_CLI_LOGREG_RUN_H

#include "io/matrix.h"
#include "sesame/examples.h"
#include "sesame/logreg.h"
#include "sesame/metric.h"

enum { SES_MAX_C = 64 };

typedef struct ses_logreg_data {
    ses_matrix x;
    int32_t *y;
    size_t classes;
    ses_examples *labels; /* names; NULL: the labels are whole numbers */
} ses_logreg_data;

/* like: NULL, or what was learned from, whose labels these must be. */
bool ses_logreg_data_read(ses_logreg_data *d, const char *features, const char *labels,
                          const ses_data_spec *spec, const ses_logreg_data *like, ses_err *e);
void ses_logreg_data_free(ses_logreg_data *d);
const char *ses_logreg_label(const ses_logreg_data *d, size_t i, char buf[24]);

/* A strength tried: mean and deviation of the accuracy over the folds. */
typedef struct ses_logreg_try {
    double c, mean, deviation;
    int64_t unfinished; /* fits that reached the limit of iterations */
} ses_logreg_try;

typedef struct ses_logreg_plan {
    ses_logreg_options options;
    ses_logreg_try tried[SES_MAX_C];
    size_t n_tried;
    int64_t folds; /* 0: none; then there is one C */
    double test_size;
    uint64_t seed;
} ses_logreg_plan;

typedef struct ses_logreg_result {
    size_t *order; /* rows: those to learn from, then those to test */
    size_t n_learn, n_test;
    size_t best; /* of tried */
    ses_logreg model;
    ses_scores scores;  /* of the test */
    int64_t *confusion; /* [classes, classes] of the test */
    double learned;     /* accuracy on what was learned from */
    double common;      /* of always saying the most common class, in the test */
} ses_logreg_result;

/* test NULL: a part of d, as the plan says, drawn class by class. */
bool ses_logreg_plan_run(const ses_logreg_data *d, const ses_logreg_data *test, ses_logreg_plan *plan,
                         ses_logreg_result *r, ses_err *e);
void ses_logreg_result_free(ses_logreg_result *r);

#endif
