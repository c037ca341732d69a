/* Private parts of generation: the generator, prompts in progress, their hypotheses, and the decoding
 * strategies. Everything is owned by one generator, in one thread.
 *
 * Names in this folder: g generator, p prompt, h hypothesis, e error. */
#ifndef SES_GENERATE_GENERATE_IMPL_H
#define SES_GENERATE_GENERATE_IMPL_H

#include "base/arena.h"
#include "logits_processor.h"
#include "run/batch_builder.h"
#include "sesame/generate.h"
#include "sesame/model.h"
#include "slot_states.h"

enum { SES_MAX_TOP_LOGPROBS = 1000 };

/* Tokens of a text; arrays in the prompt's arena. */
typedef struct ses_text_tokens {
    int32_t *id;        /* [max_length]: prompt and generated tokens */
    float *logprob;     /* [max_length - prompt_len], of generated tokens */
    ses_top_token *top; /* [max_length - prompt_len, n_top]; NULL: not requested */
} ses_text_tokens;

/* A text in progress: a sample or a beam. */
typedef struct ses_hypothesis {
    int32_t slot; /* in the cache */
    ses_text_tokens t;
    int64_t n;   /* tokens, prompt included */
    float score; /* beams: sum of the tokens' scores */
    bool done;
    ses_finish_reason finish;
} ses_hypothesis;

typedef struct ses_decoding ses_decoding;

/* A prompt, waiting or in progress. */
typedef struct ses_prompt_state {
    struct ses_prompt_state *next; /* in the list of waiting prompts */
    ses_arena mem;                 /* owns the arrays below */
    int64_t index;                 /* number of the prompt */
    ses_generate_options o;        /* on_token and ctx are the prompt's */
    void (*on_finish)(void *ctx, int64_t prompt, ses_generated *r, const ses_err *why);
    const ses_decoding *decoding;
    ses_ids source;     /* input of the encoder; of a decoder alone, the prompt */
    ses_ids first;      /* tokens its hypotheses begin with */
    int64_t prompt_len; /* their number */
    int64_t max_length, min_length;
    int64_t n_hyps, cache_need; /* sequences, and tokens in the cache */
    uint32_t random_site;       /* hash of the prompt: its random numbers do not depend on other prompts */

    /* in progress */
    ses_hypothesis *hyp; /* [n_hyps]; NULL: waiting */
    int64_t n_read;      /* tokens of the prompt that the model has read */
    void *search;        /* state of the decoding strategy */
    int64_t n_top;       /* top tokens at each position */
    float *prompt_logprob;
    ses_top_token *prompt_top;
    ses_encode_ctx *tokens; /* for stop strings: g->tokens, or its own; NULL: none */
    bool reordered;         /* the next copies in the cache concern it */
    bool done, cancelled;
    ses_err error;
} ses_prompt_state;

/* A prompt's part of a pass: prompt tokens to read, or 0: the last token of each unfinished hypothesis. */
typedef struct ses_pass_part {
    ses_prompt_state *p;
    int64_t n;
} ses_pass_part;

struct ses_generator {
    const ses_model *model;
    bool has_encoder;        /* an encoder reads the prompt */
    const char *logits_name; /* name of the model's output */
    int64_t vocab_size;
    int64_t cache_tokens, max_sequences, prefill_tokens;
    bool allows_large;   /* a prompt that needs more than cache_tokens runs alone */
    bool fails_together; /* a failed pass fails all its prompts */
    bool is_closing;     /* being freed */
    ses_cache *cache;    /* one of the two: keys and values, or other states of earlier tokens */
    ses_slot_states *states;
    int64_t cache_used; /* tokens reserved by prompts in progress */
    ses_tape *tape;
    ses_batch_builder in;   /* the next pass */
    ses_ints last;          /* number of last tokens of each of its sequences whose logits are needed */
    ses_encode_ctx *tokens; /* for stop strings; NULL: no prompt in progress has any */
    const ses_tokenizer *tokens_of;
    int64_t tokens_users;

    ses_prompt_state *first_waiting, *last_waiting;
    int64_t n_waiting, n_waiting_cancelled;
    ses_prompt_state *
        *active; /* [n_active] in progress, in the order of their start; max_sequences allocated */
    int64_t n_active, next_index;
    int32_t *free_slot; /* [n_free_slots] */
    int64_t n_free_slots;
    int32_t *slot; /* [max_sequences], scratch: slots of a prompt that starts */

