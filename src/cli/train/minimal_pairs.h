/* Minimal pairs: how often a model gives the acceptable sentence a higher probability. Tables of BLiMP, of
 * Marvin and Linzen, and of Gulordava et al. Nothing is kept. */
#ifndef SES_CLI_MINIMAL_PAIRS_H
#define SES_CLI_MINIMAL_PAIRS_H

#include "cli/command.h"
#include "cli/compute_args.h"

bool ses_is_minimal_pairs_task(const char *task); /* "blimp", "agreement" */

/* Evaluates the model in folder dir on a file with the columns good and bad (and perhaps bad2), or form,
 * class, len_prefix and sent. Pairs are grouped by the columns UID and term, or case, or pattern. Prints
 * the result. */
bool ses_eval_minimal_pairs(const char *dir, const char *path, const ses_compute_args *a, ses_call *c,
                            ses_err *e);

#endif
