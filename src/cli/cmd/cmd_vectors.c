/* vectors: the list of the actions on static word vectors. Each is a command of its own, vectors-ACTION. */
#include "cli/command.h"

#include <string.h>

static bool run(ses_call *c, ses_err *e)
{
    ses_buf names = { 0 };
    for (const ses_command *const *a = ses_commands(); *a; a++)
        if ((*a)->is_action && !strncmp((*a)->name, "vectors-", 8))
            ses_buf_appendf(&names, "%s%s", names.len ? ", " : "", (*a)->name + 8);
    if (c->n_operands)
        ses_fail(e, SES_EUSAGE, "unknown action \"%s\"; expected one of %s", c->operands[0], names.data);
    else
        ses_fail(e, SES_EUSAGE, "no action given; expected one of %s", names.data);
    ses_buf_free(&names);
    return false;
}

static const ses_usage_example examples[] = {
    { "sesame vectors train --exact word2vec --cbow 0 --output vectors.txt corpus.txt",
      "train skip-gram vectors, with the bits of word2vec.c" },
    { "sesame vectors nearest vectors.txt house", "the words nearest to a word" },
    { "sesame vectors eval vectors.txt --analogies questions-words.txt", "accuracy on analogies" },
    { "sesame vectors convert vectors.txt --to safetensors --output vectors", "another format" },
    { 0 },
};

const ses_command ses_command_vectors = {
    .name = "vectors",
    .usage = "ACTION ...",
    .summary = "train and use static word vectors",
    .description = "Trains and uses static word vectors. 'sesame vectors ACTION --help' describes an action.",
    .examples = examples,
    .max_operands = -1,
    .operand_words =
        "train|infer|phrases|info|convert|nearest|analogy|similarity|eval|quantize|supervised|test|predict",
    .run = run,
};
