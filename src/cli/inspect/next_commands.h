/* Commands that continue from a training run, with its paths: use the model, evaluate, quantize, search,
 * resume. Read from the run's options. Nothing is kept; safe in all threads. */
#ifndef SES_CLI_NEXT_COMMANDS_H
#define SES_CLI_NEXT_COMMANDS_H

#include "base/str.h"
#include "run_record.h"

typedef struct ses_next_command {
    char what[96]; /* "Evaluate with confidence intervals" */
    ses_buf line;  /* the command, quoted for a shell */
} ses_next_command;

enum { SES_MAX_NEXT_COMMANDS = 6 };

/* Fills out and returns the number of commands. Free each line with ses_buf_free. */
size_t ses_next_commands(const ses_run_record *r, ses_next_command out[SES_MAX_NEXT_COMMANDS]);

#endif
