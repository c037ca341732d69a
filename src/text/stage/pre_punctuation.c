/* Punctuation: every punctuation character (BERT's definition) is a delimiter. */
#include "base/unicode/unicode.h"
#include "text/stage/shared/splitter.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_split_behavior *how = ses_arena_array(mem, 1, sizeof *how, e);
    return how && ses_setting_split_behavior(settings, "behavior", SES_SPLIT_ISOLATED, how, e) ? how : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    ses_json_member_string(w, "behavior", ses_split_behavior_name(*(const ses_split_behavior *)self));
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    return ses_split_at_property(text, begin, end, SES_CP_PUNCT8, *(const ses_split_behavior *)self, out, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_punctuation = {
    .type = "Punctuation", .kind = SES_PRE_TOKENIZER, .open = open, .save = save, .split = split
};
