/* Generated tables, for unicode.c: two-level lookup ses_X_row[ses_X_page[cp >> b] << b | low b bits]. */
#ifndef SES_BASE_UNICODE_TABLES_H
#define SES_BASE_UNICODE_TABLES_H

#include "unicode.h"

extern const uint8_t ses_lower_page[], ses_lower_row[]; /* b = 7; index in ses_lower_delta */
extern const int32_t ses_lower_delta[];

extern const uint8_t ses_script_page[], ses_script_row[]; /* b = 7 */
extern const uint8_t ses_script_han[3];                   /* Han, Hiragana, Katakana */

/* b = 6; 0, or start of the decomposition in the pool; its last character has bit 31 set. */
extern const uint8_t ses_canon_page[], ses_compat_page[];
extern const uint16_t ses_canon_row[], ses_compat_row[];
extern const uint32_t ses_canon_pool[], ses_compat_pool[];

extern const uint32_t ses_pairs, ses_pair[]; /* first, second, composite; sorted */

#endif
