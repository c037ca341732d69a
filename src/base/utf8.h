/* UTF-8, strict: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef SES_BASE_UTF8_H
#define SES_BASE_UTF8_H

#include "sesame/types.h"

size_t ses_utf8_decode(const char *p, size_t n,
                       uint32_t *cp);             /* bytes taken, 1 to 4; 0: not UTF-8, or n is 0 */
size_t ses_utf8_valid(const char *p, size_t n);   /* bytes before the first bad one; n: all good */
size_t ses_utf8_encode(uint32_t cp, char out[4]); /* bytes written; 0: not a scalar value */

#endif
