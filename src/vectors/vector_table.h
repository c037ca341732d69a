/* Vectors in memory, as a source of files: ses_vectors_save writes them in each of its formats.
 *
 *     ses_vector_table t = { .vocab = &vocab, .dim = 100, .row = copy_row, .ctx = weights };
 *     ok = ses_vector_table_save(&t, "word2vec", path, overwrite, e);
 *
 * Nothing is owned. Threads: as ses_vectors, if row only reads. */
#ifndef SES_VECTORS_VECTOR_TABLE_H
#define SES_VECTORS_VECTOR_TABLE_H

#include "sesame/vectors.h"
#include "word_vocab.h"

typedef struct ses_vector_table {
    const ses_word_vocab *vocab; /* a vector per word */
    int64_t dim;
    void (*row)(const void *ctx, int64_t i, float *out); /* vector i to out [dim] */
    const void *ctx;
} ses_vector_table;

/* The table as an open file whose words have been read. name: for messages. The table must live as long.
 * Free with ses_vectors_free. */
ses_vectors *ses_vectors_of_table(const ses_vector_table *t, const char *name, ses_err *e);
/* Writes the table atomically. Text formats have the shortest numbers that read back as the same floats. */
bool ses_vector_table_save(const ses_vector_table *t, const char *format, const char *path, bool overwrite,
                           ses_err *e);

#endif
