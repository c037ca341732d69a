/* A cloze classifier: a pattern and verbalizers, resolved for a tokenizer and a list of labels. It encodes a
 * text as the pattern's question and turns the masked LM's scores at the mask into scores of labels.
 *
 * Ownership: a ses_cloze_prompt owns its arrays and borrows patterns, labels, tokenizer and workspace. One
 * thread. */
#ifndef SES_TASK_CLOZE_PROMPT_H
#define SES_TASK_CLOZE_PROMPT_H

#include "data/ints.h"
#include "pattern_file.h"
#include "sesame/base.h"
#include "text/tokenizer_config.h"

typedef struct ses_cloze_prompt_options {
    const ses_patterns *patterns;
    size_t pattern;           /* from 0 */
    const char *const *label; /* [n_labels]: each needs a verbalizer */
    size_t n_labels;
    const ses_tokenizer *tokenizer;
    ses_encode_ctx *tokens; /* its workspace */
    const ses_tokenizer_config *config;
} ses_cloze_prompt_options;

/* A text, or a demonstration: an answered example. */
typedef struct ses_cloze_item {
    ses_string text, pair;
    int32_t answer; /* label whose first word replaces the mask; -1: the mask */
} ses_cloze_item;

typedef struct ses_cloze_prompt {
    ses_cloze_prompt_options o;
    const ses_cloze_pattern *pattern;
    ses_string mask_text;
    int32_t mask;                      /* id of the mask token */
    const ses_verbalizer **verbalizer; /* [n_labels] */
    int32_t *token;                    /* tokens of the words of label i: cu[i] .. cu[i + 1] - 1 */
    size_t *cu;
    ses_arena mem;
    ses_cloze_item *item; /* [n_labels + 1]: a text and its demonstrations */
    /* the last encoded text */
    ses_ints ids, segments;
    ses_ints from_text; /* 1: a token of the text or pair, not of the pattern */
    int32_t mask_at;    /* position of the mask; -1: answered */
    int64_t n_removed;  /* tokens of the texts that were removed */
} ses_cloze_prompt;

/* NULL on failure: a label without verbalizer, a word of several tokens, two labels with the same token, a
 * tokenizer without mask token. */
ses_cloze_prompt *ses_cloze_prompt_new(const ses_cloze_prompt_options *o, ses_err *e);
void ses_cloze_prompt_free(ses_cloze_prompt *c); /* c may be NULL */

/* Encodes item[0] and, behind it, the demonstrations item[1] .. item[n - 1], which have answers: sets ids,
 * segments, from_text and mask_at. Of long texts the last tokens are removed, of the longest first; the
 * patterns stay whole. Fails if they alone have more than max_tokens tokens. */
bool ses_cloze_prompt_encode(ses_cloze_prompt *c, const ses_cloze_item *item, size_t n, int64_t max_tokens,
                             ses_err *e);

/* The same for a text and a demonstration of each label, if the patterns have some: drawn by the text and
 * `set`, from 0 to the number of sets - 1. */
bool ses_cloze_prompt_ask(ses_cloze_prompt *c, ses_string text, ses_string pair, int64_t set,
                          int64_t max_tokens, ses_err *e);
/* Sequences of a text, whose scores are averaged. */
int64_t ses_cloze_prompt_sets(const ses_cloze_prompt *c);

/* A blank is before the mask: byte-level tokenizers then have another token for a word. */
bool ses_cloze_prompt_follows_blank(const ses_cloze_prompt *c);

/* Scores of the labels [n_labels] from the logits of the vocabulary at the mask. */
void ses_cloze_prompt_scores(const ses_cloze_prompt *c, const float *logits, float *out);
/* The label whose first token this is; -1: none. */
int32_t ses_cloze_prompt_label_of(const ses_cloze_prompt *c, int32_t token);
/* The first token of a label. */
int32_t ses_cloze_prompt_token_of(const ses_cloze_prompt *c, int32_t label);

#endif
