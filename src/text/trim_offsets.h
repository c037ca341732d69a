/* Trimming of token offsets (trim_offsets of ByteLevel and RobertaProcessing): spaces at the start and end
 * of a byte-level token are excluded from its offsets. */
#ifndef SES_TEXT_TRIM_OFFSETS_H
#define SES_TEXT_TRIM_OFFSETS_H

#include "stage.h"

typedef struct ses_space_margins {
    uint16_t front, back; /* characters */
} ses_space_margins;

/* Counts white space and U+0120, the byte-level spelling of a space. */
ses_space_margins ses_space_margins_of(const char *token, size_t n);

/* prefix_space: the pre-tokenizer inserted a space before the text. A single leading space of the first
 * token of a part, or of a token at offset 0, is then not in the text and is not trimmed. */
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
