/* Options given as "NAME=VALUE" in the value of another option, and options without effect. */
#ifndef SES_CLI_OPTION_SETTING_H
#define SES_CLI_OPTION_SETTING_H

#include "cli/command.h"

typedef struct ses_setting_rule {
    const char *from;    /* the option that has the text, for messages */
    const char *refused; /* options that cannot be set, '|' between */
    bool no_lists;       /* options with several values cannot be set either */
} ses_setting_rule;

/* Sets the option of cmd that text names. args: of the command, which borrows the value. */
bool ses_option_setting_apply(const ses_command *cmd, const char *text, const ses_setting_rule *r, void *args,
                              ses_err *e);

/* Name of the first option of the list "a|b|c" whose value is not its default; names NULL: of all options.
 * NULL: none. */
const char *ses_option_changed(const ses_opt *opt, size_t n, const char *names, const void *args);

#endif
