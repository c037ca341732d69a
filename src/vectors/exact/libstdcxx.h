/* Parts of GNU's C++ library whose results depend on the implementation: std::sort with equal items,
 * std::minstd_rand and the uniform distributions over it. */
#ifndef SES_VECTORS_LIBSTDCXX_H
#define SES_VECTORS_LIBSTDCXX_H

#include "sesame/types.h"

typedef struct ses_sort_item {
    int64_t major, minor; /* sorted by rising major, then falling minor */
    size_t index;         /* not compared */
} ses_sort_item;

/* std::sort: introsort; equal items end in the order in which it leaves them. */
void ses_libstdcxx_sort(ses_sort_item *item, size_t n);

typedef struct ses_minstd {
    uint32_t x;
} ses_minstd;

ses_minstd ses_minstd_of(uint32_t seed);
/* std::uniform_int_distribution: 0 <= result <= most. */
uint64_t ses_minstd_upto(ses_minstd *g, uint64_t most);
/* std::uniform_real_distribution<double>: low <= result < high; spends two numbers. */
double ses_minstd_real(ses_minstd *g, double low, double high);

#endif
