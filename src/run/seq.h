/* A token sequence with what some models read beside its tokens. Arrays have n elements, as in ses_encoding;
 * NULL: none. In a batch all sequences have the same kinds of arrays. */
#ifndef SES_RUN_SEQ_H
#define SES_RUN_SEQ_H

#include "batch_builder.h"

typedef struct ses_seq {
    size_t n;
    int32_t *id;
    int32_t *type_id;
    ses_offset *char_offset, *byte_offset;
    int32_t *word_id;
    int8_t *sequence_id; /* 0: text, 1: pair, -1: special token */
    uint8_t *special_mask;
    int64_t tag; /* for the task: number of the label, choice or window */
    /* models that read characters: for each token its row among the words outside the vocabulary, or -1; and
     * their characters. NULL: all words are in the vocabulary. */
    const int32_t *extra_word;
    const int16_t *extra_word_chars;
    int64_t n_extra_words;
    /* [n_rows]: positions whose vocabulary logits are needed; NULL: the task needs none */
    const int32_t *rows;
    size_t n_rows;
    /* [n]: see ses_batch.answer_mask; NULL: none. cls: position of the CLS token, with answer_mask. */
    const int32_t *answer_mask;
    int32_t cls;
    /* vectors beside tokens: positions and modal_rows [n] (rows count from 0 in each sequence), modal_vectors
     * [n_modal, width]; NULL: none */
    const int32_t *positions, *modal_rows;
    const float *modal_vectors;
    int64_t n_modal;
    const int32_t *chars, *char_cu; /* bytes of words, with cumulative numbers [n + 1]; NULL: none */
} ses_seq;

/* Adds a sequence with its further inputs. segments: with token types. The decoder of an encoder-decoder gets
 * the same tokens. */
bool ses_batch_builder_add_seq(ses_batch_builder *b, const ses_model *m, const ses_seq *q, bool segments,
                               ses_err *e);

#endif
