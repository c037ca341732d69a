/* The list of commands and the options common to all of them. */
#include "command.h"

#include "analysis/analysis.h"
#include "base/suggest.h"
#include "sesame/model.h"
#include "task/task.h"

#include <string.h>

#define SES_COMMAND_GROUP(title)
#define SES_COMMAND(name) extern const ses_command ses_command_##name;
#include "commands.def"
#undef SES_COMMAND

static const ses_command *const list[] = {
#define SES_COMMAND(name) &ses_command_##name,
#include "commands.def"
#undef SES_COMMAND
#undef SES_COMMAND_GROUP
#define SES_TASK(id, name, summary) &ses_pipeline_##id,
#define SES_TASK_ALIAS(alias, name, id, task_name) &ses_pipeline_##alias,
#include "task/tasks.def"
#undef SES_TASK
#undef SES_TASK_ALIAS
#define SES_ANALYSIS(id, name, summary) &ses_analysis_command_##id,
#include "analysis/analyses.def"
#undef SES_ANALYSIS
    NULL,
};

/* The same commands below the titles of their groups. */
static const struct {
    const char *title; /* NULL: a command of the group before it */
    const ses_command *command;
} grouped[] = {
#define SES_COMMAND_GROUP(title) { title, NULL },
#define SES_COMMAND(name) { NULL, &ses_command_##name },
#include "commands.def"
#undef SES_COMMAND
#undef SES_COMMAND_GROUP
};

const char *ses_command_group_title(size_t i)
{
    for (size_t k = 0; k < SES_LEN(grouped); k++)
        if (grouped[k].title && !i--) return grouped[k].title;
    return NULL;
}

const char *ses_command_group_of(const ses_command *c)
{
    const char *title = NULL;
    for (size_t k = 0; k < SES_LEN(grouped); k++) {
        if (grouped[k].title) title = grouped[k].title;
        if (grouped[k].command == c) return title;
    }
    return c->task ? ses_command_group_title(0) : c->analysis ? "Inspect" : NULL;
}

/* Words that people type, and the commands they mean. */
static const struct {
    const char *word, *name;
    const char *answer; /* instead of running it: what the word could mean; NULL: it runs */
} words[] = {
    { "qa", "question-answering" },
    { "classify", "text-classification" },
    { "sentiment", "text-classification" },
    { "zero-shot", "zero-shot-classification" },
    { "mask", "fill-mask" },
    { "generate", "text-generation" },
    { "summarize", "summarization" },
    { "translate", "translation" },
    { "embeddings", "embed" },
    { "sim", "similarity" },
    { "train", "finetune" },
    { "fine-tune", "finetune" },
    { "list", "models" },
    { "ls", "models" },
    { "download", "pull" },
    { "version", "--version" },
    { "encode", "embed", "'sesame embed' gives vectors of texts, 'sesame tokenize' their tokens" },
    { "chat", "text-generation",
      "'sesame generate' continues a text and 'sesame qa' answers from a text; no bundled model was trained "
      "for chats" },
};

const char *ses_command_name_of(const char *word)
{
    for (size_t i = 0; i < SES_LEN(words); i++)
        if (!words[i].answer && !strcmp(words[i].word, word)) return words[i].name;
    return word;
}

/* The answer to a word that could mean several commands. NULL: none. */
static const char *answer_of(const char *word)
{
    for (size_t i = 0; i < SES_LEN(words); i++)
        if (!strcmp(words[i].word, word)) return words[i].answer;
    return NULL;
}

ses_command_part ses_command_part_of(const ses_command *c)
{
    const ses_task *t = c->task;
    const ses_analysis *a = c->analysis;
    if (t)
        return (ses_command_part){ t->description, t->operands, t->examples, t->opt, t->n_opt, t->args_size };
    if (a)
        return (ses_command_part){ a->description, a->operands, a->examples, a->opt, a->n_opt, a->args_size };
    return (ses_command_part){ 0 };
}

