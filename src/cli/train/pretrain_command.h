/* The pretrain command: its arguments and its run. Strings are borrowed from argv. */
#ifndef SES_CLI_PRETRAIN_COMMAND_H
#define SES_CLI_PRETRAIN_COMMAND_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "pretrain/pretrain_settings.h"
#include "rank_args.h"
#include "train_args.h"

extern const ses_command ses_command_pretrain;

typedef struct ses_pretrain_args {
    ses_compute_args compute;
    ses_pretrain_settings s;
    ses_rank_args ranks;
} ses_pretrain_args;

bool ses_pretrain_command(ses_call *c, ses_err *e);

#endif
