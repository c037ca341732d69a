/* Questions to word vectors, shared by `vectors nearest` and `vectors analogy`: a line of words becomes a
 * query, the answer is a table or a line of JSON. Questions are operands, or lines of standard input, which
 * are answered as they arrive. Main thread only. */
#ifndef SES_CLI_WORD_QUESTIONS_H
#define SES_CLI_WORD_QUESTIONS_H

#include "cli/command.h"
#include "sesame/vectors.h"

typedef struct ses_word_question_args {
    int64_t threads, top_k, limit;
    bool json;
} ses_word_question_args;

extern const ses_opt_table ses_word_question_options;

typedef struct ses_word_questions {
    ses_call *call;
    const ses_word_question_args *a;
    bool analogy;  /* three words: a is to b as c is to the answer; else the words are added */
    bool multiply; /* 3CosMul */
    const char *path;
} ses_word_questions;

/* Answers the n questions; none: the lines of standard input. */
bool ses_word_questions_run(const ses_word_questions *x, const char *const *question, int n, ses_err *e);

#endif
