/* Private parts of ses_generate: prompts in progress, their hypotheses, and the decoding strategies.
 * Everything is owned by one call of ses_generate, in one thread. */
#ifndef SES_GENERATE_GENERATE_IMPL_H
#define SES_GENERATE_GENERATE_IMPL_H

#include "base/arena.h"
#include "logits_processor.h"
#include "sesame/cache.h"

/* A text in progress: a sample or a beam. */
typedef struct ses_hypothesis {
    int32_t slot;   /* in the cache */
    int32_t *id;    /* [max_length], n used: prompt and generated tokens */
    float *logprob; /* [max_length - prompt_len], of generated tokens */
    int64_t n;
    float score; /* beams: sum of the tokens' scores */
    bool done;
    ses_finish_reason finish;
} ses_hypothesis;

/* A prompt in progress. */
typedef struct ses_prompt_state {
    ses_arena mem;      /* owns the arrays below */
    int64_t index;      /* number of the prompt */
    ses_ids source;     /* input of the encoder; of a decoder alone, the prompt */
    int64_t prompt_len; /* tokens its hypotheses begin with */
    int64_t max_length, min_length;
    ses_hypothesis *hyp; /* [n_hyps] */
    int64_t n_hyps;
    uint32_t random_site; /* hash of the prompt: its random numbers do not depend on other prompts */
    void *search;         /* state of the decoding strategy */
    bool done;
} ses_prompt_state;

typedef struct ses_decoding ses_decoding;
typedef struct ses_mems ses_mems;

/* A call of ses_generate. */
typedef struct ses_generate_ctx {
    const ses_model *model;
    ses_generate_options o;
    const ses_prompt *prompt; /* [n_prompts] */
    int64_t n_prompts, next_prompt;
    bool has_encoder;        /* an encoder reads the prompt */
    const char *logits_name; /* name of the model's output */
    const ses_decoding *decoding;
    int64_t vocab_size;
    ses_cache *cache; /* one of the two: keys and values, or Transformer-XL memories */
    ses_mems *mems;
    ses_tape *tape;
    ses_encode_ctx *tokens;    /* for stop strings; else NULL */
    ses_prompt_state **active; /* [n_active] prompts in progress; NULL: free */
    int64_t n_active;
    int32_t *reorder_to, *reorder_from; /* [n_reorder] slots to copy before the next pass */
    int64_t n_reorder;
    ses_real *logits;        /* [sequences, vocab_size] of the last pass */
    int64_t logits_capacity; /* in rows */
    float *score;            /* [vocab_size] of one hypothesis, processed */
    ses_ranked_token *rank;  /* [vocab_size], scratch */
    ses_generated *out;
} ses_generate_ctx;

/* A decoding strategy. */
struct ses_decoding {
    int64_t (*count_hyps)(const ses_generate_options *o); /* for each prompt */
    bool (*begin)(ses_generate_ctx *g, ses_prompt_state *p, ses_err *e);
    /* Adds one token to each hypothesis that is not done. logits[i] is the row of hypothesis i; in the
     * first step all hypotheses have the same row. */
    bool (*step)(ses_generate_ctx *g, ses_prompt_state *p, const ses_real *const *logits, ses_err *e);
    /* out: [num_return_sequences] */
    bool (*finish)(ses_generate_ctx *g, ses_prompt_state *p, ses_generated_sequence *out, ses_err *e);
};
extern const ses_decoding ses_decoding_sample, ses_decoding_beam;

/* generate_check.c: options against each other and the model; fills has_encoder and logits_name. */
bool ses_generate_check(ses_generate_ctx *g, ses_err *e);
bool ses_generate_check_ids(ses_ids ids, int64_t vocab_size, const char *name, ses_err *e);

/* Scores of a hypothesis' next token after the logits processors, in g->score: logits, or log-softmax if
 * log_softmax. Returns the log-sum-exp of the unprocessed logits. */
double ses_generate_next_scores(ses_generate_ctx *g, const ses_prompt_state *p, const ses_hypothesis *h,
                                const ses_real *logits, bool log_softmax);

/* Schedules a copy of cache slot `from` to slot `to` before the next pass. */
void ses_generate_reorder_cache(ses_generate_ctx *g, int32_t to, int32_t from);

/* stopping.c: *stops if the text of n tokens ends with its last token, and why. */
bool ses_generate_check_stop(ses_generate_ctx *g, const ses_prompt_state *p, const int32_t *id, int64_t n,
                             ses_finish_reason *why, bool *stops, ses_err *e);

/* Copies a text of n tokens as a result. */
bool ses_generated_sequence_copy(ses_generated_sequence *out, const ses_prompt_state *p, const int32_t *id,
                                 int64_t n, const float *logprob, ses_err *e);

/* mems.c: Transformer-XL memories, one set for each slot, instead of a KV cache. A pass takes the batch
 * that ses_mems_begin_pass makes of the new tokens (NULL: no memory), requests mems and ends with
 * ses_mems_end_pass. */
ses_mems *ses_mems_new(const ses_model *m, int64_t slots, ses_err *e);
void ses_mems_free(ses_mems *k);
const ses_batch *ses_mems_begin_pass(ses_mems *k, const ses_batch *b, ses_err *e);
bool ses_mems_end_pass(ses_mems *k, ses_tape *tape, const ses_outputs *out, ses_err *e);
bool ses_mems_reorder(ses_mems *k, int64_t n, const int32_t *to, const int32_t *from, ses_err *e);
void ses_mems_clear_slot(ses_mems *k, int64_t slot);

#endif
