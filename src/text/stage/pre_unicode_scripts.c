/* UnicodeScripts: splits where the script changes; Japanese kana count as Han. Spaces and characters
 * without a script belong to the piece before them; at the start of the text they are removed. */
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "text/stage/shared/splitter.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_pre_unicode_scripts; /* no settings */
}

/* Script of a character; 0: none. U+30FC (prolonged sound mark) is shared by scripts but counts as kana. */
static uint8_t script_of(uint32_t cp) { return cp == ' ' ? 0 : ses_cp_script(cp == 0x30FC ? 0x30A2 : cp); }

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    (void)self;
    size_t start = begin;
    uint8_t script = 0;
    for (size_t i = begin, len; i < end; i += len) {
        uint32_t cp;
        len = ses_utf8_next(text->byte + i, &cp);
        uint8_t s = script_of(cp);
        if (!s || s == script) continue;
        if (script && !ses_pieces_put(out, (uint32_t)start, (uint32_t)i, -1, e)) return false;
        start = i;
        script = s;
    }
    return !script || ses_pieces_put(out, (uint32_t)start, (uint32_t)end, -1, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_unicode_scripts = {
    .type = "UnicodeScripts", .kind = SES_PRE_TOKENIZER, .open = open, .split = split
};
