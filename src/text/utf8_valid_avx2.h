/* UTF-8 by bit masks, 64 bytes at a time. */
#ifndef SES_TEXT_UTF8_SIMD_H
#define SES_TEXT_UTF8_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ses_utf8_valid_avx2(const char *p, size_t n); /* all of it is UTF-8 */

#endif
