/* vectors: the list of the actions on static word vectors. Each is a command of its own, vectors-ACTION. */
#include "cli/command.h"

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
    .run = ses_command_without_action,
};
