/* BPEDecoder: replaces the end-of-word suffix by a space; by nothing in the last token. */
#include "text/stage/shared/rewrite_strings.h"

typedef struct self_type {
    ses_string suffix;
} self_type;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    self_type *d = ses_arena_array(mem, 1, sizeof *d, e);
    return d && ses_setting_string(settings, "suffix", NULL, mem, &d->suffix, e) ? d : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    const self_type *d = self;
    ses_json_member_stringn(w, "suffix", d->suffix.p, d->suffix.n);
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    const self_type *d = self;
    for (size_t i = 0; i < s->n; i++) {
        s->string[i] =
            ses_replace_all(s->string[i], d->suffix, (ses_string){ " ", i + 1 < s->n }, &s->mem, e);
        if (!s->string[i].p) return false;
    }
    return true;
}

const ses_stage ses_stage_dec_bpe = {
    .type = "BPEDecoder", .kind = SES_DECODER, .open = open, .save = save, .decode = decode
};
