/* A batch: sequences laid end to end, no padding. Sequence s is tokens cu[s] .. cu[s+1] - 1.
 * All arrays are the caller's, on the host; NULL where a thing is absent. */
#ifndef SESAME_BATCH_H
#define SESAME_BATCH_H

#include "sesame/types.h"

SES_BEGIN_DECLS

struct ses_cache;

typedef struct ses_batch {
    int64_t seqs, tokens;
    const int32_t *cu_seqlens; /* [seqs + 1], from 0 to tokens */
    const int32_t *ids;        /* [tokens] */
    const int32_t *segments;   /* [tokens]; NULL: all 0 */
    const int32_t *positions;  /* [tokens]; NULL: counted in each sequence from 0 */
    int64_t choices;           /* multiple choice: so many neighboring sequences are one question; 0: none */
    const int32_t
        *prefix_len; /* [seqs]: so many first tokens are seen by all of their sequence, each other one
                                 by itself and those after it; NULL: as the model reads */
    /* [seqs]: the token of each that a choice is read off (GPT-2); NULL: the last. */
    const int32_t *choice_positions;

    /* What the decoder of an encoder-decoder reads; target_ids NULL: the labels, shifted right. */
    const int32_t *target_cu_seqlens; /* [seqs + 1] */
    const int32_t *target_ids;
    const int32_t *target_positions; /* of target_ids; NULL: counted from 0 */

    /* Of models that read in any order (XLNet). */
    const uint8_t *perm_mask; /* sequence after sequence [len, len]: 1 where a token does not see another */
    /* Of target_cu: the places in its sequence a model is asked about, not seeing what stands there;
     * target_ids is NULL and labels are [targets]. */
    const int32_t *predict_positions;
    const int32_t *mem_cu_seqlens; /* [seqs + 1]: tokens before each sequence, */
    const ses_real *mems;          /* [layers, tokens before, hidden]: as each layer saw them */

    /* Sequences that go on where they stopped: see sesame/cache.h. */
    struct ses_cache *cache;
    const int32_t *slots; /* [seqs], all different */

    /* What the heads learn from; SES_IGNORE_INDEX counts for nothing. */
    const int32_t *labels; /* [tokens], [seqs], [questions] or [target tokens], as the head says */
    /* [seqs]: next sentence, sentence order; [questions]: the choice, beside a text. */
    const int32_t *pair_labels;
    const int32_t *starts, *ends; /* [seqs]: an answer's first and last token, counted in its sequence */
    const ses_real *targets;      /* [seqs, labels]: regression, several labels at once */
} ses_batch;

SES_END_DECLS

#endif
