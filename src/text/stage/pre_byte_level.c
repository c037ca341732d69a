/* ByteLevel (GPT-2): splits into words by GPT-2's pattern and replaces each byte by a printable character. */
#include "base/unicode/utf8.h"
#include "text/regex/scan_gpt2.h"
#include "text/stage/shared/byte_level.h"
#include "text/vocab/byte_chars.h"

/* Append in[begin, end) as one piece, each byte as its printable character. The characters for the bytes
 * of one input character share its range. */
static bool put_word(const ses_text *in, size_t begin, size_t end, ses_pieces *out, ses_err *e)
{
    ses_text *t = &out->text;
    if (!ses_text_reserve(t, 2 * (end - begin), e)) return false;
    size_t start = t->n;
    for (size_t i = begin; i < end; i++) {
        size_t n = ses_utf8_encode(ses_byte_char((uint8_t)in->byte[i]), t->byte + t->n);
        while (n--) t->from[t->n++] = in->from[i];
    }
    return ses_pieces_put(out, (uint32_t)start, (uint32_t)t->n, -1, e);
}

static bool put_words(const ses_byte_level *b, const ses_text *in, size_t begin, size_t end, ses_pieces *out,
                      ses_err *e)
{
    while (begin < end) {
        size_t n = b->use_regex ? ses_scan_gpt2(in->byte + begin, end - begin) : end - begin;
        if (!put_word(in, begin, begin + n, out, e)) return false;
        begin += n;
    }
    return true;
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    const ses_byte_level *b = self;
    ses_text spaced = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < in->n; i++) {
        const ses_piece *p = &in->piece[i];
        const char *byte = in->text.byte + p->begin;
        if (p->id >= 0) {
            uint32_t start = (uint32_t)out->text.n;
            ok = ses_text_copy(&out->text, &in->text, p->begin, p->end, e) &&
                 ses_pieces_put(out, start, (uint32_t)out->text.n, p->id, e);
        } else if (b->add_prefix_space &&
                   *byte != ' ') { /* the inserted space gets the range of the first character */
            spaced.n = 0;
            ok = ses_text_put(&spaced, " ", 1, in->text.from[p->begin], e) &&
                 ses_text_copy(&spaced, &in->text, p->begin, p->end, e) &&
                 put_words(b, &spaced, 0, spaced.n, out, e);
        } else {
            ok = put_words(b, &in->text, p->begin, p->end, out, e);
        }
    }
    ses_text_free(&spaced);
    return ok;
}

const ses_stage ses_stage_pre_byte_level = {
    .type = "ByteLevel",
    .kind = SES_PRE_TOKENIZER,
    .open = ses_byte_level_open,
    .save = ses_byte_level_save,
    .split = split,
};
