/* Options of commands that train several models: compress, curve, ladder. help_ names what they apply to. */
#ifndef SES_CLI_RUN_OPTIONS_H
#define SES_CLI_RUN_OPTIONS_H

#include "cli/command.h"

#define SES_OPT_EPOCHS(struct_, field, help_)                                                      \
    {                                                                                              \
        .name = "epochs", .letter = 'e', .type = SES_OPT_REAL, .offset = offsetof(struct_, field), \
        .def = "3", .min = 0, .max = 1e6, .help = help_                                            \
    }

#define SES_OPT_LR(struct_, field, help_)                                                      \
    {                                                                                          \
        .name = "lr", .letter = 'l', .type = SES_OPT_REAL, .offset = offsetof(struct_, field), \
        .def = "1e-4", .min = 0, .max = 100, .help = help_                                     \
    }

#define SES_OPT_JOBS(struct_, field, max_, help_)                                                      \
    {                                                                                                  \
        .name = "jobs", .type = SES_OPT_INT, .offset = offsetof(struct_, field), .def = "1", .min = 1, \
        .max = max_, .of_call = true, .help = help_                                                    \
    }

#endif
