/* vectors nearest: lists the words nearest to words. */
#include "word_questions.h"

typedef struct args {
    ses_word_question_args n;
} args;

static const ses_opt opt[] = { SES_OPT_INCLUDE(args, n, ses_word_question_options) };

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_word_questions x = { .call = c, .a = &a->n, .path = c->operands[0] };
    return ses_word_questions_run(&x, (const char *const *)c->operands + 1, c->n_operands - 1, e);
}

static const ses_usage_example examples[] = {
    { "sesame vectors nearest vectors.bin house", "the ten words nearest to house" },
    { "sesame vectors nearest vectors.bin 'new york' -k 5", "nearest to the sum of two words" },
    { "sesame vectors nearest vectors.bin --json < words.txt", "one line of JSON for each line" },
    { 0 },
};

const ses_command ses_command_vectors_nearest = {
    .name = "vectors-nearest",
    .usage = "FILE [WORD...]",
    .summary = "list the words nearest to words, by cosine",
    .description =
        "Lists the words whose vectors are nearest to that of each WORD, by cosine. Several words in "
        "one argument are added, as word2vec's distance does. No WORD: the lines of standard input "
        "are answered as they arrive.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .is_action = true,
    .run = run,
};
