/* Offsets in bytes to offsets in code points, as the reference converts them. */
#ifndef SES_TEXT_POINTS_H
#define SES_TEXT_POINTS_H

#include "sesame/tokenizer.h"

/* Of 64 bytes of text: which of them go on in a character, and how many bytes before these do. */
typedef struct ses_point_block {
    uint64_t inside;
    uint64_t before;
} ses_point_block;

enum { SES_POINT_SHORT = 1 << 14 }; /* bytes of a text up to which each byte's character is listed */

typedef struct ses_point_table {
    ses_point_block *block;
    size_t cap;
    uint32_t *point; /* [SES_POINT_SHORT + 16] */
} ses_point_table;

/* text is valid UTF-8. A range that begins at its end or past it stays in bytes. */
bool ses_points(ses_isa isa, ses_point_table *table, const char *text, size_t n, const ses_offset *byte,
                ses_offset *point, size_t count, ses_err *e);
void ses_point_table_free(ses_point_table *t);

/* By the table, which has n / 64 + 1 blocks; or by the list, where the text is short. */
void ses_points_avx2(ses_point_block *block, const char *text, size_t n, const ses_offset *byte,
                     ses_offset *point, size_t count);
void ses_points_short_avx2(uint32_t *list, const char *text, size_t n, const ses_offset *byte,
                           ses_offset *point, size_t count);

#endif
