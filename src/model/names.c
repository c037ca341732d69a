#include "desc.h"

#include <stdio.h>
#include <string.h>

/* Match a name against a pattern of ours; # takes digits, * at the end takes the rest. */
static bool match(const char *pattern, const char *name, int *number, const char **rest)
{
    for (;; pattern++) {
        if (*pattern == '*') {
            *rest = name;
            return true;
        }
        if (*pattern == '#') {
            int len = 0;
            if (sscanf(name, "%d%n", number, &len) != 1) return false;
            name += len;
            continue;
        }
        if (*pattern != *name) return false;
        if (!*name++) return true;
    }
}

/* Their pattern with number and rest put in; false when buf is too small. inner: layers in a group. */
static bool expand(char *buf, size_t n, const char *prefix, const char *pattern, int number, int inner,
                   const char *rest)
{
    size_t at = 0;
    int len = snprintf(buf, n, "%s", prefix);
    for (at = (size_t)len; *pattern && at < n; pattern++) {
        if (*pattern == '#')
            len = snprintf(buf + at, n - at, "%d", number / inner);
        else if (*pattern == '@')
            len = snprintf(buf + at, n - at, "%d", number % inner);
        else if (*pattern == '*')
            len = snprintf(buf + at, n - at, "%s", rest);
        else
            len = snprintf(buf + at, n - at, "%c", *pattern);
        at += (size_t)len;
    }
    return at < n;
}

bool ses_name_theirs(const ses_model_desc *d, const ses_class *k, int64_t inner, const char *ours, char *buf,
                     size_t n)
{
    for (size_t i = 0; i < SES_LEN(d->tensors); i++)
        for (const ses_name *t = d->tensors[i].name; t < d->tensors[i].name + d->tensors[i].n; t++) {
            int number = 0;
            const char *rest = "";
            if (!match(t->ours, ours, &number, &rest)) continue;
            bool head = *t->theirs == '/', base_class = k == &d->class[0];
            return expand(buf, n, head || base_class ? "" : d->prefix, t->theirs + head, number,
                          inner ? (int)inner : 1, rest);
        }
    return false;
}
