/* Checks of a fine-tuning run for commands that do other work before it, or start many. */
#ifndef SES_CLI_FINETUNE_INPUTS_H
#define SES_CLI_FINETUNE_INPUTS_H

#include "finetune_command.h"
#include "tune/finetune_data.h"

/* Whether all options that are given have an effect, and the settings of --method fit it. */
bool ses_finetune_check_options(const ses_finetune_args *a, ses_err *e);
/* Whether the files of options exist, besides data. */
bool ses_finetune_check_files(const ses_finetune_args *a, ses_err *e);
/* Reads the files of the run as it does: columns, labels, tasks. The model is not read. *overlap: evaluation
 * examples that are trained on. */
bool ses_finetune_check_inputs(const ses_finetune_args *a, ses_row_overlap *overlap, ses_err *e);

#endif
