/* Rows of floats as one NumPy file on a stream, though how many there are shows only at the end. */
#ifndef SES_CLI_NPY_H
#define SES_CLI_NPY_H

#include "base/str.h"

#include <stdio.h>

typedef struct ses_npy {
    FILE *f;
    bool begun, patch; /* patch: the header is written again at the end; else rows wait in buf */
    long start;
    int64_t rows, cols;
    ses_buf buf;
} ses_npy;

bool ses_npy_add(ses_npy *n, const float *x, int64_t cols, ses_err *e); /* a row; all have as many columns */
bool ses_npy_end(ses_npy *n, ses_err *e);
void ses_npy_free(ses_npy *n);

#endif
