/* Append: adds a string after any non-empty text. The string gets the source range of the last character. */
#include "text/stage.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_string *s = ses_arena_array(mem, 1, sizeof *s, e);
    return s && ses_setting_string(settings, "append", NULL, mem, s, e) ? s : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_string *s = self;
    ses_json_member_stringn(w, "append", s->p, s->n);
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    const ses_string *s = self;
    if (begin == end) return true;
    return ses_text_copy(out, in, begin, end, e) && ses_text_put(out, s->p, s->n, in->from[end - 1], e);
}

const ses_stage ses_stage_norm_append = {
    .type = "Append", .kind = SES_NORMALIZER, .open = open, .save = save, .normalize = normalize
};
