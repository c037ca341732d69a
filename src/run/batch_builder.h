/* Builds a ses_batch from sequences: lays their arrays end to end and decides what a decoder reads. A zeroed
 * builder is empty. Arrays that stay empty are absent from the batch. One thread. */
#ifndef SES_RUN_BATCH_BUILDER_H
#define SES_RUN_BATCH_BUILDER_H

#include "data/ints.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

/* Growing array of another type. */
typedef struct ses_growing {
    void *p;
    size_t n, cap;
} ses_growing;

/* Names as in ses_batch. */
typedef struct ses_batch_builder {
    ses_ints ids, segments, positions, cu_seqlens, prefix_len;
    ses_ints labels, pair_labels, starts, ends;
    ses_ints choice_positions, answer_mask;
    ses_ints modal_rows, word_chars, word_char_cu;
    ses_ints target_ids, target_positions, target_cu_seqlens, predict_positions;
    ses_ints slots;
    ses_ints rows; /* tokens whose logits are needed: rows of the ses_output_request */
    ses_growing perm_mask, targets, modal_vectors, extra_word_chars;
    int64_t choices, n_modal, n_extra_words;
} ses_batch_builder;

void ses_batch_builder_clear(ses_batch_builder *b); /* keeps the memory */
void ses_batch_builder_free(ses_batch_builder *b);
/* The batch; it borrows the arrays until a sequence is added. */
ses_batch ses_batch_builder_batch(const ses_batch_builder *b);

/* ---- sequences ---- */

/* Adds a sequence of n tokens. segments NULL: the model reads none. */
bool ses_batch_builder_add(ses_batch_builder *b, const int32_t *ids, const int32_t *segments, int64_t n,
                           ses_err *e);
/* The same from the tokenizer. */
bool ses_batch_builder_add_encoding(ses_batch_builder *b, const ses_encoding *k, bool segments, ses_err *e);
/* Ends a sequence whose tokens were appended to `ids`. */
bool ses_batch_builder_end_sequence(ses_batch_builder *b, ses_err *e);
/* n elements of the sequence's mask, zeroed. NULL: no memory. */
uint8_t *ses_batch_builder_add_perm(ses_batch_builder *b, int64_t n, ses_err *e);
/* Numbers to predict. */
bool ses_batch_builder_add_values(ses_batch_builder *b, const ses_real *x, int64_t n, ses_err *e);
/* Vectors beside the n tokens of the last sequence: rows [n] counts from 0 in it (-1: none; NULL: each token
 * has its own), x [n_modal, width]. */
bool ses_batch_builder_add_vectors(ses_batch_builder *b, const int32_t *rows, int64_t n, const float *x,
                                   int64_t n_modal, int64_t width, ses_err *e);
/* Characters of n more words outside the vocabulary. */
bool ses_batch_builder_add_words(ses_batch_builder *b, const int16_t *chars, int64_t n, int64_t per_word,
                                 ses_err *e);
/* Bytes of the words of the last sequence: cu [n + 1] counts them, from any number on, which is chars[0]. */
bool ses_batch_builder_add_chars(ses_batch_builder *b, const int32_t *chars, const int32_t *cu, int64_t n,
                                 ses_err *e);

/* ---- what the decoder reads: one of these for each sequence ---- */

/* The labels shifted right: the first token, then n - 1 labels. */
bool ses_batch_builder_shift(ses_batch_builder *b, const ses_model *m, const int32_t *label, int64_t n,
                             ses_err *e);
/* The first token, then all n labels. */
bool ses_batch_builder_start(ses_batch_builder *b, const ses_model *m, const int32_t *label, int64_t n,
                             ses_err *e);
/* One token: the decoder runs, but nothing of it is read. */
bool ses_batch_builder_idle(ses_batch_builder *b, const ses_model *m, ses_err *e);
/* Ends a target whose tokens were appended to target_ids, labels or predict_positions. */
bool ses_batch_builder_end_target(ses_batch_builder *b, ses_err *e);

#endif
