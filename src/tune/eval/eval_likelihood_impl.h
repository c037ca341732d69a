/* Private parts of eval_likelihood.c, eval_scores.c and eval_generation.c. */
#ifndef SES_TUNE_EVAL_LIKELIHOOD_IMPL_H
#define SES_TUNE_EVAL_LIKELIHOOD_IMPL_H

#include "eval_likelihood.h"

#include "base/str.h"

/* Requests and texts of a document. */
typedef struct ses_eval_item {
    size_t request; /* its first: choices, then the same choices without context, if the task needs them */
    size_t length;  /* first entry of its choices in chars and bytes */
    int32_t n_choices, right;
    int64_t words, bytes; /* counts of a text */
    bool is_equal;        /* generated text and target */
} ses_eval_item;

typedef struct ses_eval_state {
    const ses_eval_task *task;
    ses_prompts prompts;
    ses_likelihood *likelihood;
    ses_eval_item *item; /* [prompts.n] */
    size_t n;
    int32_t *chars, *bytes; /* lengths of all choices */
    size_t n_lengths, chars_cap, bytes_cap;
} ses_eval_state;

static inline ses_string string_of(const ses_buf *b) { return (ses_string){ b->len ? b->data : "", b->len }; }

/* eval_scores.c: the scores of the task's metrics. */
bool ses_eval_scores(const ses_eval_state *s, const ses_bootstrap *b, ses_eval_likelihood_result *r,
                     ses_err *e);

/* eval_generation.c: generates the texts of all documents and compares them. */
bool ses_eval_generation(ses_eval_state *s, const ses_model *m, const ses_tokenizer *t,
                         const ses_eval_likelihood_options *o, ses_eval_likelihood_result *r, ses_err *e);

#endif
