/* Log-probabilities of texts under a language model, token by token.
 *
 * A causal model reads the text in overlapping windows; each token is scored once, given the tokens
 * before it in its window. A masked model predicts each token with a mask in its position, given the
 * tokens on both sides (pseudo-log-likelihood, Salazar et al. 2020). The first piece of a long word is easily
 * guessed from its other pieces; mask_word_rest masks these, too (PLL-word-l2r, Kauf and Ivanova 2023).
 *
 * Ownership: the caller frees a scorer. Scores are borrowed from it until the next call. Threads: a
 * scorer is used by one thread at a time; several scorers may share a model and a tokenizer. Errors: a
 * function that fails returns false or NULL and fills e, which may be NULL. */
#ifndef SESAME_SCORER_H
#define SESAME_SCORER_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"

SES_BEGIN_DECLS

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
