/* Models among the arguments of a command: names become folders (see ses_model_resolve), and a pipeline
 * without --model gets its default model. Ownership: the caller frees the strings in `owned` with free().
 * Threads: main thread. */
#ifndef SES_CLI_MODEL_ARGS_H
#define SES_CLI_MODEL_ARGS_H

#include "command.h"

enum { SES_MAX_MODEL_ARGS = 8 };

/* Resolves options and operands that are models (ses_opt.is_model, ses_command.has_model_operand). New
 * strings are appended to owned. */
bool ses_model_args_resolve(const ses_command *cmd, void *args, char **operands,
                            char *owned[SES_MAX_MODEL_ARGS], ses_err *e);

#endif
