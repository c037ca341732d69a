/* Growing array of int32_t. A zeroed ses_ints is empty and ready; it owns its memory until ses_ints_free. */
#ifndef SES_DATA_INTS_H
#define SES_DATA_INTS_H

#include "sesame/base.h"

typedef struct ses_ints {
    int32_t *p;
    size_t n, cap;
} ses_ints;

bool ses_ints_append(ses_ints *a, const int32_t *from, int64_t n, ses_err *e); /* from NULL: zeros */
bool ses_ints_push(ses_ints *a, int32_t x, ses_err *e);
bool ses_ints_resize(ses_ints *a, int64_t n, ses_err *e); /* new elements are zero */
void ses_ints_free(ses_ints *a);                          /* back to zero */

#endif
