/* Generation with continuous batching: prompts are added at any time, with options of their own, and each
 * step adds one token to every text in progress. ses_generate is a loop over such steps.
 *
 *     ses_generator *g = ses_generator_new(model, 16384, 64, &e);
 *     ses_generator_add(g, &prompt, &options, &callbacks, &e);     again, while others are in progress
 *     while (ses_generator_step(g)) continue;                      callbacks receive tokens and texts
 *
 * A prompt waits until enough sequences and KV cache tokens are free for its longest possible text; prompts
 * start in the order in which they were added. On a CPU the text of a prompt has the same bits alone and with
 * any others. If a prompt fails, the others continue.
 *
 * Ownership: the caller frees a generator, before its model. Token ids of prompts and the options are copied;
 * the lists and strings that options refer to, and their tokenizer, are borrowed until on_finish has been
 * called.
 *
 * Threads: a generator is used by one thread at a time; several generators may share a model. Callbacks are
 * called by ses_generator_step and ses_generator_free. They may add and cancel prompts, but not step or
 * free. */
#ifndef SESAME_GENERATOR_H
#define SESAME_GENERATOR_H

#include "sesame/generate.h"

SES_BEGIN_DECLS

typedef struct ses_generator ses_generator;

/* cache_tokens: tokens in the KV cache of all sequences together (0: 16384); max_sequences: texts in one
 * pass, each beam or sample is one (0: 64). The cache grows with its use. Fails if the model does not
 * generate text. */
ses_generator *ses_generator_new(const ses_model *m, int64_t cache_tokens, int64_t max_sequences, ses_err *e);
/* Prompts that have not finished are cancelled and receive on_finish. g may be NULL. */
void ses_generator_free(ses_generator *g);

/* Prompt tokens that one step reads, at most; default 256, on a GPU 4096. A longer prompt is read in several
 * steps, unless the model has an encoder or mems: then a step reads at least one whole prompt. Smaller values
 * shorten the longest step, for the texts in progress. */
void ses_generator_set_prefill_tokens(ses_generator *g, int64_t tokens);

/* A prompt that needs more than cache_tokens runs alone, with a larger cache; default: it is refused. */
void ses_generator_allow_large_prompts(ses_generator *g);

typedef struct ses_generator_callbacks {
    /* After each token, not with beams; false cancels this prompt. NULL: none. t->prompt is the number that
     * ses_generator_add has returned. */
    bool (*on_token)(void *ctx, const ses_token_event *t);
    /* Once for each prompt, after its last token. r: its num_return_sequences texts, which the callback frees
     * with ses_generated_free, or NULL if it failed, with the reason in *why. A cancelled prompt has the
     * tokens so far, and r->cancelled is true. */
    void (*on_finish)(void *ctx, int64_t prompt, ses_generated *r, const ses_err *why);
    void *ctx;
} ses_generator_callbacks;

/* Queues a prompt and returns its number, from 0 on. o->on_token, o->ctx and o->cache_tokens are ignored. -1
 * and an error: an option is out of range or contradicts another, the prompt is empty or longer than the
 * model accepts, or it needs more sequences or cache tokens than the generator has. on_finish is not called
 * then. */
int64_t ses_generator_add(ses_generator *g, const ses_prompt *prompt, const ses_generate_options *o,
                          const ses_generator_callbacks *callbacks, ses_err *e);

/* Stops a prompt; on_finish follows in the current or next step. Returns false if it has finished already. */
bool ses_generator_cancel(ses_generator *g, int64_t prompt);

/* Starts waiting prompts as sequences and cache permit, reads their tokens, adds one token to every text in
 * progress, and finishes the prompts that are done. Returns true if prompts are left. */
bool ses_generator_step(ses_generator *g);

int64_t ses_generator_active(const ses_generator *g);  /* prompts in progress */
int64_t ses_generator_waiting(const ses_generator *g); /* prompts that have not started */

typedef struct ses_generator_stats {
    /* since the generator was made */
    int64_t steps;
    int64_t sequences;        /* texts that got a token, summed over all steps */
    int64_t tokens_read;      /* by the model: prompts, sources, generated tokens */
    int64_t tokens_generated; /* in the texts of finished prompts */
    int64_t finished, cancelled, failed;
    /* now */
    int64_t active_sequences, max_sequences;
    int64_t cache_used, cache_tokens; /* tokens reserved for prompts in progress, their maximum */
    size_t cache_bytes;               /* memory of the KV cache */
} ses_generator_stats;
ses_generator_stats ses_generator_get_stats(const ses_generator *g);

SES_END_DECLS

#endif
