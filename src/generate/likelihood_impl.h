/* Private parts of likelihoods: spans of tokens to score, and the passes that score them. Everything is owned
 * by one ses_likelihood, in one thread. */
#ifndef SES_GENERATE_LIKELIHOOD_IMPL_H
#define SES_GENERATE_LIKELIHOOD_IMPL_H

#include "likelihood.h"
#include "text/tokenizer_config.h"

#include "run/pass.h"

/* Tokens to score: a whole request, or a window of a text. Its ids are, one after the other: the context, the
 * continuation and, of masked models, the special tokens after it. */
typedef struct ses_scored_span {
    size_t at; /* in l->id */
    int32_t n_context, n_scored, n_tail;
    size_t request;
    double logprob;
    bool is_greedy;
} ses_scored_span;

struct ses_likelihood {
    const ses_model *model;
    const ses_tokenizer *tokenizer;
    ses_likelihood_options o;
    ses_likelihood_kind kind;
    const char *logits_name;
    int64_t vocab;
    int32_t prefix_id, mask_id; /* -1: none */
    ses_string prefix_text;     /* spelling of the prefix token */
    ses_encode_ctx *tokens;
    ses_pass pass;
    ses_cache *cache; /* NULL: the model has none */

    int32_t *id; /* tokens of all spans */
    size_t n_id, id_cap;
    ses_scored_span *span;
    size_t n_spans, span_cap, first_new; /* spans from first_new on are not computed */
    ses_likelihood_result *result;
    size_t n_results, result_cap;
    int32_t *text; /* scratch: tokens of one text */
    size_t n_text, text_cap;
    ses_likelihood_stats stats;
};

static inline const int32_t *ses_scored_span_ids(const ses_likelihood *l, const ses_scored_span *s)
{
    return l->id + s->at;
}

/* likelihood_run.c: computes the spans from first_new on. */
bool ses_likelihood_run_spans(ses_likelihood *l, ses_err *e);

#endif
