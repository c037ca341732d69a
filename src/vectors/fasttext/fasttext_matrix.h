/* A matrix of a fastText file: dense, in the mapped file or in memory, or product-quantized: each row is
 * split into parts of dsub columns, and a part is the number of one of 256 centroids. */
#ifndef SES_VECTORS_FASTTEXT_MATRIX_H
#define SES_VECTORS_FASTTEXT_MATRIX_H

#include "base/file.h"

enum { SES_CENTROIDS = 256 };

typedef struct ses_fasttext_matrix {
    int64_t rows, columns;
    float *own;                /* [rows, columns]: dense, in memory; owned */
    const unsigned char *file; /* the same in a file: little-endian, at any address; borrowed */
    /* quantized: neither own nor file */
    const unsigned char *code, *norm_code; /* [rows, parts], [rows]; norm_code NULL: norms are in the parts */
    unsigned char *own_code, *own_norm_code; /* the same if not in a file; owned */
    float *centroid;           /* per part [SES_CENTROIDS, dsub], the last part may be narrower; owned */
    float *norm_centroid;      /* [SES_CENTROIDS]; owned */
    int32_t parts, dsub, last; /* last: columns of the last part */
} ses_fasttext_matrix;

/* Reads a matrix at *at in size bytes and moves *at behind it. *m must be zeroed; free it even on failure. */
bool ses_fasttext_matrix_read(ses_fasttext_matrix *m, bool quantized, const unsigned char *bytes, size_t size,
                              size_t *at, ses_err *e);
bool ses_fasttext_matrix_write(const ses_fasttext_matrix *m, ses_file_writer *w, ses_err *e);
void ses_fasttext_matrix_free(ses_fasttext_matrix *m); /* back to zero */

bool ses_fasttext_matrix_is_quantized(const ses_fasttext_matrix *m);
void ses_fasttext_add_row(const ses_fasttext_matrix *m, int64_t row, float *x); /* x += row */
float ses_fasttext_dot_row(const ses_fasttext_matrix *m, int64_t row, const float *x);
/* Copies a dense matrix into memory: m->own. Does nothing if it is there. */
bool ses_fasttext_matrix_load(ses_fasttext_matrix *m, ses_err *e);

#endif
