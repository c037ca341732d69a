/* What objectives must know about a vocabulary: which ids are special, what stands around a text. */
#ifndef SES_DATA_LEXICON_H
#define SES_DATA_LEXICON_H

#include "sesame/tokenizer.h"

enum { SES_MAX_TEMPLATE_PART = 8 };

/* Special tokens at one place of a sequence, and the segment of each. */
typedef struct ses_template_part {
    int32_t id[SES_MAX_TEMPLATE_PART], segment[SES_MAX_TEMPLATE_PART];
    int64_t n;
} ses_template_part;

typedef struct ses_special_tokens {
    int64_t size;      /* ids of the tokenizer are below it */
    uint8_t *special;  /* [size] 1: never masked, never drawn at random */
    int32_t *ordinary; /* [n_plain] the others */
    int64_t n_ordinary;
    int32_t mask, cls, sep, bos, eos, pad; /* -1: there is none */
    int32_t *sentinel;                     /* [sentinels] T5's <extra_id_0>, <extra_id_1>, ... */
    int64_t n_sentinels;
    /* first A last, or first A between B last */
    ses_template_part before, between, after;
    int32_t segment_b; /* the segment of B */
} ses_special_tokens;

/* vocab: the model's. Ids it has beyond the tokenizer's serve as sentinels where the tokenizer has none, the
 * last first, as in T5. */
ses_special_tokens *ses_special_tokens_new(const ses_tokenizer *t, int64_t vocab, ses_err *e);
void ses_special_tokens_free(ses_special_tokens *x);

#endif
