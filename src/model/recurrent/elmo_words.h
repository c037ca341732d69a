/* Vectors of the words of sentences by ELMo, for models that read them as features. Words are strings; no
 * tokenizer is needed.
 *
 * Ownership: ses_elmo_words_free frees everything. Threads: one at a time. */
#ifndef SES_MODEL_ELMO_WORDS_H
#define SES_MODEL_ELMO_WORDS_H

#include "sesame/model.h"

typedef struct ses_elmo_words ses_elmo_words;

/* Opens a folder with a model that reads characters: Sesame's, or options.json with HDF5 weights. */
ses_elmo_words *ses_elmo_words_open(const char *dir, ses_device *dev, ses_err *e);
void ses_elmo_words_free(ses_elmo_words *k);

/* Number of layers with the embeddings (3), and columns of each. */
int64_t ses_elmo_words_layers(const ses_elmo_words *k);
int64_t ses_elmo_words_width(const ses_elmo_words *k);
/* Bytes of a word that are read; the rest of longer words is left out. */
int64_t ses_elmo_words_max_bytes(const ses_elmo_words *k);

/* Computes n sentences; sentence s is words first[s] .. first[s + 1] - 1 and may be empty. out[l] gets the
 * vectors of layer l for all words, [first[n], width]; out[l] NULL: the layer is not needed. A word's vector
 * depends on its sentence only. */
bool ses_elmo_words_run(ses_elmo_words *k, const ses_string *words, const size_t *first, size_t n,
                        float *const *out, ses_err *e);

#endif
