/* The stacked embeddings of a tagger's words: vectors that are computed before training and kept (static
 * vectors, states of language models), and kinds that the tagger trains itself (word, char). A kind is one
 * file word_embedder_NAME.c and one line in word_embedders.def.
 *
 * Ownership: the caller frees a stack; what ses_word_stack_embed makes belongs to the arena.
 * Threads: one at a time uses a stack. */
#ifndef SES_TASK_WORD_STACK_H
#define SES_TASK_WORD_STACK_H

#include "base/arena.h"
#include "sesame/json.h"
#include "sesame/model.h"

enum { SES_MAX_WORD_EMBEDDERS = 8, SES_MAX_WORD_BYTES = 50 /* bytes of a word that are read */ };

/* The words of n sentences, one sentence after another; sentence s has the words first[s] .. first[s + 1] -
 * 1, and first[0] is 0. */
typedef struct ses_sentences {
    const ses_string *word;
    const size_t *first; /* [n + 1] */
    size_t n;
} ses_sentences;

typedef struct ses_word_embedder_kind {
    const char *name, *value; /* value: what follows the name, "FILE"; NULL: nothing, the tagger trains it */
    bool context_free;        /* a word has the same vector in every sentence */
    bool reads_chars;         /* the tagger reads the bytes of words */
    /* Opens what a path names; *width: columns of its vectors. NULL on failure. */
    void *(*open)(const char *path, ses_device *dev, int64_t *width, ses_err *e);
    void (*close)(void *self);
    /* Writes the vectors of all words to out[i * stride]; out is zeroed. Vectors do not depend on the other
     * sentences. */
    bool (*embed)(void *self, const ses_sentences *s, float *out, int64_t stride, ses_err *e);
    /* Writes a file or folder that `open` reads. */
    bool (*save)(const void *self, const char *path, ses_err *e);
    /* Bytes of a word that it reads; NULL: all of them. */
    int64_t (*max_bytes)(const void *self);
    /* The layers of its path (layer_suffix.h), NULL: none are chosen. May be NULL. */
    const char *(*layers)(const void *self);
    /* Layers side by side of which the tagger learns a weighted sum; 0: none. May be NULL. */
    int64_t (*mixed)(const void *self);
} ses_word_embedder_kind;

#define SES_WORD_EMBEDDER(name) extern const ses_word_embedder_kind ses_word_embedder_##name;
#include "word_embedders.def"
#undef SES_WORD_EMBEDDER

typedef struct ses_word_stack ses_word_stack;

/* Opens "static:FILE,char,...". */
ses_word_stack *ses_word_stack_parse(const char *list, ses_device *dev, ses_err *e);
/* Opens the embeddings of a tagger's folder, which "embeddings" of its config lists; *is_tagger: there are
 * some. NULL: not a tagger, or an error. */
ses_word_stack *ses_word_stack_open(const char *dir, const ses_json *config, ses_device *dev, bool *is_tagger,
                                    ses_err *e);
void ses_word_stack_free(ses_word_stack *s); /* NULL is allowed */

int64_t ses_word_stack_width(const ses_word_stack *s); /* columns of all vectors */
/* Bytes of a word that all embeddings read; longer words are shortened for some. INT64_MAX: any number. */
int64_t ses_word_stack_max_bytes(const ses_word_stack *s);
/* Moves the columns of language models behind all others; returns their number. */
int64_t ses_word_stack_split(ses_word_stack *s);
bool ses_word_stack_has(const ses_word_stack *s, const ses_word_embedder_kind *kind);
/* Writes the member "embeddings" of config.json, and "vector_mix": the columns of layers that are mixed. */
void ses_word_stack_put(const ses_word_stack *s, ses_json_writer *w);
/* Copies the vectors and models into a tagger's folder. */
bool ses_word_stack_save(const ses_word_stack *s, const char *dir, ses_err *e);

typedef struct ses_word_features {
    float *vectors;           /* [words, width]; NULL: width 0 */
    int32_t *chars, *char_cu; /* bytes, at most SES_MAX_WORD_BYTES of a word; cumulative numbers */
    int64_t n_shortened;      /* words of more than ses_word_stack_max_bytes */
} ses_word_features;

/* The features of the words of all sentences. Models read many sentences faster at once. */
bool ses_word_stack_embed(ses_word_stack *s, const ses_sentences *text, ses_arena *mem,
                          ses_word_features *out, ses_err *e);

/* Splits a text into words as in newspaper data: at spaces; punctuation is a word of its own, except inside
 * words and numbers (U.S, 3.5, twenty-one). byte [n]: where each word begins. */
bool ses_split_words(ses_string text, ses_arena *mem, ses_string **word, uint32_t **byte, size_t *n,
                     ses_err *e);

#endif
