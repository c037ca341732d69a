/* vectors analogy: completes an analogy. */
#include "base/str.h"
#include "word_questions.h"

typedef struct args {
    ses_word_question_args n;
    int method;
} args;

static const ses_opt opt[] = {
    SES_OPT_CHOICE(args, method, "method", "3cosadd", "3cosadd|3cosmul",
                   "the cosine with B - A + C, or the product of the three similarities"),
    SES_OPT_INCLUDE(args, n, ses_word_question_options),
};

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_word_questions x = { .call = c, .a = &a->n, .path = c->operands[0], .analogy = true };
    ses_buf words = { 0 };
    x.multiply = a->method == 1;
    if (c->n_operands == 1) return ses_word_questions_run(&x, NULL, 0, e);
    for (int i = 1; i < c->n_operands; i++) ses_buf_appendf(&words, "%s%s", i > 1 ? " " : "", c->operands[i]);
    bool ok = ses_buf_ok(&words, e) && ses_word_questions_run(&x, (const char *const[]){ words.data }, 1, e);
    ses_buf_free(&words);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors analogy vectors.bin man king woman", "man is to king as woman is to ...?" },
    { "sesame vectors analogy vectors.bin --method 3cosmul paris france rome", "by 3CosMul" },
    { 0 },
};

const ses_command ses_command_vectors_analogy = {
    .name = "vectors-analogy",
    .usage = "FILE [A B C]",
    .summary = "complete an analogy: A is to B as C is to ...",
    .description = "Completes an analogy: A is to B as C is to the answer. The three words are not answers. "
                   "No words: each line of standard input has three.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 4,
    .is_action = true,
    .run = run,
};
