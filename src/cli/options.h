/* A command's options as one table. Parsing, --help, the manual pages and the shell completions all read
 * it, so an option is described once. Values land in the command's args struct at `offset`. */
#ifndef SES_CLI_OPTIONS_H
#define SES_CLI_OPTIONS_H

#include "sesame/err.h"

typedef enum {
    SES_OPT_FLAG,   /* bool; takes no value */
    SES_OPT_TEXT,   /* const char *; NULL without a default */
    SES_OPT_INT,    /* int64_t */
    SES_OPT_REAL,   /* double, finite */
    SES_OPT_SIZE,   /* int64_t, bytes: 4096, 512K, 64M, 2G, 1T (powers of 1024) */
    SES_OPT_CHOICE, /* int, the index in `choices`; -1 without a default */
    SES_OPT_LIST    /* ses_list; may be given again and again */
} ses_opt_type;

typedef struct ses_list {
    const char **item;
    size_t n;
} ses_list;

typedef struct ses_opt {
    const char *name; /* without the dashes */
    char letter;      /* -x, or 0 */
    ses_opt_type type;
    size_t offset;
    const char *value;   /* what help calls the value: N, FILE; of a choice: its choices */
    const char *def;     /* as it would be typed; NULL: zero, false, none */
    const char *choices; /* of a choice: "ref|avx2|avx512" */
    const char *env;     /* variable that gives the value when the option is absent; empty counts as unset */
    double min, max;     /* of a number, both included; both 0: any */
    bool required;       /* text, choice, list */
    const char *help;    /* one sentence without a period */
} ses_opt;

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
bool ses_options_complete(const ses_opt_group *group, size_t n_groups,
                          ses_err *e); /* the required are there */
void ses_options_free(const ses_opt_group *group, size_t n_groups);

/* What help prints for the value: "N", "ref|avx2|avx512", "" for a flag. */
const char *ses_opt_value_name(const ses_opt *o);

/* The i-th of "a|b|c" by pointer and length; false past the end. */
bool ses_choice_at(const char *choices, int i, const char **word, size_t *len);

#endif
