/* The command line against tables of options (base/opt_table.h). */
#ifndef SES_CLI_OPTIONS_H
#define SES_CLI_OPTIONS_H

#include "base/opt_table.h"
#include "base/str.h"
#include "sesame/json.h"

/* A table and the struct it fills; a command has its own and the one all commands share. */
typedef struct ses_opt_group {
    const ses_opt *opt;
    size_t n;
    void *args;
} ses_opt_group;

/* Set defaults, then the environment, then what argv says. What is left, the operands, moves to the front of
 * argv, followed by NULL; *n_rest counts them. `first_only`: stop at the first operand. "--" ends options.
 * Errors are SES_EUSAGE. Strings are borrowed from argv and the environment; ses_options_free gives back the
 * lists. */
bool ses_options_parse(const ses_opt_group *group, size_t n_groups, char **argv, bool first_only, int *n_rest,
                       ses_err *e);
/* Fails where a required option was not given. */
bool ses_options_check_required(const ses_opt_group *group, size_t n_groups, ses_err *e);
void ses_options_free(const ses_opt_group *group, size_t n_groups);

/* option_writer.c: what a struct holds, told again. A member for each option, by its name; and the words that
 * would set it, but for the defaults: " --name value", quoted for a shell where they must be. */
void ses_options_put_json(const ses_opt *opt, size_t n, const void *args, ses_json_writer *w);
void ses_options_put_command_line(const ses_opt *opt, size_t n, const void *args, ses_buf *out);

#endif
