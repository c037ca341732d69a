/* Shared by the programs that compare folders with transformers: options, help, exit codes. */
#ifndef TOOLS_CHECKER_H
#define TOOLS_CHECKER_H

#include "cli/compute_args.h"

typedef struct checker_args {
    ses_compute_args compute;
    bool verbose, help;
} checker_args;

#define CHECKER_OPTIONS(each)                                                                    \
    SES_OPT_INCLUDE(checker_args, compute, ses_compute_options),                                 \
        SES_OPT_FLAG(checker_args, verbose, "verbose", "a line for every " each, .letter = 'v'), \
        SES_OPT_FLAG(checker_args, help, "help", "this text", .letter = 'h')

typedef struct checker {
    const char *name, *usage; /* usage: text of the help before the options */
    const char *nothing;      /* "no folder given" */
    const ses_opt *opt;       /* options, offsets in checker_args */
    size_t n_opt;
    int (*check)(const char *dir, ses_device *dev, bool verbose); /* 0 pass, 1 fail, 3 unreadable */
} checker;

/* The exit code: the worst of all folders, 2 for wrong usage. */
int checker_main(const checker *c, char **argv);

#endif
