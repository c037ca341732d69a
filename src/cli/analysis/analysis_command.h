/* Analysis commands: one implementation for all analyses; an analysis provides operands, options, description
 * and examples. Ownership: a call borrows its arguments. Threads: main thread only. */
#ifndef SES_CLI_ANALYSIS_COMMAND_H
#define SES_CLI_ANALYSIS_COMMAND_H

#include "cli/command.h"
#include "cli/compute_args.h"

typedef struct ses_analysis_args {
    ses_compute_args compute;
    const char *model, *adapter, *layers, *html, *svg, *json;
    int64_t seed;
    bool overwrite;
} ses_analysis_args;

extern const ses_opt_table ses_analysis_options; /* options common to all analyses */

bool ses_analysis_command(ses_call *c, ses_err *e);

#endif
