/* Parses the command line against tables of options (base/opt_table.h), and writes options back.
 *
 * Ownership: strings in the filled structs are borrowed from argv and the environment; ses_options_free frees
 * the lists. Threads: nothing is shared; each call works on its own arguments. */
#ifndef SES_CLI_OPTION_PARSER_H
#define SES_CLI_OPTION_PARSER_H

#include "base/opt_table.h"
#include "base/str.h"
#include "sesame/json.h"

/* A table and the struct it fills: a command has its own group and the one all commands share. */
typedef struct ses_opt_group {
    const ses_opt *opt;
    size_t n;
    void *args;
} ses_opt_group;

/* Sets defaults, then values from the environment, then the options in argv. Operands move to the front of
 * argv, followed by NULL; *n_operands counts them. stop_at_operand: end at the first operand. "--" ends the
 * options. Errors are SES_EUSAGE. */
bool ses_options_parse(const ses_opt_group *group, size_t n_groups, char **argv, bool stop_at_operand,
                       int *n_operands, ses_err *e);
/* The same with other defaults: `stored`, an object as ses_options_put_json writes it, for group[0]. Its
 * strings are borrowed. Not restored: options of one call (of_call), output, grid and seeds. args must be
 * zeroed. */
bool ses_options_parse_stored(const ses_opt_group *group, size_t n_groups, const ses_json *stored,
                              char **argv, int *n_operands, ses_err *e);
bool ses_options_check_required(const ses_opt_group *group, size_t n_groups, ses_err *e);
void ses_options_free(const ses_opt_group *group, size_t n_groups);

/* Writes the values in args as an object with one member per option that is not of_call (option_writer.c). */
void ses_options_put_json(const ses_opt *opt, size_t n, const void *args, ses_json_writer *w);
/* The members of that object alone. */
void ses_options_put_members(const ses_opt *opt, size_t n, const void *args, ses_json_writer *w);
/* Appends the options that differ from their defaults and are not of_call: " --name value", quoted for a
 * shell if needed. */
void ses_options_put_command_line(const ses_opt *opt, size_t n, const void *args, ses_buf *out);
/* Appends a word, in single quotes if a shell would change it. */
void ses_shell_word_put(ses_buf *out, const char *word, size_t n);

#endif
