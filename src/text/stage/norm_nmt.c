/* Nmt: SentencePiece's cleaning for translation. Removes some control characters and replaces some
 * invisible characters by spaces. */
#include "text/stage/shared/transform.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_norm_nmt; /* no settings */
}

static bool is_removed(uint32_t cp)
{
    return (cp >= 0x1 && cp <= 0x8) || cp == 0xB || (cp >= 0xE && cp <= 0x1F) || cp == 0x7F || cp == 0x8F ||
           cp == 0x9F;
}

static bool becomes_space(uint32_t cp)
{
    return cp == '\t' || cp == '\n' || cp == '\f' || cp == '\r' || cp == 0x1680 ||
           (cp >= 0x200B && cp <= 0x200F) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 || cp == 0xFEFF ||
           cp == 0xFFFD;
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    (void)self;
    size_t copied = begin; /* copied up to here */
    for (size_t i = begin; i < end;) {
        uint32_t cp;
        size_t len = ses_utf8_next(in->byte + i, &cp);
        bool drop = is_removed(cp);
        if (drop || becomes_space(cp)) {
            if (!ses_text_copy(out, in, copied, i, e) ||
                (!drop && !ses_text_put(out, " ", 1, in->from[i], e)))
                return false;
            copied = i + len;
        }
        i += len;
    }
    return ses_text_copy(out, in, copied, end, e);
}

const ses_stage ses_stage_norm_nmt = {
    .type = "Nmt", .kind = SES_NORMALIZER, .open = open, .normalize = normalize
};
