/* Growing array of int32_t. */
#include "ints.h"

#include "base/alloc.h"

bool ses_ints_append(ses_ints *a, const int32_t *from, int64_t n, ses_err *e)
{
    size_t want;
    if (!ses_add_size(a->n, (size_t)n, &want) || want > INT32_MAX)
        return ses_fail(e, SES_ENOMEM, "more than %d tokens in one dataset", INT32_MAX);
    if (!ses_array_reserve(&a->p, &a->cap, want, sizeof *a->p, e)) return false;
    for (int64_t i = 0; i < n; i++) a->p[a->n + (size_t)i] = from ? from[i] : 0;
    a->n = want;
    return true;
}

bool ses_ints_push(ses_ints *a, int32_t x, ses_err *e) { return ses_ints_append(a, &x, 1, e); }

bool ses_ints_resize(ses_ints *a, int64_t n, ses_err *e)
{
    if ((size_t)n > a->n) return ses_ints_append(a, NULL, n - (int64_t)a->n, e);
    a->n = (size_t)n;
    return true;
}

void ses_ints_free(ses_ints *a)
{
    ses_free(a->p);
    *a = (ses_ints){ 0 };
}
