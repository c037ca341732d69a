/* Options of a fine-tuning run by name: the table of `sesame finetune` and of ses_finetune_settings_new.
 * Strings are borrowed. Threads: as any value. */
#ifndef SES_TUNE_FINETUNE_SETTINGS_H
#define SES_TUNE_FINETUNE_SETTINGS_H

#include "finetune_options.h"
#include "train/train_options.h"
#include "tune/few_shot/tune_method.h"
#include "tune/multi/further_sets.h"
#include "vectors/classify/classifier.h"

struct ses_finetune_settings {
    ses_finetune_options o; /* except for the fields of the members below */
    ses_train_args train;
    ses_bootstrap_args bootstrap;
    ses_opt_list set, teachers;
    ses_opt_list also;     /* further data sets: names and values of options in turn */
    ses_further_sets sets; /* read from it by ses_finetune_settings_new */
    const char *method;    /* a ses_classifier_kind instead of a model, or a ses_tune_method; NULL: a model */
    ses_classifier_settings classifier;
    ses_tune_settings tune; /* settings of methods that learn from few labels */
};

extern const ses_opt_table ses_finetune_setting_table; /* for a ses_finetune_settings */

#endif
