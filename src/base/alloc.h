/* Memory from the heap: zeroed, aligned for SIMD, checked for overflow.
 * Every allocation of the library goes through here and reports failure through ses_err. */
#ifndef SES_BASE_ALLOC_H
#define SES_BASE_ALLOC_H

#include "sesame/err.h"

enum { SES_ALIGN = 64 };

void *ses_alloc(size_t size, ses_err *e);                 /* zeroed; size 0 gives a unique block */
void *ses_alloc_array(size_t n, size_t size, ses_err *e); /* n * size, overflow checked */
/* The same for megabytes that are filled from their begin: in large pages where the system has them. */
void *ses_alloc_huge(size_t n, size_t size, ses_err *e);
/* What it grows by is not zeroed; on failure p stays as it was. */
void *ses_realloc_array(void *p, size_t n, size_t size, ses_err *e);
/* Room for n elements in all, and for more where it has to grow, so that arrays are filled one by one in
 * linear time. array: the address of the pointer to the first; on failure both stay as they were. */
bool ses_array_reserve(void *array, size_t *room, size_t n, size_t size, ses_err *e);
void *ses_alloc_aligned(size_t size, ses_err *e); /* SES_ALIGN, not zeroed; ses_free */
char *ses_strdup(const char *s, ses_err *e);
char *ses_strndup(const char *s, size_t n, ses_err *e);
void ses_free(void *p);

/* Sizes from outside are multiplied and added here and nowhere else. */
bool ses_mul_size(size_t a, size_t b, size_t *out);
bool ses_add_size(size_t a, size_t b, size_t *out);
bool ses_mul_i64(int64_t a, int64_t b, int64_t *out);

#endif
