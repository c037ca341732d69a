/* Prepend: adds a string before any non-empty text. The string gets the source range of the first
 * character. */
#include "text/stage/shared/transform.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_string *s = ses_arena_array(mem, 1, sizeof *s, e);
    if (!s || !ses_setting_string(settings, "prepend", NULL, mem, s, e)) return NULL;
    return s;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_string *s = self;
    ses_json_member_stringn(w, "prepend", s->p, s->n);
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    const ses_string *s = self;
    if (begin == end) return true;
    uint32_t cp;
    size_t len = ses_utf8_next(in->byte + begin, &cp);
    if (s->n)
        return ses_text_put(out, s->p, s->n, in->from[begin], e) && ses_text_copy(out, in, begin, end, e);
    /* HF Tokenizers gives the first character an empty range, even if the prepended string is empty. */
    ses_offset none = { in->base, in->base };
    return ses_text_put(out, in->byte + begin, len, none, e) && ses_text_copy(out, in, begin + len, end, e);
}

const ses_stage ses_stage_norm_prepend = {
    .type = "Prepend", .kind = SES_NORMALIZER, .open = open, .save = save, .normalize = normalize
};
