/* Text generation: a decoder continues prompts, or an encoder-decoder writes texts, token by token.
 *
 *     ses_generation_config *c = ses_generation_config_open(model, &e);     the folder's settings
 *     ses_generate_options o = *ses_generation_config_options(c);           and yours
 *     o.max_new_tokens = 40, o.num_beams = 4;
 *     ses_generated *r = ses_generate(model, &prompt, 1, &o, &e);
 *
 * Options have the names and meanings of generate() in transformers. Many prompts run at once without
 * padding; the text for a prompt depends on the prompt and the options only, sampling included.
 *
 * Ownership: the caller frees a ses_generation_config and a ses_generated, which own all they point to.
 * Options borrow their lists. Threads: several threads may generate with one model at once. Errors: a
 * function that fails returns false or NULL and fills e, which may be NULL. */
#ifndef SESAME_GENERATE_H
#define SESAME_GENERATE_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"

SES_BEGIN_DECLS

/* ---- Generation ---- */

/* Token ids, borrowed. */
typedef struct ses_ids {
    const int32_t *id;
    int64_t n;
} ses_ids;

/* When beam search stops: if improvement is unlikely (at the current length), as soon as there are
 * num_beams finished texts, or if improvement is impossible. */
typedef enum { SES_EARLY_FALSE, SES_EARLY_TRUE, SES_EARLY_NEVER } ses_early_stopping;

/* Added to the score of the last id after a text that ends with the others. */
typedef struct ses_id_bias {
    ses_ids ids;
    double bias;
} ses_id_bias;

typedef enum { SES_FINISH_EOS, SES_FINISH_LENGTH, SES_FINISH_STOP, SES_FINISH_CANCELLED } ses_finish_reason;

/* A token that the model could have generated, with its log-probability before logits processors. */
typedef struct ses_top_token {
    int32_t id;
    float logprob;
} ses_top_token;

/* A token has been generated. */
typedef struct ses_token_event {
    int64_t prompt, sequence; /* number of the prompt, of its num_return_sequences */
    const int32_t *id;        /* [n]: all tokens so far, the new one last */
    int64_t n, prompt_len;    /* the first prompt_len were not generated */
    float logprob;            /* log-probability of the new token, before logits processors */
    bool last;                /* it ends the sequence, for the reason `finish` */
    ses_finish_reason finish;
    const ses_top_token *top; /* [n_top]: the most likely tokens, best first; NULL: not requested */
    int64_t n_top;
    /* [prompt_len], [prompt_len, n_top]: as in ses_generated_sequence; NULL: not requested */
    const float *prompt_logprob;
    const ses_top_token *prompt_top;
} ses_token_event;

typedef struct ses_generate_options {
    /* Lengths in tokens; 0: not set. max_length and min_length include the prompt; max_new_tokens and
     * min_new_tokens override them. Neither maximum set: 20 new tokens. */
    int64_t max_new_tokens, max_length, min_new_tokens, min_length;

    bool do_sample; /* else greedy decoding or beam search */
    uint64_t seed;  /* the same seed, prompt and options give the same text */
    double temperature;
    int64_t top_k;                                            /* 0: off */
    double top_p, typical_p;                                  /* 1: off */
    double min_p, top_h, epsilon_cutoff, eta_cutoff;          /* 0: off */
    int64_t num_beams, num_beam_groups, num_return_sequences; /* at least 1 */
    double length_penalty, diversity_penalty;
    ses_early_stopping early_stopping;

    double repetition_penalty, encoder_repetition_penalty; /* 1: off */
    /* OpenAI's: the logit of a token that was generated n > 0 times, not counting the prompt, is lowered by
     * presence_penalty + n * frequency_penalty; -2 to 2, 0: off. */
    double presence_penalty, frequency_penalty;
    int64_t no_repeat_ngram_size, encoder_no_repeat_ngram_size; /* 0: off */
    /* exponential_decay_length_penalty: after decay_start new tokens, the score of EOS grows by
     * decay_factor with each token; decay_factor 0: off. */
    int64_t decay_start;
    double decay_factor;
    bool remove_invalid_values, renormalize_logits;

    int32_t pad, bos, decoder_start, forced_bos; /* token ids; -1: none */
    ses_ids eos, forced_eos, suppress, begin_suppress;
    const ses_ids *bad_words; /* [n_bad_words] */
    int64_t n_bad_words;
    const ses_id_bias *sequence_bias; /* [n_sequence_bias] */
    int64_t n_sequence_bias;

    const char *const *stop_strings; /* a text stops with the token that completes one; needs the tokenizer */
    int64_t n_stop_strings;
    const ses_tokenizer *tokenizer;

    /* Log-probabilities, before logits processors. */
    int64_t top_logprobs; /* most likely tokens at each position, at most 1000; 0: off */
    bool prompt_logprobs; /* score the tokens of the prompt; models without encoder and mems */

    /* Called after each token, in the thread of ses_generate; not with beams. Returns false to stop
     * everything: the result has the tokens so far. NULL: no callback. */
    bool (*on_token)(void *ctx, const ses_token_event *t);
    void *ctx;
    int64_t cache_tokens; /* maximum tokens in the KV cache, which bounds memory; 0: 16384 */
} ses_generate_options;