    int32_t *reorder_to, *reorder_from; /* [n_reorder] slots to copy before the next pass */
    int64_t n_reorder;
    ses_real *logits;            /* rows of the last pass, vocab_size each */
    int64_t logits_capacity;     /* in rows */
    const ses_real **logits_row; /* [max_sequences], scratch: the rows of one prompt */
    ses_pass_part *part;         /* [max_sequences], scratch */
    float *score;                /* [vocab_size] of one hypothesis, processed */
    ses_ranked_token *rank;      /* [vocab_size], scratch */
    ses_top_token *top;          /* most likely tokens of the row in `score`, if the prompt requests them */
    ses_generator_stats stats;
};

/* A decoding strategy. */
struct ses_decoding {
    int64_t (*count_hyps)(const ses_generate_options *o); /* for each prompt */
    bool (*begin)(ses_generator *g, ses_prompt_state *p, ses_err *e);
    /* Adds one token to each hypothesis that is not done. logits[i] is the row of hypothesis i; in the
     * first step all hypotheses have the same row. */
    bool (*step)(ses_generator *g, ses_prompt_state *p, const ses_real *const *logits, ses_err *e);
    /* out: [num_return_sequences] */
    bool (*finish)(ses_prompt_state *p, ses_generated_sequence *out, ses_err *e);
};
extern const ses_decoding ses_decoding_sample, ses_decoding_beam;

/* ---- generate_check.c ---- */

/* Fills has_encoder and logits_name. */
bool ses_generate_check_model(ses_generator *g, ses_err *e);
/* Checks options against each other and the model; sets o->decoder_start. */
bool ses_generate_check(const ses_generator *g, ses_generate_options *o, ses_err *e);
bool ses_generate_check_ids(ses_ids ids, int64_t vocab_size, const char *name, ses_err *e);

/* ---- prompt_state.c ---- */

ses_prompt_state *ses_prompt_state_new(const ses_generator *g, const ses_prompt *prompt,
                                       const ses_generate_options *o, ses_err *e);
void ses_prompt_state_free(ses_generator *g, ses_prompt_state *p);
/* Allocates hypotheses, in the given slots, and the state of the strategy. */
bool ses_prompt_state_begin(ses_generator *g, ses_prompt_state *p, const int32_t *slot, ses_err *e);
/* The texts; NULL after an error. */
ses_generated *ses_prompt_state_finish(ses_prompt_state *p, ses_err *e);

static inline bool ses_prompt_state_is_over(const ses_prompt_state *p)
{
    return p->done || p->cancelled || p->error.code != SES_OK;
}

/* Buffers for a text of p. */
bool ses_text_tokens_new(ses_prompt_state *p, ses_text_tokens *t, ses_err *e);
/* Copies a text of n tokens as a result. */
bool ses_generated_sequence_copy(ses_generated_sequence *out, const ses_prompt_state *p,
                                 const ses_text_tokens *t, int64_t n, ses_err *e);

/* ---- generator.c ---- */

void ses_generator_cancel_all(ses_generator *g);

/* ---- generator_pass.c ---- */

/* Runs the model on n parts and makes a step of every prompt that has been read. Errors are the prompts'. */
void ses_generator_run_parts(ses_generator *g, const ses_pass_part *part, int64_t n);
/* Unfinished hypotheses. */
int64_t ses_prompt_state_unfinished(const ses_prompt_state *p);

/* Schedules a copy of cache slot `from` to slot `to` before the next pass. */
void ses_generate_reorder_cache(ses_generator *g, ses_prompt_state *p, int32_t to, int32_t from);

/* ---- next_scores.c ---- */

/* Scores of a hypothesis' next token after the logits processors, in g->score: logits, or log-softmax if
 * log_softmax. *lse: log-sum-exp of the unprocessed logits. g->top gets the most likely tokens, p->n_top of
 * them. Fails if the logits are NaN or infinite. */
bool ses_generate_next_scores(ses_generator *g, const ses_prompt_state *p, const ses_hypothesis *h,
                              const ses_real *logits, bool log_softmax, double *lse, ses_err *e);
/* Log-probability and top tokens of token `at` of the prompt, from the logits of the token before it. */
bool ses_generate_score_prompt(ses_generator *g, ses_prompt_state *p, int64_t at, const ses_real *logits,
                               ses_err *e);

/* stopping.c: *stops if the text of n tokens ends with its last token, and why. */
bool ses_generate_check_stop(const ses_prompt_state *p, const int32_t *id, int64_t n, ses_finish_reason *why,
                             bool *stops, ses_err *e);

#endif
