/* Sequence of post-processors. */
#include "text/stage/shared/sequence.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    return ses_sequence_open(SES_POST_PROCESSOR, settings, "processors", mem, e);
}

static void save(const void *self, ses_json_writer *w) { ses_sequence_save(self, "processors", w); }

const ses_stage ses_stage_post_sequence = {
    .type = "Sequence",
    .kind = SES_POST_PROCESSOR,
    .open = open,
    .close = ses_sequence_close,
    .save = save,
    .steps = ses_sequence_steps,
};