/* ---- the folder's settings ---- */

/* generation_config.json, or the generation keys of config.json in older folders. */
typedef struct ses_generation_config ses_generation_config;

/* Reads the settings of the model's folder, or defaults if it has none. Fails if a value has the wrong
 * type. */
ses_generation_config *ses_generation_config_open(const ses_model *m, ses_err *e);
void ses_generation_config_free(ses_generation_config *c); /* c may be NULL */
/* Borrowed from c, lists included. */
const ses_generate_options *ses_generation_config_options(const ses_generation_config *c);
/* Applies the keys of a JSON object (for example one of "task_specific_params") on top of *o; lists live
 * in c. keys may be NULL. */
bool ses_generation_config_read(ses_generation_config *c, const ses_json *keys, ses_generate_options *o,
                                ses_err *e);

/* ---- generation ---- */

typedef struct ses_prompt {
    ses_ids ids;         /* the text a decoder continues, or an encoder reads */
    ses_ids decoder_ids; /* encoder-decoder: first tokens of the decoder, after its start token; n 0: none */
} ses_prompt;

typedef struct ses_generated_sequence {
    int64_t prompt;
    /* prompt_len tokens of the prompt, then the generated ones; n 0: cancelled before it started */
    ses_ids ids;
    int64_t prompt_len;
    const float *logprob; /* [ids.n - prompt_len]: each generated token, before logits processors */
    double score;         /* beams: their score; else the sum of logprob */
    ses_finish_reason finish;
    /* [ids.n - prompt_len, n_top]: most likely tokens, best first; NULL: not requested */
    const ses_top_token *top;
    int64_t n_top;
    /* [prompt_len] and [prompt_len, n_top]: the same for the tokens of the prompt, in the first sequence of
     * each prompt; the first token has no log-probability (NAN) and no top tokens (id -1). NULL: not
     * requested */
    const float *prompt_logprob;
    const ses_top_token *prompt_top;
} ses_generated_sequence;

typedef struct ses_generated {
    ses_generated_sequence *sequence; /* [n]: num_return_sequences for each prompt, best first */
    int64_t n;
    int64_t tokens_read, tokens_generated; /* in total */
    bool cancelled;                        /* on_token has returned false */
} ses_generated;

/* Generates texts for n prompts. n may be 0: only the options are checked. Fails if an option is out of
 * range or contradicts another, a prompt is empty or longer than the model accepts, or the model does not
 * generate text (SES_EUNSUPPORTED). */
ses_generated *ses_generate(const ses_model *m, const ses_prompt *prompt, int64_t n,
                            const ses_generate_options *o, ses_err *e);
void ses_generated_free(ses_generated *r); /* r may be NULL */

/* ---- Continuous batching ----
 *
 * Generation with continuous batching: prompts are added at any time, with options of their own, and each
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

/* ---- Scores of texts ----
 *
 * Log-probabilities of texts under a language model, token by token.
 *
 * A causal model reads the text in overlapping windows; each token is scored once, given the tokens
 * before it in its window. A masked model predicts each token with a mask in its position, given the
 * tokens on both sides (pseudo-log-likelihood, Salazar et al. 2020). The first piece of a long word is easily
 * guessed from its other pieces; mask_word_rest masks these, too (PLL-word-l2r, Kauf and Ivanova 2023).
 *
 * Ownership: the caller frees a scorer. Scores are borrowed from it until the next call. Threads: a
 * scorer is used by one thread at a time; several scorers may share a model and a tokenizer. Errors: a
 * function that fails returns false or NULL and fills e, which may be NULL. */

typedef struct ses_scorer_options {
    int64_t window; /* tokens of a window; 0: as many as the model accepts */
    int64_t stride; /* causal models: distance between windows in tokens; 0: half a window */
    /* Causal models: put the BOS token before each text, so that its first token is scored, too. */
    bool prepend_bos;
    /* Masked models: with a token, mask the tokens of the same word to the right of it. Causal models refuse
     * it. */
    bool mask_word_rest;
    double temperature; /* logits are divided by it before the softmax; 0: 1 */
} ses_scorer_options;

typedef struct ses_text_score {
    double logprob;             /* sum over the scored tokens */
    int64_t n_scored;           /* scored tokens */
    const int32_t *id;          /* [n] */
    const float *token_logprob; /* [n]; NAN: not scored (special tokens, the first token) */
    int64_t n;
} ses_text_score;

typedef struct ses_scorer ses_scorer;

/* model, tokenizer and dir, the folder of both, must outlive the scorer. o may be NULL. Fails if the model is
 * neither a causal nor a masked language model, or the tokenizer has no mask token for the latter. */
ses_scorer *ses_scorer_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                           const ses_scorer_options *o, ses_err *e);
void ses_scorer_free(ses_scorer *s); /* s may be NULL */

/* Scores n texts, in forward passes of several texts; out: [n]. */
bool ses_scorer_score(ses_scorer *s, const ses_string *text, size_t n, ses_text_score *out, ses_err *e);
/* Scores one text of n bytes. */
bool ses_scorer_score_text(ses_scorer *s, const char *text, size_t n, ses_text_score *out, ses_err *e);

SES_END_DECLS

#endif
