/* Parts of GNU's C++ library whose results depend on the implementation: std::sort with equal items,
 * std::minstd_rand, the uniform distributions over it and std::shuffle, the order of std::unordered_map. */
#ifndef SES_VECTORS_LIBSTDCXX_H
#define SES_VECTORS_LIBSTDCXX_H

#include "sesame/base.h"

typedef struct ses_sort_item {
    int64_t major, minor; /* sorted by rising major, then falling minor */
    size_t index;         /* not compared */
} ses_sort_item;

/* std::sort: introsort; equal items end in the order in which it leaves them. */
void ses_libstdcxx_sort(ses_sort_item *item, size_t n);

typedef struct ses_minstd {
    uint32_t x;
} ses_minstd;

ses_minstd ses_minstd_of(uint64_t seed); /* negative seeds of the originals: as 64 bits */
/* std::uniform_int_distribution: 0 <= result <= most. */
uint64_t ses_minstd_upto(ses_minstd *g, uint64_t most);
/* std::uniform_real_distribution<double>: low <= result < high; spends two numbers. */
double ses_minstd_real(ses_minstd *g, double low, double high);

/* std::shuffle of n numbers. */
void ses_libstdcxx_shuffle(int32_t *x, size_t n, ses_minstd *g);
/* The order in which std::unordered_map<int32_t, T> iterates over n distinct keys >= 0 that were inserted
 * one by one: order[i] is the index of the i-th key. */
bool ses_libstdcxx_map_order(const int32_t *key, size_t n, size_t *order, ses_err *e);

#endif
