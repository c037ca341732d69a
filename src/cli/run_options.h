/* Options of commands that train several models: compress, curve, ladder. help_ names what they apply to. */
#ifndef SES_CLI_RUN_OPTIONS_H
#define SES_CLI_RUN_OPTIONS_H

#include "cli/command.h"

#define SES_OPT_EPOCHS(struct_, field, help_) \
    SES_OPT_REAL(struct_, field, "epochs", "3", 0, 1e6, help_, .letter = 'e')

#define SES_OPT_LR(struct_, field, help_) \
    SES_OPT_REAL(struct_, field, "lr", "1e-4", 0, 100, help_, .letter = 'l', .group = "training")

#define SES_OPT_JOBS(struct_, field, max_, help_) \
    SES_OPT_INT(struct_, field, "jobs", "1", 1, max_, help_, .of_call = true, .group = "runs")

#endif
