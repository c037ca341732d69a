/* Processors: what changes the scores of the next token before one is chosen. Each is a line in
 * processors.def, run in that order, which is the reference library's. */
#ifndef SES_TASK_PROCESS_H
#define SES_TASK_PROCESS_H

#include "sesame/generate.h"

typedef struct ses_ranked_token {
    float x;
    int32_t id;
} ses_ranked_token;

typedef struct ses_logits_ctx {
    const ses_generate_options *o;
    float *score; /* [vocab]: logits, or with beams their logarithmic softmax */
    int64_t vocab;
    const int32_t *id; /* [n]: the text so far */
    int64_t n, prompt_len;
    int64_t max_length, min_length;
    ses_ids source;         /* what the encoder read, or the prompt */
    int64_t keep;           /* tokens that are left to choose from, at least */
    ses_ranked_token *rank; /* [vocab] of scratch */
} ses_logits_ctx;

typedef struct ses_logits_processor {
    bool (*wanted)(const ses_generate_options *o);
    void (*run)(ses_logits_ctx *s);
} ses_logits_processor;

#define SES_PROCESSOR(name) extern const ses_logits_processor ses_process_##name;
#include "processors.def"
#undef SES_PROCESSOR

void ses_logits_process(ses_logits_ctx *s); /* all that are wanted */

/* For processors. */
void ses_logits_ban(ses_logits_ctx *s, int32_t id);
void ses_logits_ban_all(ses_logits_ctx *s, ses_ids ids);
int64_t ses_logits_rank(ses_logits_ctx *s); /* the tokens not ruled out, into rank, best first */
/* The k-th best score; -infinity: there are no more than k. */
float ses_logits_kth_score(ses_logits_ctx *s, int64_t k);
void ses_ranked_sort(ses_ranked_token *r, int64_t n); /* best first; of equals the lower id */
double ses_log_sum_exp(const float *x, int64_t n);

#endif
