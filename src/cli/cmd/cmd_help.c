/* help: shows help for a command. */
#include "cli/command.h"

static bool run(ses_call *c, ses_err *e)
{
    if (!c->n_operands) {
        ses_help_top(&c->out, stdout);
        return true;
    }
    ses_help_choice choice = { c->n_operands > 1 ? c->operands[1] : "", NULL };
    const ses_command *which = ses_command_require(c->operands[0], e);
    return which && ses_help_command(which, &choice, &c->out, stdout, e);
}

static const ses_usage_example examples[] = {
    { "sesame help doctor", "the same as 'sesame doctor --help'" },
    { "sesame help finetune training", "the options of a group, as 'sesame finetune --help training'" },
    { "sesame help finetune all", "all options" },
    { 0 },
};

const ses_command ses_command_help = {
    .name = "help",
    .usage = "[COMMAND [GROUP|all]]",
    .summary = "show help for a command",
    .description =
        "Shows the description, examples and options of a command, or the list of commands. Of a command "
        "with many options the common ones are shown, and the names of the groups of the others.",
    .examples = examples,
    .max_operands = 2,
    .operand_words = "COMMAND",
    .run = run,
};
