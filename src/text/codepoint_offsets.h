/* Offsets in bytes to offsets in code points, as the reference converts them. */
#ifndef SES_TEXT_POINTS_H
#define SES_TEXT_POINTS_H

#include "sesame/tokenizer.h"

/* Of 64 bytes of text: which of them go on in a character, and how many bytes before these do. */
typedef struct ses_codepoint_block {
    uint64_t inside;
    uint64_t before;
} ses_codepoint_block;

enum { SES_CODEPOINT_SHORT = 1 << 14 }; /* bytes of a text up to which each byte's character is listed */

typedef struct ses_codepoint_table {
    ses_codepoint_block *block;
    size_t cap;
    uint32_t *point; /* [SES_CODEPOINT_SHORT + 16] */
} ses_codepoint_table;

/* text is valid UTF-8. A range that begins at its end or past it stays in bytes. */
bool ses_codepoint_offsets(ses_isa isa, ses_codepoint_table *table, const char *text, size_t n,
                           const ses_offset *byte, ses_offset *point, size_t count, ses_err *e);
void ses_codepoint_table_free(ses_codepoint_table *t);

/* By the table, which has n / 64 + 1 blocks; or by the list, where the text is short. */
void ses_codepoint_offsets_avx2(ses_codepoint_block *block, const char *text, size_t n,
                                const ses_offset *byte, ses_offset *point, size_t count);
void ses_codepoint_offsets_short_avx2(uint32_t *list, const char *text, size_t n, const ses_offset *byte,
                                      ses_offset *point, size_t count);

#endif
