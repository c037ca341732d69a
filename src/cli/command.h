/* Commands. A command is one file, cmd/cmd_NAME.c, that defines ses_command_NAME, and one line in
 * commands.def.
 *
 * Ownership: commands are constant; a call borrows its arguments from main, which frees them after run.
 * Threads: commands run on the main thread; stdout and stderr belong to them. */
#ifndef SES_CLI_COMMAND_H
#define SES_CLI_COMMAND_H

#include "cli/ui/term.h"
#include "option_parser.h"

typedef struct ses_command ses_command;

typedef struct ses_call {
    const ses_command *command;
    const void *args; /* struct filled from the command's options */
    void *task_args;  /* pipelines and analyses: struct filled from the options of the task or analysis */
    char **operands;  /* operands, then NULL */
    int n_operands;
    ses_term out, err; /* stdout and stderr */
    bool quiet;
} ses_call;

struct ses_command {
    const char *name;
    const char *usage;                 /* operands: "DIR", "[FILE...]", "" */
    const char *summary;               /* one line, lower case, no period */
    const char *description;           /* paragraphs separated by \n\n */
    const ses_usage_example *examples; /* ends with { 0 } */
    const ses_opt *opt;
    size_t n_opt, args_size;
    int min_operands, max_operands; /* number of operands; max_operands < 0: unlimited */
    /* completion of operands: "bash|zsh|fish"; "COMMAND": command names; NULL: files */
    const char *operand_words;
    bool hidden; /* not listed by help */
    /* named GROUP-ACTION: also called as "GROUP ACTION", and listed by the help of the command GROUP */
    bool is_action;
    /* the first operand is a model (folder or name), unless --model gives it */
    bool has_model_operand;
    /* whether the options name the models, so that the first operand is none; NULL: they never do */
    bool (*names_models)(const void *args, int n_operands);
    /* the bundled model of this pipeline is the default of --model; NULL: a pipeline's own, otherwise none */
    const char *default_model_of;
    /* pipelines and analyses: provides more options, the description and examples */
    const struct ses_task *task;
    const struct ses_analysis *analysis;
    /* Opens the options of an earlier call that are the defaults of this one: an object with a member
     * "options". NULL without an error: there are none. The pointer itself may be NULL. */
    ses_json_doc *(*open_stored)(const ses_call *c, ses_err *e);
    bool uses_ranks; /* mpirun, srun and torchrun start one run of several processes: rank 0 prints errors */
    /* Writes data to stdout and messages to stderr. false with an error in e: main prints it and picks
     * the exit code; false without one: the command has reported the failure (exit 1), or
     * a signal has stopped it (128 + its number). */
    bool (*run)(ses_call *c, ses_err *e);
};

const ses_command *const *ses_commands(void);           /* in the order of commands.def, then NULL */
const char *ses_command_group_title(size_t i);          /* "Use a model"; NULL: no further group */
const char *ses_command_group_of(const ses_command *c); /* the title of its group; NULL: none */
/* The run function of a command that has actions only, as vectors: fails with the list of its actions. */
bool ses_command_without_action(ses_call *c, ses_err *e);
const ses_command *ses_command_find(const char *name); /* NULL: unknown */
const char *ses_command_name_of(const char *word);     /* name of a command for an alias such as "qa" */
/* Fails for an unknown name and suggests a similar one. */
const ses_command *ses_command_require(const char *name, ses_err *e);

/* The part of a command that its task or analysis provides; zeroed: none. */
typedef struct ses_command_part {
    const char *description, *operands;
    const ses_usage_example *examples;
    const ses_opt *opt;
    size_t n_opt, args_size;
} ses_command_part;
ses_command_part ses_command_part_of(const ses_command *c);

/* Iterates over the options; the options of a task or an analysis come first. Their offsets refer to
 * different structs: use this for names and help texts. */
ses_opt_iter ses_command_options(const ses_command *c);
const char *ses_command_description(const ses_command *c);
const char *ses_command_usage(const ses_command *c);      /* operands, for help */
const char *ses_command_model_note(const ses_command *c); /* pipelines: default of --model; otherwise NULL */
const ses_usage_example *ses_command_examples(const ses_command *c); /* NULL: none */

#define SES_TASK(id, name, summary) extern const ses_command ses_pipeline_##id;
#define SES_TASK_ALIAS(alias, name, id, task_name) extern const ses_command ses_pipeline_##alias;
#include "task/tasks.def"
#undef SES_TASK
#undef SES_TASK_ALIAS
extern const char ses_pipeline_description[]; /* common to all pipelines */
#define SES_ANALYSIS(id, name, summary) extern const ses_command ses_analysis_command_##id;
#include "analysis/analyses.def"
#undef SES_ANALYSIS
extern const char ses_analysis_description[]; /* common to all analyses */

/* Options of every command. */
typedef struct ses_general_args {
    const char *help; /* "": of the common options; a group of options, or "all"; NULL: do not help */
    bool quiet;
    int color; /* ses_color_when */
} ses_general_args;

/* Options before the command. */
typedef struct ses_top_args {
    bool version, verbose;
} ses_top_args;

extern const ses_opt ses_general_opt[], ses_top_opt[];
extern const size_t ses_n_general_opt, ses_n_top_opt;

void ses_help_start(const ses_term *t, FILE *out); /* a first page: tasks, commands, where to go next */
void ses_help_top(const ses_term *t, FILE *out);   /* all commands, by group */
/* The options to show. */
typedef struct ses_help_choice {
    const char *group; /* "": a screenful; "all"; or the name of a group */
    const char *task;  /* options that apply to this task of fine-tuning; NULL: to any */
} ses_help_choice;
/* Fails for a group that the command does not have, with the list of its groups. */
bool ses_help_command(const ses_command *c, const ses_help_choice *choice, const ses_term *t, FILE *out,
                      ses_err *e);
/* "vectors train" for an action vectors-train, in buf; other names are as they are. */
const char *ses_command_called_name(const ses_command *c, char *buf, size_t size);
void ses_version_print(FILE *out, bool verbose);

#endif
