/* Whitespace: words and runs of characters that are neither word characters nor white space: \w+|[^\w\s]+ */
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "text/stage/shared/splitter.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_pre_whitespace; /* no settings */
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    (void)self;
    size_t start = begin;
    uint32_t kind = SES_CP_SPACE; /* class of the run from start: SES_CP_WORD, SES_CP_SPACE or 0 */
    for (size_t i = begin, len; i < end; i += len) {
        uint32_t cp;
        len = ses_utf8_next(text->byte + i, &cp);
        uint32_t k = ses_cp(cp)->flags & (SES_CP_WORD | SES_CP_SPACE);
        if (k == kind) continue;
        if (kind != SES_CP_SPACE && !ses_pieces_put(out, (uint32_t)start, (uint32_t)i, -1, e)) return false;
        start = i;
        kind = k;
    }
    return kind == SES_CP_SPACE || ses_pieces_put(out, (uint32_t)start, (uint32_t)end, -1, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_whitespace = {
    .type = "Whitespace", .kind = SES_PRE_TOKENIZER, .open = open, .split = split
};
