/* Options of a pretraining run by name: the table of `sesame pretrain` and of ses_pretrain_settings_new.
 * Strings are borrowed. Threads: as any value. */
#ifndef SES_PRETRAIN_PRETRAIN_SETTINGS_H
#define SES_PRETRAIN_PRETRAIN_SETTINGS_H

#include "objective_options.h"
#include "train/train_options.h"

struct ses_pretrain_settings {
    ses_opt_list corpora, set;
    const char *max_time;
    int packing;                  /* index of the option's choices */
    ses_pretrain_options options; /* except for the fields above and `train` */
    ses_train_args train;
};

extern const ses_opt_table ses_pretrain_setting_table; /* for a ses_pretrain_settings */

#endif
