/* Heap allocation: zeroed, aligned for SIMD, with overflow checks. All memory of the library comes from
 * here; failure is reported through ses_err. Free with ses_free. Thread-safe. */
#ifndef SES_BASE_ALLOC_H
#define SES_BASE_ALLOC_H

#include "sesame/base.h"

enum { SES_ALIGN = 64 };

void *ses_alloc(size_t size, ses_err *e);                 /* zeroed; size 0 returns a unique block */
void *ses_alloc_array(size_t n, size_t size, ses_err *e); /* n * size bytes, zeroed */
/* The same, on transparent huge pages if the system has them: for large arrays that are filled from the
 * start. */
void *ses_alloc_huge(size_t n, size_t size, ses_err *e);
/* New bytes are not zeroed. On failure p stays valid. */
void *ses_realloc_array(void *p, size_t n, size_t size, ses_err *e);
/* The same for an array whose first `used` elements hold data: a large one moves to transparent huge pages,
 * because filling fresh small pages can take longer than computing their contents. */
void *ses_grow_array(void *p, size_t used, size_t n, size_t size, ses_err *e);
/* Makes the capacity of a growing array at least n elements, with geometric growth. array: address of the
 * pointer to its first element. On failure array and *capacity are unchanged. */
bool ses_array_reserve(void *array, size_t *capacity, size_t n, size_t size, ses_err *e);
void *ses_alloc_aligned(size_t size, ses_err *e); /* aligned to SES_ALIGN, not zeroed */
char *ses_strdup(const char *s, ses_err *e);
char *ses_strndup(const char *s, size_t n, ses_err *e);
void ses_free(void *p); /* p may be NULL */

/* Checked arithmetic for sizes from input: false on overflow. */
bool ses_mul_size(size_t a, size_t b, size_t *out);
bool ses_add_size(size_t a, size_t b, size_t *out);
bool ses_mul_i64(int64_t a, int64_t b, int64_t *out);

#endif
