/* Further data sets of a run, from option names and values: what follows the second --train and later ones.
 * Strings are borrowed. */
#ifndef SES_TUNE_FURTHER_SETS_H
#define SES_TUNE_FURTHER_SETS_H

#include "tune/finetune_options.h"

extern const ses_opt_table ses_further_set_table; /* for a ses_finetune_data_set */

typedef struct ses_further_sets {
    ses_finetune_data_set *item;
    size_t n;
} ses_further_sets;

/* Reads a list of names and values in turn: "train", "b.tsv", "task", "rte", ...; each "train" begins a data
 * set, which needs a task. Free with ses_further_sets_free, also on failure. */
bool ses_further_sets_read(ses_further_sets *out, const ses_opt_list *list, ses_err *e);
/* Fails if the option mix-alpha is set for a single data set; alpha: its value, 1 if it is not set. */
bool ses_further_sets_check_alpha(const ses_further_sets *s, double alpha, ses_err *e);
void ses_further_sets_free(ses_further_sets *s); /* zeroes it */

#endif
