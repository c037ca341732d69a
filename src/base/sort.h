/* Stable sorting, whatever the C library's qsort does. */
#ifndef SES_BASE_SORT_H
#define SES_BASE_SORT_H

#include "sesame/base.h"

/* Sorts n items of `size` bytes; equal items keep their order. Takes as much memory again. */
bool ses_stable_sort(void *items, size_t n, size_t size, int (*compare)(const void *a, const void *b),
                     ses_err *e);

#endif
