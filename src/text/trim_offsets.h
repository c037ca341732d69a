/* Blanks at the ends of byte-level tokens, which post-processors leave out of the tokens' ranges. */
#ifndef SES_TEXT_TRIM_H
#define SES_TEXT_TRIM_H

#include "stage.h"

typedef struct ses_space_margins {
    uint16_t front, back; /* characters */
} ses_space_margins;

/* U+0120 is how such tokens spell a space. */
ses_space_margins ses_space_margins_of(const char *token, size_t n);

/* Of a part's first token, and any that begins where the text does, a single space in front may be one
 * that was put there (prefix_space) and is not in the text. */
static inline void ses_trim_offsets(bool prefix_space, bool first, ses_space_margins b, ses_offset *point)
{
    uint32_t front = prefix_space && b.front == 1 && (first || !point->begin) ? 0 : b.front;
    uint32_t begin = point->begin + front;
    point->begin = begin < point->end ? begin : point->end;
    if (point->end < b.back) return;
    uint32_t end = point->end - b.back;
    point->end = end > point->begin ? end : point->begin;
}

#endif
