/* Heap allocation with overflow checks, and growth of arrays. */
#define _DEFAULT_SOURCE /* madvise */
#include "alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 4 << 20 }; /* bytes from which an array is placed on huge pages */

static void *fail_no_memory(size_t size, ses_err *e)
{
    ses_fail(e, SES_ENOMEM, "out of memory (%zu bytes requested)", size);
    return NULL;
}

bool ses_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
bool ses_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
bool ses_mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

void *ses_alloc(size_t size, ses_err *e)
{
    void *p = calloc(1, size ? size : 1);
    return p ? p : fail_no_memory(size, e);
}

void *ses_alloc_array(size_t n, size_t size, ses_err *e)
{
    size_t total;
    if (!ses_mul_size(n, size, &total)) return fail_no_memory(SIZE_MAX, e);
    return ses_alloc(total, e);
}

void *ses_alloc_huge(size_t n, size_t size, ses_err *e)
{
    char *p = ses_alloc_array(n, size, e);
#ifdef MADV_HUGEPAGE
    enum { PAGE = 4096 };
    size_t skip = p ? (PAGE - (uintptr_t)p % PAGE) % PAGE : 0;
    /* a hint: failure does not matter */
    if (p && n * size > skip + PAGE) (void)madvise(p + skip, (n * size - skip) / PAGE * PAGE, MADV_HUGEPAGE);
#endif
    return p;
}

void *ses_realloc_array(void *p, size_t n, size_t size, ses_err *e)
{
    size_t total;
    if (!ses_mul_size(n, size, &total)) return fail_no_memory(SIZE_MAX, e);
    void *q = realloc(p, total ? total : 1);
    return q ? q : fail_no_memory(total, e);
}

void *ses_grow_array(void *p, size_t used, size_t n, size_t size, ses_err *e)
{
    size_t total;
    if (!ses_mul_size(n, size, &total)) return fail_no_memory(SIZE_MAX, e);
    if (total < LARGE) return ses_realloc_array(p, n, size, e);
    void *q = ses_alloc_aligned(total, e);
    if (!q) return NULL;
    if (used) memcpy(q, p, used * size);
    free(p);
    return q;
}

bool ses_array_reserve(void *array, size_t *capacity, size_t n, size_t size, ses_err *e)
{
    void *p; /* the pointer at `array`, of any type */
    if (n <= *capacity) return true;
    size_t more = n < SIZE_MAX / 2 ? n + n / 2 + 64 : n;
    memcpy(&p, array, sizeof p);
    if (!(p = ses_realloc_array(p, more, size, e))) return false;
    memcpy(array, &p, sizeof p);
    *capacity = more;
    return true;
}

/* Large blocks are aligned to transparent huge pages: one page fault per 2 MB instead of per 4 KB, and fewer
 * TLB misses. */
void *ses_alloc_aligned(size_t size, ses_err *e)
{
    enum { HUGE = 2 << 20 };
    size_t padded, align = size >= HUGE ? HUGE : SES_ALIGN;
    if (!ses_add_size(size ? size : 1, align - 1, &padded)) return fail_no_memory(size, e);
    void *p = aligned_alloc(align, padded & ~(align - 1));
#ifdef MADV_HUGEPAGE
    if (p && align == HUGE) (void)madvise(p, size / HUGE * HUGE, MADV_HUGEPAGE); /* a hint */
#endif
    return p ? p : fail_no_memory(size, e);
}

char *ses_strndup(const char *s, size_t n, ses_err *e)
{
    size_t size;
    if (!ses_add_size(n, 1, &size)) return fail_no_memory(SIZE_MAX, e);
    char *p = ses_alloc(size, e);
    if (p) memcpy(p, s, n);
    return p;
}

char *ses_strdup(const char *s, ses_err *e) { return ses_strndup(s, strlen(s), e); }

void ses_free(void *p) { free(p); }
