/* Generation: texts continued by a decoder, or written by an encoder-decoder, token by token.
 *
 *     ses_generation_config *g = ses_generation_config_open(model, &e);            what the folder says
 *     ses_generate_options o = *ses_generation_config_options(g);           and what you say
 *     o.max_new_tokens = 40, o.num_beams = 4;
 *     ses_generated *r = ses_generate(model, &prompt, 1, &o, &e);
 *
 * Options have the names and the meaning of the reference library's generate(). Many prompts run at once
 * without padding; what is written for a prompt depends on the prompt and the options alone, sampling
 * included. Several threads may generate with one model at once. A ses_generated owns all it points to. */
#ifndef SESAME_GENERATE_H
#define SESAME_GENERATE_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"

SES_BEGIN_DECLS

typedef struct ses_ids {
    const int32_t *id;
    int64_t n;
} ses_ids;

/* When beam search ends: when nothing better is likely (by the length so far), as soon as there are as many
 * texts as beams, or when nothing better is possible. */
typedef enum { SES_EARLY_FALSE, SES_EARLY_TRUE, SES_EARLY_NEVER } ses_early_stopping;

typedef struct ses_id_bias {
    ses_ids ids; /* added to the score of the last where the ones before it have just been written */
    double bias;
} ses_id_bias;

/* A token was written. sequence: which of num_return_sequences. */
typedef struct ses_token_event {
    int64_t prompt, sequence;
    const int32_t *id;     /* [n]: all tokens so far, the new one last */
    int64_t n, prompt_len; /* the first `given` of them were not written but given */
    float logprob;         /* of the new one, by the model alone */
} ses_token_event;

typedef struct ses_generate_options {
    /* Lengths in tokens; 0: not said. max_new_tokens wins over max_length, which counts the prompt too.
     * Neither: 20 new ones. */
    int64_t max_new_tokens, max_length, min_new_tokens, min_length;

    bool do_sample;
    uint64_t seed; /* of sampling: the same seed, prompt and options give the same text */
    double temperature;
    int64_t top_k;                                            /* 0: all */
    double top_p, typical_p;                                  /* 1: all */
    double min_p, top_h, epsilon_cutoff, eta_cutoff;          /* 0: all */
    int64_t num_beams, num_beam_groups, num_return_sequences; /* at least 1 */
    double length_penalty, diversity_penalty;
    ses_early_stopping early_stopping;

    double repetition_penalty, encoder_repetition_penalty; /* 1: none */
    int64_t no_repeat_ngram_size, encoder_no_repeat_ngram_size;
    int64_t decay_start; /* exponential_decay_length_penalty: from so many new tokens on, */
    double decay_factor; /* the score of the end grows by this factor a token; 0: not */
    bool remove_invalid_values, renormalize_logits;

    int32_t pad, bos, decoder_start, forced_bos; /* -1: none */
    ses_ids eos, forced_eos, suppress, begin_suppress;
    const ses_ids *bad_words;
    int64_t n_bad_words;
    const ses_id_bias *sequence_bias;
    int64_t n_sequence_bias;

    const char *const *stop_strings; /* a text ends with the token that completes one; needs the tokenizer */
    int64_t n_stop_strings;
    const ses_tokenizer *tokenizer;

    /* Told every token as it is written (not with beams); false ends everything, and what there is is the
     * result. */
    bool (*on_token)(void *ctx, const ses_token_event *t);
    void *ctx;
    int64_t cache_tokens; /* most tokens kept at a time, which bounds memory; 0: 16384 */
} ses_generate_options;

/* What a model's folder says: generation_config.json, or the keys of old in config.json. Lists of the
 * options are borrowed from it. */
typedef struct ses_generation_config ses_generation_config;
ses_generation_config *ses_generation_config_open(const ses_model *m, ses_err *e);
void ses_generation_config_free(ses_generation_config *g);
const ses_generate_options *ses_generation_config_options(const ses_generation_config *g);
/* Keys of an object ("task_specific_params", say) over what is there. */
bool ses_generation_config_read(ses_generation_config *g, const ses_json *keys, ses_generate_options *o,
                                ses_err *e);

typedef struct ses_prompt {
    ses_ids ids;         /* what a decoder continues, or an encoder reads */
    ses_ids decoder_ids; /* what the decoder of a pair begins with, after its start token; n 0: nothing */
} ses_prompt;

typedef enum { SES_FINISH_EOS, SES_FINISH_LENGTH, SES_FINISH_STOP, SES_FINISH_CANCELLED } ses_finish_reason;

typedef struct ses_generated_sequence {
    int64_t prompt;
    ses_ids ids; /* all of it: `given` tokens, then the written ones */
    int64_t prompt_len;
    const float *logprob; /* [ids.n - given]: of each written token by the model alone */
    double score;         /* with beams: what they were ranked by; else the sum of logprob */
    ses_finish_reason finish;
} ses_generated_sequence;

typedef struct ses_generated {
    ses_generated_sequence *sequence; /* num_return_sequences of each prompt, the best first */
    int64_t n;
    int64_t tokens_read, tokens_generated; /* tokens in all */
    bool cancelled;                        /* on_token said so */
} ses_generated;

ses_generated *ses_generate(const ses_model *m, const ses_prompt *prompt, int64_t n,
                            const ses_generate_options *o, ses_err *e);
void ses_generated_free(ses_generated *r);

SES_END_DECLS

#endif
