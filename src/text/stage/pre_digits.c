/* Digits: separates numbers from other text, as single digits or as whole numbers. */
#include "base/unicode/unicode.h"
#include "text/stage/shared/splitter.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    bool *each = ses_arena_array(mem, 1, sizeof *each, e);
    return each && ses_setting_bool(settings, "individual_digits", false, each, e) ? each : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    ses_json_member_bool(w, "individual_digits", *(const bool *)self);
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    ses_split_behavior how = *(const bool *)self ? SES_SPLIT_ISOLATED : SES_SPLIT_CONTIGUOUS;
    return ses_split_at_property(text, begin, end, SES_CP_NUMERIC, how, out, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_digits = {
    .type = "Digits", .kind = SES_PRE_TOKENIZER, .open = open, .save = save, .split = split
};
