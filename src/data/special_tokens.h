/* What objectives must know about a vocabulary: which ids are special, what stands around a text. */
#ifndef SES_DATA_LEXICON_H
#define SES_DATA_LEXICON_H

#include "sesame/tokenizer.h"

enum { SES_FRAME_MOST = 8 };

/* Special tokens at one place of a sequence, and the segment of each. */
typedef struct ses_frame_part {
    int32_t id[SES_FRAME_MOST], segment[SES_FRAME_MOST];
    int64_t n;
} ses_frame_part;

typedef struct ses_lexicon {
    int64_t size;     /* ids of the tokenizer are below it */
    uint8_t *special; /* [size] 1: never masked, never drawn at random */
    int32_t *plain;   /* [n_plain] the others */
    int64_t n_plain;
    int32_t mask, cls, sep, bos, eos, pad; /* -1: there is none */
    int32_t *sentinel;                     /* [sentinels] T5's <extra_id_0>, <extra_id_1>, ... */
    int64_t sentinels;
    /* first A last, or first A between B last */
    ses_frame_part first, between, last;
    int32_t second; /* the segment of B */
} ses_lexicon;

/* vocab: the model's. Ids it has beyond the tokenizer's serve as sentinels where the tokenizer has none, the
 * last first, as in T5. */
ses_lexicon *ses_lexicon_new(const ses_tokenizer *t, int64_t vocab, ses_err *e);
void ses_lexicon_free(ses_lexicon *x);

#endif
