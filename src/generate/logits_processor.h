/* Logits processors: change the scores of the next token before one is chosen. Each is a line in
 * processors.def; they run in that order, which is the order in transformers. Nothing is owned; one
 * thread for each ses_logits_ctx. */
#ifndef SES_GENERATE_LOGITS_PROCESSOR_H
#define SES_GENERATE_LOGITS_PROCESSOR_H

#include "sesame/generate.h"

typedef struct ses_ranked_token {
    float x;
    int32_t id;
} ses_ranked_token;

/* The scores of one hypothesis' next token, and what processors need to change them. */
typedef struct ses_logits_ctx {
    const ses_generate_options *o;
    float *score; /* [vocab_size]: logits; with beams their log-softmax */
    int64_t vocab_size;
    const int32_t *id; /* [n]: the text so far, prompt included */
    int64_t n, prompt_len;
    int64_t max_length, min_length;
    ses_ids source;         /* input of the encoder, or the prompt */
    int64_t min_keep;       /* truncation leaves at least this many tokens */
    ses_ranked_token *rank; /* [vocab_size], scratch */
} ses_logits_ctx;

typedef struct ses_logits_processor {
    bool (*is_active)(const ses_generate_options *o);
    void (*run)(ses_logits_ctx *c);
} ses_logits_processor;

#define SES_PROCESSOR(name) extern const ses_logits_processor ses_processor_##name;
#include "processors.def"
#undef SES_PROCESSOR

/* Runs all active processors. */
void ses_logits_process(ses_logits_ctx *c);

/* Helpers for processors. Banned tokens have the score -infinity. */
void ses_logits_ban(ses_logits_ctx *c, int32_t id);
void ses_logits_ban_all(ses_logits_ctx *c, ses_ids ids);
int64_t ses_logits_rank(ses_logits_ctx *c); /* c->rank gets the tokens that are not banned, best first */
/* The k-th best score; -infinity: at most k tokens are not banned. */
float ses_logits_kth_score(ses_logits_ctx *c, int64_t k);
void ses_ranked_sort(ses_ranked_token *r, int64_t n); /* best first; equal scores by id */
double ses_log_sum_exp(const float *x, int64_t n);

#endif
