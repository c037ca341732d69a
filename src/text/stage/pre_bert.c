/* BertPreTokenizer: splits at white space; each punctuation character is a word. */
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "text/stage.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings;
    return ses_arena_array(mem, 1, 1, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    (void)self;
    if (!ses_text_copy(&out->text, &in->text, 0, in->text.n, e)) return false;
    for (size_t i = 0; i < in->n; i++) {
        const ses_piece *p = &in->piece[i];
        if (p->id >= 0) {
            if (!ses_pieces_put(out, p->begin, p->end, p->id, e)) return false;
            continue;
        }
        uint32_t begin = p->begin, at = p->begin, c = 0;
        while (at < p->end) {
            uint32_t len = (uint32_t)ses_utf8_decode(in->text.byte + at, p->end - at, &c);
            bool space = ses_cp_is(c, SES_CP_SPACE), mark = !space && ses_cp_is(c, SES_CP_PUNCT8);
            if (space || mark) {
                if (begin < at && !ses_pieces_put(out, begin, at, -1, e)) return false;
                if (mark && !ses_pieces_put(out, at, at + len, -1, e)) return false;
                begin = at + len;
            }
            at += len;
        }
        if (begin < at && !ses_pieces_put(out, begin, at, -1, e)) return false;
    }
    return true;
}

const ses_stage ses_stage_pre_bert = {
    .type = "BertPreTokenizer", .kind = SES_PRE_TOKENIZER, .open = open, .split = split
};
