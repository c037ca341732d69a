/* WhitespaceSplit: splits at white space. */
#include "base/unicode/unicode.h"
#include "text/stage/shared/splitter.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_pre_whitespace_split; /* no settings */
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    (void)self;
    return ses_split_at_property(text, begin, end, SES_CP_SPACE, SES_SPLIT_REMOVED, out, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_whitespace_split = {
    .type = "WhitespaceSplit", .kind = SES_PRE_TOKENIZER, .open = open, .split = split
};
