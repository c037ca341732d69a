/* A command is one file, cmd_NAME.c, that defines ses_command_NAME, and one line in commands.def. */
#ifndef SES_CLI_COMMAND_H
#define SES_CLI_COMMAND_H

#include "cli/ui/term.h"
#include "option_parser.h"

typedef struct ses_command ses_command;

/* What a command is called with. */
typedef struct ses_call {
    const ses_command *command;
    const void *args; /* the command's struct, filled from its table */
    void *task_args;  /* of a pipeline: its task's */
    char **operands;  /* operands, then NULL */
    int n_operands;
    ses_term out, err; /* what stdout and stderr are: terminal, width, color */
    bool quiet;
} ses_call;

struct ses_command {
    const char *name;
    const char *usage;                 /* the operands: "DIR", "[FILE...]", "" */
    const char *summary;               /* one line, lower case, no period */
    const char *description;           /* paragraphs, a blank line (\n\n) between them */
    const ses_usage_example *examples; /* ends with { 0 } */
    const ses_opt *opt;
    size_t n_opt, args_size;
    int min_operands, max_operands; /* how many operands; max_rest < 0: any number */
    const char
        *operand_words; /* completion of operands: "bash|zsh|fish", "COMMAND" for the names of commands,
                                NULL for files */
    bool hidden;        /* not in the list of commands */
    bool
        has_model_operand; /* the first operand is a model: its folder or its name; or --model is, if it has it */
    const struct ses_task *task; /* of a pipeline: its options come first, its words are the description */
    /* Data on stdout, talk on stderr. false with an error in e: main prints it and picks the exit code;
     * false without one: the work failed and the command has said so (exit 1). */
    bool (*run)(ses_call *c, ses_err *e);
};

const ses_command *const *ses_commands(void);          /* in the order of commands.def, then NULL */
const ses_command *ses_command_find(const char *name); /* NULL: none */
const ses_command *ses_command_require(const char *name, ses_err *e); /* with "did you mean" */

/* Iterates over the options, those of a pipeline's task first. Their offsets refer to different structs, so
 * this is for names and help texts. */
ses_opt_iter ses_command_options(const ses_command *c);
const char *ses_command_description(const ses_command *c);
const ses_usage_example *ses_command_examples(const ses_command *c); /* NULL: none */

#define SES_TASK(id, name, summary) extern const ses_command ses_pipeline_##id;
#define SES_TASK_ALIAS(alias, id, name) extern const ses_command ses_pipeline_##alias;
#include "task/tasks.def"
#undef SES_TASK
#undef SES_TASK_ALIAS
extern const char ses_pipeline_description[]; /* what is to be said of every pipeline */

/* Options of every command: --help, --color, --quiet; and of sesame itself. */
typedef struct ses_general_args {
    bool help, quiet;
    int color; /* ses_color_when */
} ses_general_args;

typedef struct ses_top_args {
    bool version, verbose;
} ses_top_args;

extern const ses_opt ses_general_opt[], ses_top_opt[];
extern const size_t ses_n_general_opt, ses_n_top_opt;

void ses_help_top(const ses_term *t, FILE *out);
void ses_help_command(const ses_command *c, const ses_term *t, FILE *out);
void ses_version_print(FILE *out, bool verbose);

#endif
