/* eval --exit curve: the score against the layers used, for a grid of rules. Ownership: everything is
 * borrowed. Main thread only. */
#ifndef SES_CLI_EXIT_CURVE_H
#define SES_CLI_EXIT_CURVE_H

#include "cli/train/predictor_args.h"

typedef struct ses_exit_curve_args {
    const char *svg, *html; /* files; NULL: none */
    bool overwrite;         /* existing ones */
} ses_exit_curve_args;
extern const ses_opt_table ses_exit_curve_option_table; /* for a ses_exit_curve_args */

/* Is the curve requested, not a single rule? */
bool ses_exit_curve_requested(const char *exit);
/* Fails for files of other calls of eval, and for existing ones that must stay. exit: of --exit. */
bool ses_exit_curve_args_check(const ses_exit_curve_args *a, const char *exit, ses_err *e);
/* Evaluates the file with each rule and prints a table and a plot, or JSON. p: opened without a rule. */
bool ses_exit_curve_run(ses_open_predictor *p, const ses_predictor_args *a, const ses_exit_curve_args *files,
                        const char *file, const ses_call *c, ses_err *e);

#endif
