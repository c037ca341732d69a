/* Introsort as GNU's C++ library implements it, and its random numbers. */
#include "libstdcxx.h"

#include <math.h>

enum { SMALL = 16 };

static bool before(const ses_sort_item *a, const ses_sort_item *b)
{
    return a->major != b->major ? a->major < b->major : a->minor > b->minor;
}

static void swap(ses_sort_item *a, ses_sort_item *b)
{
    ses_sort_item t = *a;
    *a = *b;
    *b = t;
}

/* ---- heap sort, after too many unbalanced partitions ---- */

static void sift(ses_sort_item *a, size_t hole, size_t n, ses_sort_item value)
{
    size_t top = hole, child = hole;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        if (before(&a[child], &a[child - 1])) child--;
        a[hole] = a[child];
        hole = child;
    }
    if (n % 2 == 0 && child == (n - 2) / 2) {
        child = 2 * (child + 1);
        a[hole] = a[child - 1];
        hole = child - 1;
    }
    while (hole > top && before(&a[(hole - 1) / 2], &value)) {
        a[hole] = a[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    a[hole] = value;
}

static void heap_sort(ses_sort_item *a, size_t n)
{
    for (size_t parent = (n - 2) / 2 + 1; parent-- > 0;) sift(a, parent, n, a[parent]);
    for (size_t last = n - 1; last > 0; last--) {
        ses_sort_item value = a[last];
        a[last] = a[0];
        sift(a, 0, last, value);
    }
}

/* ---- partitions ---- */

static void move_median(ses_sort_item *result, ses_sort_item *a, ses_sort_item *b, ses_sort_item *c)
{
    if (before(a, b))
        swap(result, before(b, c) ? b : before(a, c) ? c : a);
    else
        swap(result, before(a, c) ? a : before(b, c) ? c : b);
}

static ses_sort_item *partition(ses_sort_item *first, ses_sort_item *last)
{
    ses_sort_item *pivot = first;
    move_median(first, first + 1, first + (last - first) / 2, last - 1);
    for (first++;; first++) {
        while (before(first, pivot)) first++;
        last--;
        while (before(pivot, last)) last--;
        if (first >= last) return first;
        swap(first, last);
    }
}

static void introsort(ses_sort_item *first, ses_sort_item *last, int depth)
{
    while (last - first > SMALL) {
        if (!depth--) {
            heap_sort(first, (size_t)(last - first));
            return;
        }
        ses_sort_item *middle = partition(first, last);
        introsort(middle, last, depth);
        last = middle;
    }
}

static void insert(ses_sort_item *at) /* an item before it, at least, is not larger */
{
    ses_sort_item value = *at;
    for (; before(&value, at - 1); at--) *at = at[-1];
    *at = value;
}

void ses_libstdcxx_sort(ses_sort_item *item, size_t n)
{
    int depth = 0;
    if (n < 2) return;
    for (size_t i = n; i > 1; i /= 2) depth += 2;
    introsort(item, item + n, depth);
    for (size_t i = 1; i < n; i++) {
        if (i < SMALL && before(&item[i], &item[0])) {
            ses_sort_item value = item[i];
            for (size_t k = i; k > 0; k--) item[k] = item[k - 1];
            item[0] = value;
        } else {
            insert(&item[i]);
        }
    }
}

/* ---- random numbers ---- */

#define MODULUS 2147483647u

ses_minstd ses_minstd_of(uint32_t seed) { return (ses_minstd){ seed % MODULUS ? seed % MODULUS : 1 }; }

static uint32_t next(ses_minstd *g) /* from 0: the generator's least number is subtracted */
{
    g->x = (uint32_t)((uint64_t)g->x * 48271 % MODULUS);
    return g->x - 1;
}

uint64_t ses_minstd_upto(ses_minstd *g, uint64_t most)
{
    uint64_t range = MODULUS - 2, scale = range / (most + 1), past = (most + 1) * scale, x;
    do x = next(g);
    while (x >= past);
    return x / scale;
}

double ses_minstd_real(ses_minstd *g, double low, double high)
{
    const double range = MODULUS - 1; /* count of its numbers */
    double sum = next(g);
    sum += next(g) * range;
    double x = sum / (range * range);
    if (x >= 1) x = nextafter(1, 0);
    return x * (high - low) + low;
}
