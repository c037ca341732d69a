/* topics: the list of the actions on topic models. Each is a command of its own, topics-ACTION. */
#include "cli/command.h"

#include <string.h>

static bool run(ses_call *c, ses_err *e)
{
    ses_buf names = { 0 };
    for (const ses_command *const *a = ses_commands(); *a; a++)
        if ((*a)->is_action && !strncmp((*a)->name, "topics-", 7))
            ses_buf_appendf(&names, "%s%s", names.len ? ", " : "", (*a)->name + 7);
    if (c->n_operands)
        ses_fail(e, SES_EUSAGE, "unknown action \"%s\"; expected one of %s", c->operands[0], names.data);
    else
        ses_fail(e, SES_EUSAGE, "no action given; expected one of %s", names.data);
    ses_buf_free(&names);
    return false;
}

static const ses_usage_example examples[] = {
    { "sesame topics train --topics 20 --passes 10 --output topics news.tsv",
      "20 topics of the texts in a table" },
    { "sesame topics infer topics new.txt", "the topics of other texts" },
    { 0 },
};

const ses_command ses_command_topics = {
    .name = "topics",
    .usage = "ACTION ...",
    .summary = "find the topics of texts: LDA and LSA",
    .description = "Trains and uses topic models. 'sesame topics ACTION --help' describes an action.",
    .examples = examples,
    .max_operands = -1,
    .operand_words = "train|infer|show",
    .run = run,
};
