/* StripAccents: removes combining marks. Accents are separate marks only after NFD or NFKD. */
#include "text/stage/shared/transform.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_norm_strip_accents; /* no settings */
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    (void)self;
    size_t copied = begin; /* copied up to here */
    for (size_t i = begin; i < end;) {
        if ((unsigned char)in->byte[i] < 0x80) {
            i++;
            continue;
        }
        uint32_t cp;
        size_t len = ses_utf8_next(in->byte + i, &cp);
        if (ses_cp_is(cp, SES_CP_MARK9)) {
            if (!ses_text_copy(out, in, copied, i, e)) return false;
            copied = i + len;
        }
        i += len;
    }
    return ses_text_copy(out, in, copied, end, e);
}

static bool changes(const void *self, const char *p, size_t n)
{
    (void)self;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += ses_utf8_next(p + i, &cp);
        if (cp >= 0x80 && ses_cp_is(cp, SES_CP_MARK9)) return true;
    }
    return false;
}

const ses_stage ses_stage_norm_strip_accents = {
    .type = "StripAccents", .kind = SES_NORMALIZER, .open = open, .normalize = normalize, .changes = changes
};
