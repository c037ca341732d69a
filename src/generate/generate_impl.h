/* Generation inside: prompts at work, each with its lanes, and the ways to choose the next token. */
#ifndef SES_TASK_GENERATE_H
#define SES_TASK_GENERATE_H

#include "base/arena.h"
#include "logits_processor.h"
#include "sesame/cache.h"

/* A text being written: a sequence of its own, or a beam. */
typedef struct ses_hypothesis {
    int32_t slot;
    int32_t *id;    /* [max_length] */
    float *logprob; /* [max_length - given] */
    int64_t n;
    float score; /* of a beam: the sum of what its tokens scored */
    bool done;
    ses_finish_reason finish;
} ses_hypothesis;

/* A prompt being answered. */
typedef struct ses_prompt_state {
    ses_arena mem;
    int64_t index;
    ses_ids source; /* what the encoder reads; of a lone decoder the prompt */
    int64_t given;  /* tokens its lanes begin with */
    int64_t max_length, min_length;
    ses_hypothesis *lane; /* [lanes] */
    int64_t lanes;
    uint32_t mark; /* of the prompt: its draws are its own */
    void *state;   /* the search's */
    bool done;
} ses_prompt_state;

typedef struct ses_decoding ses_decoding;
typedef struct ses_mems ses_mems;

typedef struct ses_generate_ctx { /* a call of ses_generate */
    const ses_model *model;
    ses_generate_options o;
    const ses_prompt *prompt;
    int64_t n_prompts;
    bool pair;          /* an encoder reads the prompt */
    const char *output; /* the scores' name */
    const ses_decoding *search;
    int64_t vocab;
    ses_cache *cache; /* one of the two: what the model keeps of the texts it has read */
    ses_mems *memory;
    ses_tape *tape;
    ses_tokens *tokens;      /* for stop strings */
    ses_prompt_state **work; /* [places] those at work; NULL: free */
    int64_t places, next;
    int32_t *to, *from; /* slots to be taken */
    int64_t n_take;
    ses_real *raw; /* [rows][vocab]: what the model said last */
    float *score;  /* [vocab]: one row, at work */
    ses_ranked_token *rank;
    int64_t row_room;
    ses_generated *out;
} ses_generate_ctx;

struct ses_decoding {
    int64_t (*lanes)(const ses_generate_options *o);
    bool (*begin)(ses_generate_ctx *w, ses_prompt_state *k, ses_err *e);
    /* Row i of raw belongs to lane i, those that are done apart; at the beginning the first is every
     * lane's. */
    bool (*step)(ses_generate_ctx *w, ses_prompt_state *k, const ses_real *const *raw, ses_err *e);
    bool (*finish)(ses_generate_ctx *w, ses_prompt_state *k, ses_generated_sequence *out, ses_err *e);
};
extern const ses_decoding ses_decoding_sample, ses_decoding_beam;

/* The scores of a lane's next token, processed: in w->score. logs: their logarithmic softmax instead.
 * Returns the logarithm of the sum of exponentials before. */
double ses_generate_next_scores(ses_generate_ctx *w, const ses_prompt_state *k, const ses_hypothesis *l,
                                const ses_real *raw, bool logs);
void ses_generate_reorder_cache(ses_generate_ctx *w, int32_t to,
                                int32_t from); /* slots, before the next pass */

/* mems.c: of models that remember what their layers saw. A pass reads the batch that ses_mems_begin_pass
 * makes of the new tokens (NULL: no memory), wants mems, and ends with ses_mems_end_pass. */
ses_mems *ses_mems_new(const ses_model *m, int64_t slots, ses_err *e);
void ses_mems_free(ses_mems *k);
const ses_batch *ses_mems_begin_pass(ses_mems *k, const ses_batch *b, ses_err *e);
bool ses_mems_end_pass(ses_mems *k, ses_tape *tape, const ses_outputs *out, ses_err *e);
bool ses_mems_reorder(ses_mems *k, int64_t n, const int32_t *to, const int32_t *from, ses_err *e);
void ses_mems_clear_slot(ses_mems *k, int64_t slot);

/* stopping.c: does a text end with this token, and why? */
bool ses_generate_check_stop(ses_generate_ctx *w, const ses_prompt_state *k, const int32_t *id, int64_t n,
                             ses_finish_reason *why, bool *ends, ses_err *e);

/* A copy of a lane's text as a result. */
bool ses_generated_sequence_copy(ses_generated_sequence *out, const ses_prompt_state *k, const int32_t *id,
                                 int64_t n, const float *logprob, ses_err *e);

#endif
