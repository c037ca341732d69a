/* Files of trained word vectors. */
#ifndef SES_VECTORS_VECTOR_OUTPUT_H
#define SES_VECTORS_VECTOR_OUTPUT_H

#include "vectors/word_vocab.h"

/* In the order of SES_VECTOR_FORMATS. */
typedef enum { SES_VECTORS_TEXT, SES_VECTORS_BINARY, SES_VECTORS_FASTTEXT } ses_vector_file_format;
#define SES_VECTOR_FORMATS "word2vec|word2vec-binary|fasttext"

/* Row i of the vectors at out [dim]. */
typedef void ses_vector_fill_row(const void *ctx, int64_t i, float *out);

typedef struct ses_vector_matrix {
    int64_t rows;
    ses_vector_fill_row *row;
    const void *ctx;
} ses_vector_matrix;

/* Settings that fastText's .bin stores. */
typedef struct ses_fasttext_header {
    int32_t window, epochs, min_count, negative, minn, maxn, bucket;
    bool hs, cbow;
    double sample;
    ses_vector_matrix in, out; /* rows of words and buckets; rows of outputs */
} ses_fasttext_header;

typedef struct ses_vector_file {
    const char *path;
    bool overwrite;
    ses_vector_file_format format;
    const ses_word_vocab *vocab;
    int64_t dim;
    ses_vector_matrix words;       /* a vector per word */
    const ses_fasttext_header *ft; /* for SES_VECTORS_FASTTEXT */
} ses_vector_file;

/* Writes the file atomically. */
bool ses_vector_file_write(const ses_vector_file *f, ses_err *e);

#endif
