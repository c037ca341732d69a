/* A model whose hidden states are the vectors of a tagger's words; it is not trained. For the kinds of
 * embeddings that read a model (word_stack.h).
 *
 * Ownership: close frees everything. Threads: one at a time uses a model. */
#ifndef SES_TASK_FROZEN_MODEL_H
#define SES_TASK_FROZEN_MODEL_H

#include "nn/config.h"
#include "run/pass.h"
#include "sesame/tokenizer.h"
#include "word_stack.h"

typedef struct ses_frozen_model {
    ses_model *model;
    ses_tokenizer *tokenizer;
    ses_encode_ctx *tokens;
    ses_pass pass;
    int64_t hidden; /* columns of the hidden states */
    int64_t width;  /* columns of the vectors: hidden, or the columns of several layers side by side */
    bool segments;  /* the model reads the segments of the encoding */
    char *dir;
    ses_layer_choice choice; /* layers of the vectors; n 0: the last one */
    char *layers;            /* the same as text; NULL: not chosen */
} ses_frozen_model;

/* The folder of a model by path or name; NULL and an error: none, or an adapter. Free with ses_free. */
char *ses_frozen_folder(const char *path, ses_err *e);
/* Copies the files of a model's folder to a new folder, without reports, hidden files and folders. */
bool ses_frozen_copy(const char *dir, const char *to, ses_err *e);

/* Opens a folder with a tokenizer. */
ses_frozen_model *ses_frozen_open(const char *path, ses_device *dev, ses_err *e);
/* The same; the path may end with layers: layer_suffix.h. */
ses_frozen_model *ses_frozen_open_layers(const char *path, ses_device *dev, ses_err *e);
/* Functions of a ses_word_embedder_kind. */
const char *ses_frozen_layers(const void *self);
int64_t ses_frozen_mixed(const void *self);
void ses_frozen_close(void *self);
bool ses_frozen_save(const void *self, const char *path, ses_err *e);

/* Texts as tokens, and the vectors to be read from them: word[i] of all sentences is the state of token
 * row[i]. */
typedef struct ses_frozen_texts {
    int32_t *id, *segment, *cu; /* cu [n + 1]: the first token of each text */
    size_t tokens, n, tokens_cap, n_cap;
    int64_t *row; /* in the order of tokens */
    size_t *word;
    size_t rows, rows_cap;
} ses_frozen_texts;

/* Adds tokens to the current text; segment may be NULL. */
bool ses_frozen_texts_add(ses_frozen_texts *t, const int32_t *id, const uint8_t *segment, size_t n,
                          ses_err *e);
/* The vector of a word is the state of token `row` of all tokens. Calls must have rising rows. */
bool ses_frozen_texts_read(ses_frozen_texts *t, size_t word, size_t row, ses_err *e);

/* Adds words [first, end) as a text. */
typedef bool ses_frozen_add_text(ses_frozen_model *x, ses_frozen_texts *t, const ses_string *word,
                                 size_t first, size_t end, ses_err *e);
/* Writes the chosen hidden states of the words of all sentences, many at a time: ses_word_embedder_kind. */
bool ses_frozen_embed(ses_frozen_model *x, const ses_sentences *s, ses_frozen_add_text *add, float *out,
                      int64_t stride, ses_err *e);

#endif
