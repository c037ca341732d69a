/* Log-likelihoods of continuations, by the rules of the lm-evaluation-harness (docs/EVALUATION.md):
 *
 *     ses_likelihood *l = ses_likelihood_new(model, tokenizer, dir, NULL, &e);
 *     ses_likelihood_add(l, ses_str("Paris is the capital of"), ses_str(" France"), &e);     request 0
 *     ses_likelihood_run(l, &e);
 *     double x = ses_likelihood_at(l, 0)->logprob;
 *
 * A causal model scores the tokens of the continuation given all before them; an encoder-decoder reads the
 * context in its encoder and scores the continuation in its decoder; a masked model predicts each token of
 * the continuation, which is masked (pseudo-log-likelihood).
 *
 * Requests with the same context share its computation, equal requests all of it. On a CPU a result has the
 * same bits alone, with any others and in passes of any size.
 *
 * Ownership: the caller frees a ses_likelihood; model, tokenizer and dir must outlive it; texts are copied as
 * tokens. Threads: one at a time. Failure: false or NULL, with the reason in e. */
#ifndef SES_GENERATE_LIKELIHOOD_H
#define SES_GENERATE_LIKELIHOOD_H

#include "sesame/generate.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

typedef enum { SES_LIKELIHOOD_CAUSAL, SES_LIKELIHOOD_MASKED, SES_LIKELIHOOD_SEQ2SEQ } ses_likelihood_kind;

typedef struct ses_likelihood_options {
    int64_t max_length;  /* longest input in tokens; 0: the model's */
    int64_t pass_tokens; /* tokens of a forward pass, at least one sequence; 0: 4096 */
    bool no_sharing;     /* compute each request alone, for tests */
    /* Called after each pass with the number of tokens scored so far and in all, or NULL. */
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
} ses_likelihood_options;

typedef struct ses_likelihood_result {
    double logprob;    /* natural logarithm, summed over the tokens */
    int64_t tokens;    /* scored tokens */
    bool is_greedy;    /* every token is the most likely one */
    bool is_truncated; /* the context lost tokens at its beginning */
} ses_likelihood_result;

typedef struct ses_likelihood_stats {
    int64_t requests, truncated; /* requests added, of them with a truncated context */
    int64_t tokens_read, passes; /* by the model */
} ses_likelihood_stats;

typedef struct ses_likelihood ses_likelihood;

/* Fails if the model of folder dir does not predict tokens. o may be NULL. */
ses_likelihood *ses_likelihood_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                                   const ses_likelihood_options *o, ses_err *e);
void ses_likelihood_free(ses_likelihood *l); /* l may be NULL */
ses_likelihood_kind ses_likelihood_kind_of(const ses_likelihood *l);
int64_t ses_likelihood_max_length(const ses_likelihood *l);

/* Adds a request; requests have the numbers 0, 1, ... Fails if the continuation has no tokens, or more than
 * the model accepts. */
bool ses_likelihood_add(ses_likelihood *l, ses_string context, ses_string continuation, ses_err *e);
/* Adds a request for the likelihood of a whole text, in windows: each token is predicted once. */
bool ses_likelihood_add_text(ses_likelihood *l, ses_string text, ses_err *e);

/* Computes all requests that were added since the last call. */
bool ses_likelihood_run(ses_likelihood *l, ses_err *e);
/* The result of request i, after ses_likelihood_run; borrowed until the next call. */
const ses_likelihood_result *ses_likelihood_at(const ses_likelihood *l, size_t i);
ses_likelihood_stats ses_likelihood_get_stats(const ses_likelihood *l);

/* The tokens of a text that the model shall continue, without its first ones if there are more than
 * max (*truncated). Borrowed until the next call; of a masked model an error. */
bool ses_likelihood_encode_prompt(ses_likelihood *l, ses_string text, int64_t max, ses_ids *out,
                                  bool *truncated, ses_err *e);

/* Bytes of s without the white space at its end (Python's str.rstrip). */
size_t ses_likelihood_rstrip(ses_string s);

#endif
