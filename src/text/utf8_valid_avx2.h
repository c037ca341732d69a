/* UTF-8 validation with AVX2, 64 bytes at a time. */
#ifndef SES_TEXT_UTF8_VALID_AVX2_H
#define SES_TEXT_UTF8_VALID_AVX2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ses_utf8_valid_avx2(const char *p, size_t n); /* whether all n bytes are valid UTF-8 */

#endif
