/* Bottom-up merge sort. */
#include "sort.h"

#include "alloc.h"

#include <string.h>

/* Merges the sorted runs [a, mid) and [mid, end) into out. */
static void merge(const char *a, const char *mid, const char *end, size_t size, char *out,
                  int (*compare)(const void *, const void *))
{
    const char *b = mid;
    while (a < mid && b < end) {
        const char **from = compare(a, b) <= 0 ? &a : &b;
        memcpy(out, *from, size);
        *from += size;
        out += size;
    }
    if (a < mid) memcpy(out, a, (size_t)(mid - a));
    if (b < end) memcpy(out, b, (size_t)(end - b));
}

bool ses_stable_sort(void *items, size_t n, size_t size, int (*compare)(const void *a, const void *b),
                     ses_err *e)
{
    if (n < 2) return true;
    char *spare = ses_alloc_array(n, size, e), *from = items, *to = spare;
    if (!spare) return false;
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t i = 0; i < n; i += 2 * run) {
            size_t mid = n - i > run ? i + run : n, end = n - mid > run ? mid + run : n;
            merge(from + i * size, from + mid * size, from + end * size, size, to + i * size, compare);
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != (char *)items) memcpy(items, from, n * size);
    ses_free(spare);
    return true;
}
