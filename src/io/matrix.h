/* Matrices of numbers from files: NumPy's .npy, or a table of numbers. */
#ifndef SES_IO_MATRIX_H
#define SES_IO_MATRIX_H

#include "sesame/table.h"

typedef struct ses_matrix {
    size_t rows, cols; /* a vector is one column */
    float *x;          /* [rows, cols], all finite */
} ses_matrix;

/* .npy: little-endian f2 f4 f8, i1 to i8, u1, b1; one or two axes, C order. Anything else is read as a
 * table, by the options, whose every field is a number. */
bool ses_matrix_read(ses_matrix *m, const char *path, const ses_records_options *o, ses_err *e);
bool ses_matrix_from_npy(ses_matrix *m, const void *bytes, size_t n, ses_err *e);
void ses_matrix_free(ses_matrix *m); /* back to zero */

#endif
