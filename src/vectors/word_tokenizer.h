/* The tokenizer of a file of word vectors: its words are the vocabulary. Threads: as sesame/vectors.h. */
#ifndef SES_VECTORS_WORD_TOKENIZER_H
#define SES_VECTORS_WORD_TOKENIZER_H

#include "sesame/vectors.h"

/* Writes tokenizer.json: [PAD], [UNK] and [SEP], then the words of v that were read and are UTF-8. Texts are
 * split at blanks and punctuation marks, and lower-cased unless a word has a capital letter. [SEP] ends each
 * text. *skipped: words that are not UTF-8. */
bool ses_word_tokenizer_write(const ses_vectors *v, const char *path, bool overwrite, int64_t *skipped,
                              ses_err *e);

#endif
