/* Lists of names with weights. */
#include "weighted_names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ses_weighted_name_next(const char **p, const char *what, ses_string *name, double *weight, ses_err *e)
{
    const char *s = *p;
    char *end = NULL;
    *name = (ses_string){ s, strcspn(s, ":,") };
    *weight = 1;
    s += name->n;
    if (*s == ':') {
        *weight = strtod(s + 1, &end);
        if (end == s + 1 || !(*weight > 0) || !isfinite(*weight) || (*end && *end != ','))
            return ses_fail(e, SES_EARG, "the weight of %s %.*s must be a number above 0, e.g. %.*s:1", what,
                            (int)name->n, name->p, (int)name->n, name->p);
        s = end;
    }
    *p = *s ? s + 1 : NULL;
    return true;
}
