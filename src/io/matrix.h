/* Matrices of numbers from files: NumPy's .npy, or a table of numbers. */
#ifndef SES_IO_MATRIX_H
#define SES_IO_MATRIX_H

#include "sesame/unstable/table.h"

typedef struct ses_matrix {
    size_t rows, cols; /* a vector is one column */
    float *x;          /* [rows, cols], all finite; owned */
} ses_matrix;

/* Reads a .npy file (little-endian f2, f4, f8, i1 to i8, u1, b1; one or two axes; C order), or any other file
 * as a table whose fields are all numbers, with options o. */
bool ses_matrix_read(ses_matrix *m, const char *path, const ses_records_options *o, ses_err *e);
bool ses_matrix_from_npy(ses_matrix *m, const void *bytes, size_t n, ses_err *e);
/* The header of a .npy file and the position of its numbers, which are not read. */
typedef struct ses_npy_header {
    char kind; /* f, i, u, b */
    size_t size, dims, dim[2];
    const unsigned char *data; /* dim[0] * dim[1] elements of `size` bytes, little-endian; borrowed */
} ses_npy_header;
bool ses_npy_read(ses_npy_header *h, const void *bytes, size_t n, ses_err *e);

void ses_matrix_free(ses_matrix *m); /* back to zero */

#endif
