/* CharDelimiterSplit: splits at one given character. */
#include "base/unicode/utf8.h"
#include "text/stage/shared/splitter.h"

#include <string.h>

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_string *s = ses_arena_array(mem, 1, sizeof *s, e);
    if (!s || !ses_setting_string(settings, "delimiter", NULL, mem, s, e)) return NULL;
    uint32_t cp;
    if (!s->n || ses_utf8_decode(s->p, s->n, &cp) != s->n)
        return ses_fail(e, SES_EFORMAT, "key \"delimiter\" must be one character"), NULL;
    return s;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_string *s = self;
    ses_json_member_stringn(w, "delimiter", s->p, s->n);
}

static bool split_piece(const void *self, const ses_text *text, size_t begin, size_t end, ses_pieces *out,
                        ses_err *e)
{
    const ses_string *s = self;
    size_t done = begin, i = begin;
    while (i < end) {
        /* a lead byte occurs only at the start of a character */
        const char *hit = memchr(text->byte + i, s->p[0], end - i);
        if (!hit) break;
        i = (size_t)(hit - text->byte);
        if (end - i >= s->n && !memcmp(hit, s->p, s->n)) {
            if (done < i && !ses_pieces_put(out, (uint32_t)done, (uint32_t)i, -1, e)) return false;
            done = i += s->n;
        } else {
            i++;
        }
    }
    return done == end || ses_pieces_put(out, (uint32_t)done, (uint32_t)end, -1, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    return ses_pieces_split(in, out, split_piece, self, e);
}

const ses_stage ses_stage_pre_char_delimiter = {
    .type = "CharDelimiterSplit", .kind = SES_PRE_TOKENIZER, .open = open, .save = save, .split = split
};
