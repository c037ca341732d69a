/* How good a model's predictions are: scores with their confidence intervals, classes one by one, what was
 * taken for what. Made by eval, and at the end of finetune. */
#ifndef SES_CLI_JUDGED_H
#define SES_CLI_JUDGED_H

#include "cli/option_parser.h"
#include "cli/ui/term.h"
#include "sesame/json.h"
#include "tune/finetuner.h"

typedef struct ses_bootstrap_args {
    int64_t resamples, seed;
    double confidence; /* percent */
} ses_bootstrap_args;

#define SES_OPT_BOOTSTRAP(struct_, field)                                                          \
    { .name = "bootstrap",                                                                         \
      .type = SES_OPT_INT,                                                                         \
      .offset = offsetof(struct_, field.resamples),                                                \
      .def = "0",                                                                                  \
      .min = 0,                                                                                    \
      .max = 1000000,                                                                              \
      .help = "confidence intervals of scores, by so many resamples of the examples; 0: none" },   \
    {                                                                                              \
        .name = "confidence", .type = SES_OPT_REAL, .offset = offsetof(struct_, field.confidence), \
        .def = "95", .value = "PERCENT", .min = 1, .max = 99.99,                                   \
        .help = "how much of the resamples an interval holds"                                      \
    }

/* One class: a label, of tags a type of entity. NaN: the metrics did not say. */
typedef struct ses_class_score {
    char name[64];
    double precision, recall, f1, number;
} ses_class_score;

typedef struct ses_eval_report {
    ses_scores scores;
    double loss;
    size_t n; /* examples */
    const ses_finetuner *tuner;
    ses_class_score *classes;
    size_t n_classes;
    int64_t *confusion; /* [right, said] over the tuner's labels; NULL: they have no names */
    double level;       /* of the intervals; 0: there are none */
} ses_eval_report;

bool ses_eval_report_make(ses_eval_report *j, ses_finetuner *t, const ses_finetune_set *s,
                          const ses_task_outputs *p, const ses_bootstrap_args *a, ses_err *e);
void ses_eval_report_free(ses_eval_report *j); /* back to zero */

/* Members eval_NAME, eval_NAME_low and _high, eval_loss, eval_samples, eval_labels, eval_confusion_matrix. */
void ses_eval_report_put(const ses_eval_report *j, ses_json_writer *w);
void ses_eval_report_show(const ses_eval_report *j, const ses_term *t); /* loss and scores, for a summary */
bool ses_eval_report_show_classes(const ses_eval_report *j, const ses_term *t,
                                  ses_err *e); /* tables on stdout */

#endif