ses_opt_iter ses_command_options(const ses_command *c)
{
    ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt);
    ses_command_part part = ses_command_part_of(c);
    if (part.n_opt) { /* iterated first, then the command's own */
        it.level[1].next = part.opt;
        it.level[1].end = part.opt + part.n_opt;
        it.depth = 1;
    }
    return it;
}

const char *ses_command_description(const ses_command *c)
{
    ses_command_part part = ses_command_part_of(c);
    return part.description ? part.description : c->description;
}

const ses_usage_example *ses_command_examples(const ses_command *c)
{
    ses_command_part part = ses_command_part_of(c);
    return part.examples ? part.examples : c->examples;
}

const char *ses_command_usage(const ses_command *c)
{
    ses_command_part part = ses_command_part_of(c);
    return part.operands ? part.operands : c->usage;
}

const char *ses_command_model_note(const ses_command *c)
{
    if (!c->task) return NULL;
    return ses_model_default(ses_task_canonical_name(c->task))
               ? "Without --model the bundled model of this task is used."
               : "No model is bundled for this task: --model is required.";
}

const ses_command *const *ses_commands(void) { return list; }

const ses_command *ses_command_find(const char *name)
{
    name = ses_command_name_of(name);
    for (size_t i = 0; list[i]; i++)
        if (!strcmp(list[i]->name, name)) return list[i];
    const ses_task_entry *t = ses_task_find(name); /* an alias such as translation_en_to_de */
    for (size_t i = 0; t && list[i]; i++)
        if (list[i]->task == t->task) return list[i];
    return NULL;
}

const ses_command *ses_command_require(const char *name, ses_err *e)
{
    const ses_command *c = ses_command_find(name);
    if (c) return c;
    ses_suggestion s = { .word = name };
    for (size_t i = 0; list[i]; i++)
        if (!list[i]->hidden) ses_suggest_offer(&s, list[i]->name, strlen(list[i]->name));
    for (size_t i = 0; i < SES_LEN(words); i++) ses_suggest_offer(&s, words[i].word, strlen(words[i].word));
    const char *answer = answer_of(name);
    ses_fail(e, SES_EUSAGE, "unknown command '%s'%s%s", name, answer ? "; " : "", answer ? answer : "");
    if (!answer) ses_suggest_add(&s, "", e);
    return NULL;
}

const ses_opt ses_general_opt[] = {
    SES_OPT_CHOICE(ses_general_args, color, "color", "auto", "auto|always|never",
                   "color the output; auto: on a terminal unless NO_COLOR is set", .group = "general"),
    SES_OPT_FLAG(ses_general_args, quiet, "quiet", "print only errors on stderr, no progress or notices",
                 .letter = 'q', .group = "general"),
    SES_OPT_TEXT(ses_general_args, help, "help", "GROUP", "show help; all: with every option", .letter = 'h',
                 .implicit_value = "", .value_ending = "", .choices = "all"),
};
const size_t ses_n_general_opt = SES_LEN(ses_general_opt);

const ses_opt ses_top_opt[] = {
    SES_OPT_FLAG(ses_top_args, version, "version", "show the version", .letter = 'V'),
    SES_OPT_FLAG(ses_top_args, verbose, "verbose",
                 "with --version: show compiler, instruction sets and optional libraries", .letter = 'v'),
};
const size_t ses_n_top_opt = SES_LEN(ses_top_opt);

bool ses_command_without_action(ses_call *c, ses_err *e)
{
    ses_buf names = { 0 };
    size_t n = strlen(c->command->name);
    for (const ses_command *const *a = ses_commands(); *a; a++)
        if ((*a)->is_action && !strncmp((*a)->name, c->command->name, n) && (*a)->name[n] == '-')
            ses_buf_appendf(&names, "%s%s", names.len ? ", " : "", (*a)->name + n + 1);
    if (c->n_operands)
        ses_fail(e, SES_EUSAGE, "unknown action \"%s\"; expected one of %s", c->operands[0], names.data);
    else
        ses_fail(e, SES_EUSAGE, "no action given; expected one of %s", names.data);
    ses_buf_free(&names);
    return false;
}
