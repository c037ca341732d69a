/* Converts byte offsets to code point offsets, as Hugging Face Tokenizers does. */
#ifndef SES_TEXT_CODEPOINT_OFFSETS_H
#define SES_TEXT_CODEPOINT_OFFSETS_H

#include "sesame/tokenizer.h"

/* 64 bytes of text: a mask of UTF-8 continuation bytes, and the number of continuation bytes before the
 * block. */
typedef struct ses_codepoint_block {
    uint64_t inside;
    uint64_t before;
} ses_codepoint_block;

enum { SES_CODEPOINT_SHORT = 1 << 14 }; /* bytes; shorter texts use a table with one entry per byte */

typedef struct ses_codepoint_table {
    ses_codepoint_block *block;
    size_t cap;
    uint32_t *point; /* [SES_CODEPOINT_SHORT + 16] */
} ses_codepoint_table;

/* text is valid UTF-8. An offset that starts at or past the end of the text stays in bytes. */
bool ses_codepoint_offsets(ses_isa isa, ses_codepoint_table *table, const char *text, size_t n,
                           const ses_offset *byte, ses_offset *point, size_t count, ses_err *e);
void ses_codepoint_table_free(ses_codepoint_table *t);

/* AVX2 versions: with a table of n / 64 + 1 blocks; for short texts, with one table entry per byte. */
void ses_codepoint_offsets_avx2(ses_codepoint_block *block, const char *text, size_t n,
                                const ses_offset *byte, ses_offset *point, size_t count);
void ses_codepoint_offsets_short_avx2(uint32_t *list, const char *text, size_t n, const ses_offset *byte,
                                      ses_offset *point, size_t count);

#endif
