/* The maximum length of an input line, the same for every command that reads a text per line: a
 * file that has no line ends, such as /dev/zero, must not fill the memory. No state; safe in all threads. */
#ifndef SES_CLI_LINE_LIMIT_H
#define SES_CLI_LINE_LIMIT_H

#include "sesame/base.h"

enum { SES_MAX_LINE = 256 << 20 }; /* bytes */

/* Fails with the error for line number `line` (from 1). Returns false. */
static inline bool ses_fail_long_line(int64_t line, ses_err *e)
{
    return ses_fail(e, SES_EARG,
                    "line %lld is longer than %d MiB; expected one text per line, lines ending in LF",
                    (long long)line, SES_MAX_LINE >> 20);
}

#endif
