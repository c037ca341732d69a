/* Private copies of some rows of a matrix: made at the first use, merged or dropped later. One thread. */
#ifndef SES_VECTORS_ROW_COPIES_H
#define SES_VECTORS_ROW_COPIES_H

#include "kernel/kernel.h"

typedef struct ses_row_copies {
    float *base; /* [rows][cols], borrowed */
    int64_t rows, cols;
    int32_t *slot; /* [rows]: copy + 1; 0: none */
    int32_t *row;  /* [n]: row of each copy */
    int32_t *uses; /* [n]: calls of ses_row_copy for it */
    float *data;   /* [n][cols] */
    size_t n, row_capacity, uses_capacity, data_capacity;
} ses_row_copies;

bool ses_row_copies_init(ses_row_copies *c, float *base, int64_t rows, int64_t cols, ses_err *e);
void ses_row_copies_free(ses_row_copies *c);
/* Room for `more` copies: pointers from ses_row_copy are valid until the next call. */
bool ses_row_copies_reserve(ses_row_copies *c, size_t more, ses_err *e);
float *ses_row_copy(ses_row_copies *c, int32_t row); /* room must have been reserved */
void ses_row_copies_drop(ses_row_copies *c);

enum { SES_ROW_COPIES_MAX = 64 };
/* Adds the changes of the copies [n], at most SES_ROW_COPIES_MAX, to part `part` of `parts` (a power of two)
 * of the rows of their common base, in the order of the copies. Copies that move a row the same way would
 * overshoot: their sum is scaled as if they had been trained one after another. u uses cover the part
 * m(u) = 1 - exp(-u step) of the way to an optimum; k copies with U uses altogether would cover m(U), and the
 * sum of their changes covers k m(U / k). The copies must be dropped then. */
void ses_row_copies_merge(const ses_row_copies *const *c, size_t n, int64_t part, int64_t parts, float step,
                          const ses_kernels *k);

#endif
