/* FixedLength: splits into pieces of N characters. */
#include "base/unicode/utf8.h"
#include "text/stage/shared/splitter.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    int64_t *length = ses_arena_array(mem, 1, sizeof *length, e);
    return length && ses_setting_int(settings, "length", 5, 1, INT64_MAX, length, e) ? length : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    ses_json_member_int(w, "length", *(const int64_t *)self);
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    const int64_t length = *(const int64_t *)self;
    while (begin < end) {
        size_t i = begin;
        for (int64_t k = 0; k < length && i < end; k++) {
            uint32_t cp;
            i += ses_utf8_next(text->byte + i, &cp);
        }
        if (!ses_pieces_put(out, (uint32_t)begin, (uint32_t)i, -1, e)) return false;
        begin = i;
    }
    return true;
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_fixed_length = {
    .type = "FixedLength", .kind = SES_PRE_TOKENIZER, .open = open, .save = save, .split = split
};
