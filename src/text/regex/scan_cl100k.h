/* The split patterns of cl100k and its kin,
 *     (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
 *     \s+(?!\S)|\s+
 * by hand. Their matches tile a text. */
#ifndef SES_TEXT_SCAN_CL100K_H
#define SES_TEXT_SCAN_CL100K_H

#include "sesame/types.h"

/* Bytes of the match that begins at p, 1 to n. p is valid UTF-8, n > 0, and a match begins there. digits:
 * the D of the pattern, 0 for any number. */
size_t ses_scan_cl100k(const char *p, size_t n, unsigned digits);

#endif
