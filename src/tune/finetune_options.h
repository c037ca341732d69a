/* Option tables of labeled files, tasks, transfer learning and confidence intervals. Constant tables. */
#ifndef SES_TUNE_FINETUNE_OPTIONS_H
#define SES_TUNE_FINETUNE_OPTIONS_H

#include "base/opt_table.h"
#include "sesame/finetune.h"

extern const ses_opt_table ses_data_option_table;     /* for a ses_data_options, without --task */
extern const ses_opt_table ses_task_option_table;     /* for a ses_finetune_task_options */
extern const ses_opt_table ses_transfer_option_table; /* for a ses_transfer_options */

/* Confidence intervals; the seed has its own option. */
typedef struct ses_bootstrap_args {
    int64_t resamples, seed;
    double confidence; /* percent */
} ses_bootstrap_args;
extern const ses_opt_table ses_bootstrap_option_table;

/* field: a ses_data_options. */
#define SES_OPT_TASK(struct_, field, required_)                                                        \
    SES_OPT_TEXT(                                                                                      \
        struct_, field.task, "task", "TASK",                                                           \
        "classify, regress, multi_label, tag, answer, choose, rewrite, continue, embed, the pipeline " \
        "that uses the model (as text-classification), or a benchmark",                                \
        .letter = 'T', .required = required_, .completion = "tasks")
/* field: a ses_finetune_task_options. Not in ses_task_option_table, which eval and predict also read from the
 * folder of the model. */
#define SES_OPT_PATTERNS(struct_, field)                                                                  \
    SES_OPT_TEXT(                                                                                         \
        struct_, field.patterns, "patterns", "FILE",                                                      \
        "classify: JSON file of cloze patterns and a word for each label; a masked LM predicts the "      \
        "words",                                                                                          \
        .group = "method"),                                                                               \
        SES_OPT_INT(struct_, field.pattern, "pattern", "1", 1, 64, "number of the pattern in --patterns", \
                    .value = "N", .group = "method")
extern const ses_opt_table ses_exit_option_table; /* exit_training.c: for a ses_exit_options */

/* field: a const char *. */
#define SES_OPT_FINETUNED_MODEL(struct_, field)                                                             \
    SES_OPT_TEXT(struct_, field, "model", "DIR", "the model, instead of the first argument", .letter = 'm', \
                 .is_model = true)

#endif
