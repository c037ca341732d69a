/* LAMA: how well a language model completes facts with one token. A masked model predicts the mask from both
 * sides, a causal one the next token after the text before the mask, an encoder-decoder (BART) the masked
 * position of its output.
 *
 * Only facts whose answer is one token in the middle of a text count; their rank is that among the
 * candidates.
 * Ownership: the caller frees what it opens. One thread at a time. */
#ifndef SES_TUNE_EVAL_LAMA_H
#define SES_TUNE_EVAL_LAMA_H

#include "data/lama_facts.h"
#include "sesame/base.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

typedef struct ses_lama_scores {
    int64_t facts, at_1, at_10; /* facts ranked; answers of rank 1, of rank at most 10 */
    double reciprocal;          /* sum of 1 / rank */
} ses_lama_scores;

/* Why facts were left out. */
typedef enum {
    SES_LAMA_MASKS,      /* not exactly one mask, or nothing before it (causal models) */
    SES_LAMA_TOKENS,     /* the answer is not one token */
    SES_LAMA_CANDIDATES, /* the answer is not among the candidates */
    SES_LAMA_LONG,       /* longer than the model accepts */
    SES_LAMA_REASONS
} ses_lama_reason;
extern const char *const ses_lama_reason_name[SES_LAMA_REASONS]; /* JSON keys */

typedef struct ses_lama_relation {
    char *name;
    ses_lama_scores scores;
    int64_t left_out[SES_LAMA_REASONS];
} ses_lama_relation;

typedef struct ses_lama ses_lama;

/* Fails if the model of folder dir does not predict tokens. The model and the tokenizer must outlive the
 * result. */
ses_lama *ses_lama_new(const ses_model *m, const ses_tokenizer *t, const char *dir, ses_err *e);
void ses_lama_free(ses_lama *l); /* l may be NULL */

/* Limits the candidates to the words of a file, one per line; words of several tokens are skipped. */
bool ses_lama_set_candidates(ses_lama *l, const char *path, ses_err *e);
int64_t ses_lama_candidate_count(const ses_lama *l);

/* Adds a fact; ranks facts in batches. */
bool ses_lama_feed(ses_lama *l, const ses_lama_fact *f, ses_err *e);
bool ses_lama_flush(ses_lama *l, ses_err *e);

/* Relations in the order of their first fact, borrowed. */
const ses_lama_relation *ses_lama_relations(const ses_lama *l, size_t *n);

#endif
