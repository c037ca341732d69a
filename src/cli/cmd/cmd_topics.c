/* topics: the list of the actions on topic models. Each is a command of its own, topics-ACTION. */
#include "cli/command.h"

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
    .run = ses_command_without_action,
};
