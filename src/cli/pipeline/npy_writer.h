/* Writes rows of floats as a NumPy array (.npy) to a stream. The number of rows is unknown until the end: a
 * regular file gets its header rewritten, other streams are buffered.
 * Ownership: the stream is borrowed. One thread per writer. */
#ifndef SES_CLI_NPY_WRITER_H
#define SES_CLI_NPY_WRITER_H

#include "base/str.h"

#include <stdio.h>

typedef struct ses_npy {
    FILE *f;
    bool begun, patch; /* patch: rewrite the header at the end; else rows are kept in buf */
    long start;
    int64_t rows, cols;
    ses_buf buf;
} ses_npy;

/* Adds a row; all have the same cols. */
bool ses_npy_add(ses_npy *n, const float *x, int64_t cols, ses_err *e);
bool ses_npy_end(ses_npy *n, ses_err *e);
void ses_npy_free(ses_npy *n);

#endif
