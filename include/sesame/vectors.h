/* Files of static word vectors: word2vec text and binary, fastText .bin, .ftz and .vec, GloVe text, Sesame's
 * folders, and gensim's KeyedVectors (.kv). The format is detected from the contents; docs/VECTORS.md
 * describes each.
 *
 * Opening maps the file and reads its header only, so that a file of many gigabytes opens at once. Words are
 * read by ses_vectors_read_words, all or the first N; vectors stay in the file and are read one at a time.
 *
 *     ses_vectors *v = ses_vectors_open("vectors.bin", &e);
 *     if (v && ses_vectors_read_words(v, 0, &e)) i = ses_vectors_find(v, "house", 5);
 *
 * Words are bytes without NUL: not necessarily UTF-8. A word that occurs twice keeps its first vector.
 * Ownership: words are borrowed from v. Threads: opening, reading words and freeing need exclusive access;
 * the other functions only read and may run on several threads. Errors name the file, and the line or row. */
#ifndef SESAME_VECTORS_H
#define SESAME_VECTORS_H

#include "sesame/base.h"

SES_BEGIN_DECLS

enum {
    SES_VECTORS_MAX_DIM = 1 << 16,
    SES_VECTORS_MAX_WORD = 1 << 20 /* bytes of a word */
};

typedef struct ses_vectors ses_vectors; /* an open file */

/* Opens a file or folder; "-" is standard input. Compressed files and pipes are read into memory. NULL on
 * failure. Free with ses_vectors_free. */
ses_vectors *ses_vectors_open(const char *path, ses_err *e);
/* Frees v; NULL is allowed. */
void ses_vectors_free(ses_vectors *v);

/* Name of the format, as ses_vectors_save takes it: "word2vec", "word2vec-binary", "vec", "glove",
 * "safetensors", "fasttext"; or "gensim". Static. */
const char *ses_vectors_format(const ses_vectors *v);
/* Numbers of a vector. */
int64_t ses_vectors_dim(const ses_vectors *v);
/* Number of words that the file states; -1: unknown until all words are read. */
int64_t ses_vectors_stated_count(const ses_vectors *v);
/* Whether the format has vectors for words outside of the vocabulary: fastText models. */
bool ses_vectors_has_subwords(const ses_vectors *v);

/* Reads the first `max` words, 0: all; a later call with a larger max continues. Fails if the file is
 * damaged. */
bool ses_vectors_read_words(ses_vectors *v, int64_t max, ses_err *e);
/* Number of words read; each occurs once. */
int64_t ses_vectors_count(const ses_vectors *v);
/* Rows left out because their word had occurred before. */
int64_t ses_vectors_duplicates(const ses_vectors *v);
/* Word i, in the order of the file: most frequent first in most files. */
ses_string ses_vectors_word(const ses_vectors *v, int64_t i);
/* Index of a word; -1: not among the words read. */
int64_t ses_vectors_find(const ses_vectors *v, const char *word, size_t n);
/* Copies vector i to out [dim]. Fails (SES_EFORMAT) if it has a number that is not finite. */
bool ses_vectors_get(const ses_vectors *v, int64_t i, float *out, ses_err *e);
/* The vector of a word: its own, or one of its subwords if the format has them. *found is false if there is
 * none; out is then unchanged. */
bool ses_vectors_lookup(const ses_vectors *v, const char *word, size_t n, float *out, bool *found,
                        ses_err *e);

typedef struct ses_vectors_save_options {
    bool overwrite;
    /* Text formats: the shortest numbers that read back as the same floats, instead of the original
     * program's six decimals (word2vec, glove) or nine digits (vec). */
    bool full_precision;
    bool (*progress)(void *ctx, int64_t done, int64_t total); /* false: stop; NULL: none */
    void *ctx;
} ses_vectors_save_options;

/* Writes all words that were read to a new file, or folder for "safetensors", atomically. o: NULL for
 * defaults. Fails (SES_EARG) for a word that the format cannot store. */
bool ses_vectors_save(const ses_vectors *v, const char *format, const char *path,
                      const ses_vectors_save_options *o, ses_err *e);
/* Name of the i-th format that ses_vectors_save writes; NULL past the last. Static. */
const char *ses_vectors_writable_format(size_t i);

SES_END_DECLS

#endif
