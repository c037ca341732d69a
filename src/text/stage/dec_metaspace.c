/* Metaspace as a decoder: replaces the visible space by a space and removes it from the first token, where
 * encoding added it. */
#include "text/stage/shared/metaspace.h"
#include "text/stage/shared/rewrite_strings.h"

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    const ses_metaspace *m = self;
    ses_string mark = { m->mark, m->n_mark };
    for (size_t i = 0; i < s->n; i++) {
        bool drop = !i && m->prepend != SES_PREPEND_NEVER;
        s->string[i] = ses_replace_all(s->string[i], mark, (ses_string){ " ", !drop }, &s->mem, e);
        if (!s->string[i].p) return false;
    }
    return true;
}

const ses_stage ses_stage_dec_metaspace = {
    .type = "Metaspace",
    .kind = SES_DECODER,
    .open = ses_metaspace_open,
    .save = ses_metaspace_save,
    .decode = decode,
};
