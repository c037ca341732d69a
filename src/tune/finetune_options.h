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
#define SES_OPT_TASK(struct_, field, required_)                                                            \
    {                                                                                                      \
        .name = "task", .letter = 'T', .type = SES_OPT_TEXT, .offset = offsetof(struct_, field.task),      \
        .value = "TASK", .required = required_, .completion = "tasks",                                     \
        .help =                                                                                            \
            "classify, regress, multi_label, tag, answer, choose, rewrite, continue, embed, the pipeline " \
            "that uses the model (as text-classification), or a benchmark"                                 \
    }
/* field: a ses_finetune_task_options. Not in ses_task_option_table, which eval and predict also read from the
 * folder of the model. */
#define SES_OPT_PATTERNS(struct_, field)                                                                   \
    { .name = "patterns",                                                                                  \
      .type = SES_OPT_TEXT,                                                                                \
      .offset = offsetof(struct_, field.patterns),                                                         \
      .value = "FILE",                                                                                     \
      .help = "classify: JSON file of cloze patterns and a word for each label; a masked LM predicts the " \
              "words" },                                                                                   \
    {                                                                                                      \
        .name = "pattern", .type = SES_OPT_INT, .offset = offsetof(struct_, field.pattern), .value = "N",  \
        .def = "1", .min = 1, .max = 64, .help = "number of the pattern in --patterns"                     \
    }
extern const ses_opt_table ses_exit_option_table; /* exit_training.c: for a ses_exit_options */

/* field: a const char *. */
#define SES_OPT_FINETUNED_MODEL(struct_, field)                                                   \
    {                                                                                             \
        .name = "model", .letter = 'm', .type = SES_OPT_TEXT, .offset = offsetof(struct_, field), \
        .value = "DIR", .is_model = true, .help = "the model, instead of the first argument"      \
    }

#endif
