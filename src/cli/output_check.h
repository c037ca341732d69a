/* Outputs that are inputs of the same command. No state. */
#ifndef SES_CLI_OUTPUT_CHECK_H
#define SES_CLI_OUTPUT_CHECK_H

#include "option_parser.h"

/* Fails (SES_EUSAGE) if an option names an output file (--output, --to, --svg, --html) that is an operand or
 * the value of another option, too: with --overwrite the command would replace what it has read. */
bool ses_outputs_check(const ses_opt_group *group, size_t n_groups, char *const *operands, ses_err *e);

#endif
