/* `sesame finetune --method`: trains a classifier that reads texts (src/vectors/classify), evaluates it and
 * writes its folder, with the data, labels, metrics and reports of fine-tuning. */
#ifndef SES_TUNE_CLASSIFIER_RUN_H
#define SES_TUNE_CLASSIFIER_RUN_H

#include "sesame/finetune.h"
#include "vectors/classify/classifier.h"

typedef struct ses_classifier_plan {
    const ses_classifier_kind *kind;
    ses_classifier_settings settings;
    bool (*progress)(void *ctx, int64_t done, int64_t total, double loss); /* training steps; or NULL */
    void *ctx;
} ses_classifier_plan;

/* Runs the whole plan: reads data, trains, evaluates, and writes o->run.output unless it is NULL. Uses of o:
 * train, eval, train_examples, eval_examples, data, task.metrics, run.output, run.overwrite, run.seed, the
 * energy of run, metric, bootstrap, confidence, command, on_event. The result has a report, results and a
 * predictor, but neither a model nor a trainer. NULL on failure. Free with ses_finetune_free. */
ses_finetune *ses_classifier_finetune(const ses_finetune_options *o, const ses_classifier_plan *p,
                                      ses_device *d, ses_err *e);

/* Trains and evaluates a classifier on the examples of a finished run of a model, and stores its score by the
 * run's metric. False: the run has no such score, the plan's progress has stopped the training, or it has
 * failed. */
bool ses_classifier_beside(const ses_finetune *f, const ses_classifier_plan *p, ses_device *d, double *score);

/* Learned numbers of the classifier of a run; 0: not counted. */
int64_t ses_classifier_finetune_parameters(const ses_finetune *f);
/* Time of training and of the last evaluation, energy of training. */
typedef struct ses_classifier_cost {
    double train_seconds, eval_seconds, joules;
    bool energy_is_measured;
} ses_classifier_cost;
ses_classifier_cost ses_classifier_finetune_cost(const ses_finetune *f);

#endif
