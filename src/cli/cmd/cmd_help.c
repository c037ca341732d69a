/* help: shows help for a command. */
#include "cli/command.h"

static bool run(ses_call *c, ses_err *e)
{
    if (!c->n_operands) {
        ses_help_top(&c->out, stdout);
        return true;
    }
    const ses_command *which = ses_command_require(c->operands[0], e);
    if (which) ses_help_command(which, &c->out, stdout);
    return which != NULL;
}

static const ses_usage_example examples[] = {
    { "sesame help doctor", "the same as 'sesame doctor --help'" },
    { 0 },
};

const ses_command ses_command_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "show help for a command",
    .description = "Shows the description, examples and options of a command, or the list of commands.",
    .examples = examples,
    .max_operands = 1,
    .operand_words = "COMMAND",
    .run = run,
};
