/* Settings of ByteLevel, shared by its pre-tokenizer, post-processor and decoder. Allocated on the
 * tokenizer's arena, read-only. */
#ifndef SES_TEXT_BYTE_LEVEL_H
#define SES_TEXT_BYTE_LEVEL_H

#include "text/stage.h"

typedef struct ses_byte_level {
    bool add_prefix_space, trim_offsets, use_regex;
} ses_byte_level;

void *ses_byte_level_open(const ses_json *settings, ses_arena *mem, ses_err *e);
void ses_byte_level_save(const void *self, ses_json_writer *w);

#endif
