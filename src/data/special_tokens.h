/* Special tokens of a vocabulary: their ids, and the template that the tokenizer puts around texts.
 * Read-only once created. */
#ifndef SES_DATA_SPECIAL_TOKENS_H
#define SES_DATA_SPECIAL_TOKENS_H

#include "sesame/tokenizer.h"

enum { SES_MAX_TEMPLATE_PART = 8 };

/* Consecutive special tokens of the template, with their segments. */
typedef struct ses_template_part {
    int32_t id[SES_MAX_TEMPLATE_PART], segment[SES_MAX_TEMPLATE_PART];
    int64_t n;
} ses_template_part;

typedef struct ses_special_tokens {
    int64_t size;      /* vocabulary size of the tokenizer: its ids are below it */
    uint8_t *special;  /* [size] 1: never masked, never drawn at random */
    int32_t *ordinary; /* [n_ordinary] the other ids */
    int64_t n_ordinary;
    int32_t mask, cls, sep, bos, eos, pad; /* -1: none */
    int32_t *sentinel;                     /* [n_sentinels] T5's <extra_id_0>, <extra_id_1>, ... */
    int64_t n_sentinels;
    /* Template: before A after, or before A between B after. */
    ses_template_part before, between, after;
    int32_t segment_b; /* segment of B */
} ses_special_tokens;

/* vocab: vocabulary size of the model. If the tokenizer has no sentinels, the ids from the tokenizer's size
 * up to vocab are used, from the last one down, as in T5. */
ses_special_tokens *ses_special_tokens_new(const ses_tokenizer *t, int64_t vocab, ses_err *e);
void ses_special_tokens_free(ses_special_tokens *x);

#endif
