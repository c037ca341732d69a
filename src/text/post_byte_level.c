/* ByteLevel as a post-processor: adds no token, leaves white space out of the offsets. */
#include "byte_level.h"

static void trim(const void *self, bool first, const char *token, size_t n, ses_offset *point)
{
    const ses_byte_level *b = self;
    if (b->trim_offsets) ses_trim_spaces(b->add_prefix_space, first, token, n, point);
}

const ses_stage ses_stage_post_byte_level = {
    .type = "ByteLevel",
    .kind = SES_POST_PROCESSOR,
    .open = ses_byte_level_open,
    .save = ses_byte_level_save,
    .trim = trim,
};
