/* ByteLevel as a post-processor: adds no tokens; excludes spaces from token offsets. */
#include "text/stage/shared/byte_level.h"

static bool trims_offsets(const void *self, bool *prefix_space)
{
    const ses_byte_level *b = self;
    *prefix_space = b->add_prefix_space;
    return b->trim_offsets;
}

const ses_stage ses_stage_post_byte_level = {
    .type = "ByteLevel",
    .kind = SES_POST_PROCESSOR,
    .open = ses_byte_level_open,
    .save = ses_byte_level_save,
    .trims_offsets = trims_offsets,
};
