/* Processors: what changes the scores of the next token before one is chosen. Each is a line in
 * processors.def, run in that order, which is the reference library's. */
#ifndef SES_TASK_PROCESS_H
#define SES_TASK_PROCESS_H

#include "sesame/generate.h"

typedef struct ses_ranked {
    float x;
    int32_t id;
} ses_ranked;

typedef struct ses_scoring {
    const ses_generate_options *o;
    float *score; /* [vocab]: logits, or with beams their logarithmic softmax */
    int64_t vocab;
    const int32_t *id; /* [n]: the text so far */
    int64_t n, given;
    int64_t max_length, min_length;
    ses_ids source;   /* what the encoder read, or the prompt */
    int64_t keep;     /* tokens that are left to choose from, at least */
    ses_ranked *rank; /* [vocab] of scratch */
} ses_scoring;

typedef struct ses_processor {
    bool (*wanted)(const ses_generate_options *o);
    void (*run)(ses_scoring *s);
} ses_processor;

#define SES_PROCESSOR(name) extern const ses_processor ses_process_##name;
#include "processors.def"
#undef SES_PROCESSOR

void ses_process(ses_scoring *s); /* all that are wanted */

/* For processors. */
void ses_ban(ses_scoring *s, int32_t id);
void ses_ban_all(ses_scoring *s, ses_ids ids);
int64_t ses_rank_finite(ses_scoring *s); /* the tokens not ruled out, into rank, best first */
/* The k-th best score; -infinity: there are no more than k. */
float ses_rank_score(ses_scoring *s, int64_t k);
void ses_rank_sort(ses_ranked *r, int64_t n); /* best first; of equals the lower id */
double ses_log_sum_exp(const float *x, int64_t n);

#endif
