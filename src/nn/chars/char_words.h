/* Token vectors of a batch of words, computed from the words' characters: once for each distinct word.
 * Ownership and threads: as nn.h; the batch's word cache belongs to one thread. */
#ifndef SES_NN_CHAR_WORDS_H
#define SES_NN_CHAR_WORDS_H

#include "char_cnn.h"

typedef struct ses_char_words {
    ses_char_cnn cnn;
    /* [vocab, chars.per_word], never trained: characters of the vocabulary's words, as ses_char_to_number */
    ses_tensor *table;
    int16_t *chars; /* the same on the host; -1: not set. See ses_char_words_load */
} ses_char_words;

/* Declares the layers; out: columns of the vectors. */
void ses_char_words_add(ses_char_words *k, ses_store *s, const ses_config *c, int64_t out);

/* Copies the table to k->chars, which has vocab * chars.per_word elements. Fails if a value is not
 * a character. */
bool ses_char_words_load(ses_char_words *k, ses_store *s, const ses_config *c, ses_err *e);

/* [T, out]. */
ses_tensor *ses_char_words_run(const ses_char_words *k, ses_forward_ctx *p, const ses_seqs *q);

#endif
