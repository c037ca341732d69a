/* Lists of numbers: see int_ranges.h. */
#include "int_ranges.h"

#include "str.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 1 << 20 };

/* Reads "7" or "9-12"; *at moves behind it. */
static bool read_range(const char **at, long long *from, long long *to)
{
    char *end;
    *from = *to = strtoll(*at, &end, 10);
    if (end == *at || *from > MAX_NUMBER || *from < -MAX_NUMBER) return false;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9' && *from >= 0) {
        const char *second = end + 1;
        *to = strtoll(second, &end, 10);
        if (*to < *from || *to > MAX_NUMBER) return false;
    }
    *at = end;
    return !*end || *end == ',';
}

bool ses_int_ranges_parse(const char *text, int64_t *out, size_t max, size_t *n, ses_err *e)
{
    const char *at = text;
    *n = 0;
    for (bool more = true; more;) {
        long long from, to;
        if (!read_range(&at, &from, &to) || (size_t)(to - from) >= max - *n) break;
        for (; from <= to; from++) out[(*n)++] = from;
        more = *at == ',';
        at += more;
        if (!more) return true;
        if (*n == max) break;
    }
    return ses_fail(e, SES_EUSAGE, "expected a list of up to %zu numbers, as 0,4,9-12 or -1, not \"%s\"", max,
                    ses_quoted_of(text, strlen(text)).s);
}
