/* The list of commands and the options common to all of them. */
#include "command.h"

#include "analysis/analysis.h"
#include "base/suggest.h"
#include "sesame/model.h"
#include "task/task.h"

#include <string.h>

#define SES_COMMAND(name) extern const ses_command ses_command_##name;
#include "commands.def"
#undef SES_COMMAND

static const ses_command *const list[] = {
#define SES_COMMAND(name) &ses_command_##name,
#include "commands.def"
#undef SES_COMMAND
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

/* Short names of commands. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    { "qa", "question-answering" },         { "classify", "text-classification" },
    { "sentiment", "text-classification" }, { "generate", "text-generation" },
    { "summarize", "summarization" },       { "translate", "translation" },
};

const char *ses_command_name_of(const char *word)
{
    for (size_t i = 0; i < SES_LEN(aliases); i++)
        if (!strcmp(aliases[i].alias, word)) return aliases[i].name;
    return word;
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
    for (size_t i = 0; i < SES_LEN(aliases); i++)
        ses_suggest_offer(&s, aliases[i].alias, strlen(aliases[i].alias));
    ses_fail(e, SES_EUSAGE, "unknown command '%s'", name);
    if (!strcmp(name, "version")) s.best = "--version", s.best_len = strlen(s.best);
    ses_suggest_add(&s, "", e);
    return NULL;
}

const ses_opt ses_general_opt[] = {
    SES_OPT_CHOICE(ses_general_args, color, "color", "auto", "auto|always|never",
                   "color the output; auto: on a terminal unless NO_COLOR is set"),
    SES_OPT_FLAG(ses_general_args, quiet, "quiet", "print only errors on stderr, no progress or notices",
                 .letter = 'q'),
    SES_OPT_FLAG(ses_general_args, help, "help", "show this help", .letter = 'h'),
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
