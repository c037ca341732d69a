/* Lowercase: character by character, without the special rule for a final sigma. */
#include "text/stage/shared/transform.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_norm_lowercase; /* no settings */
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    (void)self;
    for (size_t i = begin; i < end;) {
        if (!ses_text_reserve(out, end - i + 8, e)) return false;
        for (; i < end && (unsigned char)in->byte[i] < 0x80; i++) {
            char c = in->byte[i];
            out->byte[out->n] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
            out->from[out->n++] = in->from[i];
        }
        while (i < end && (unsigned char)in->byte[i] >= 0x80 && out->cap - out->n >= 8) {
            uint32_t cp, low[2];
            size_t len = ses_utf8_next(in->byte + i, &cp), n = ses_cp_lower(cp, low);
            for (size_t k = 0; k < n; k++) ses_text_put_char_reserved(out, low[k], in->from[i]);
            i += len;
        }
    }
    return true;
}

static bool changes(const void *self, const char *p, size_t n)
{
    (void)self;
    for (size_t i = 0; i < n;) {
        uint32_t cp, low[2];
        i += ses_utf8_next(p + i, &cp);
        if (cp < 0x80 ? cp >= 'A' && cp <= 'Z' : ses_cp_lower(cp, low) != 1 || low[0] != cp) return true;
    }
    return false;
}

const ses_stage ses_stage_norm_lowercase = {
    .type = "Lowercase", .kind = SES_NORMALIZER, .open = open, .normalize = normalize, .changes = changes
};
