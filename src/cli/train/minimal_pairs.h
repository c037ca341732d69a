/* Minimal pairs: does a model find the good sentence likelier than the bad one? BLiMP's table, Marvin and
 * Linzen's, and Gulordava et al.'s. */
#ifndef SES_CLI_EVAL_PAIRS_H
#define SES_CLI_EVAL_PAIRS_H

#include "cli/command.h"
#include "cli/compute_args.h"

bool ses_is_minimal_pairs_task(const char *task); /* "blimp", "agreement" */

/* A file with columns good and bad (and perhaps bad2), or form, class, len_prefix and sent. By groups: the
 * columns UID and term, or case, or pattern. */
bool ses_eval_minimal_pairs(const char *dir, const char *path, const ses_compute_args *s, ses_call *c,
                            ses_err *e);

#endif
