/* Strip: removes white space at the start, the end, or both. */
#include "text/stage/shared/transform.h"

#include "base/unicode/utf8.h"

typedef struct strip {
    bool left, right;
} strip;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    strip *s = ses_arena_array(mem, 1, sizeof *s, e);
    if (!s || !ses_setting_bool(settings, "strip_left", true, &s->left, e) ||
        !ses_setting_bool(settings, "strip_right", true, &s->right, e))
        return NULL;
    return s;
}

static void save(const void *self, ses_json_writer *w)
{
    const strip *s = self;
    ses_json_member_bool(w, "strip_left", s->left);
    ses_json_member_bool(w, "strip_right", s->right);
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    const strip *s = self;
    uint32_t cp;
    while (s->left && begin < end) {
        size_t n = ses_utf8_next(in->byte + begin, &cp);
        if (!ses_cp_is(cp, SES_CP_SPACE)) break;
        begin += n;
    }
    while (s->right && begin < end) {
        size_t last = end - 1;
        while (ses_utf8_continues(in->byte[last])) last--;
        ses_utf8_next(in->byte + last, &cp);
        if (!ses_cp_is(cp, SES_CP_SPACE)) break;
        end = last;
    }
    return ses_text_copy(out, in, begin, end, e);
}

const ses_stage ses_stage_norm_strip = {
    .type = "Strip", .kind = SES_NORMALIZER, .open = open, .save = save, .normalize = normalize
};
