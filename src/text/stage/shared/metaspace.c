/* Settings of Metaspace: reading and saving. */
#include "metaspace.h"

#include "base/str.h"
#include "base/unicode/utf8.h"
#include "rewrite_strings.h"

#include <string.h>

static const char *const scheme[] = { "first", "never", "always" };

/* Files written before 2024 have add_prefix_space; false is valid only with prepend_scheme "never", as in
 * HF Tokenizers. */
static bool read_prepend(ses_metaspace *m, const ses_json *settings, ses_err *e)
{
    ses_string s = { NULL, 0 };
    bool prefix;
    m->prepend = SES_PREPEND_ALWAYS;
    if (ses_json_get(settings, "prepend_scheme")) {
        s.p = ses_json_string(ses_json_get(settings, "prepend_scheme"), &s.n);
        size_t i = 0;
        while (i < SES_LEN(scheme) && !(s.p && strlen(scheme[i]) == s.n && !memcmp(scheme[i], s.p, s.n))) i++;
        if (i == SES_LEN(scheme))
            return ses_fail(e, SES_EFORMAT,
                            "key \"prepend_scheme\" must be \"first\", \"never\" or \"always\"");
        m->prepend = (ses_prepend_scheme)i;
    }
    if (!ses_setting_bool(settings, "add_prefix_space", true, &prefix, e)) return false;
    if (!prefix && m->prepend != SES_PREPEND_NEVER)
        return ses_fail(e, SES_EFORMAT, "\"add_prefix_space\": false requires \"prepend_scheme\": \"never\"");
    return true;
}

void *ses_metaspace_open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_metaspace *m = ses_arena_array(mem, 1, sizeof *m, e);
    uint32_t c = 0;
    if (!m || !ses_setting_char(settings, "replacement", &c, e) || !read_prepend(m, settings, e) ||
        !ses_setting_bool(settings, "split", true, &m->split, e))
        return NULL;
    m->n_mark = (uint32_t)ses_utf8_encode(c, m->mark);
    return m;
}

void ses_metaspace_save(const void *self, ses_json_writer *w)
{
    const ses_metaspace *m = self;
    ses_json_member_stringn(w, "replacement", m->mark, m->n_mark);
    ses_json_member_string(w, "prepend_scheme", scheme[m->prepend]);
    ses_json_member_bool(w, "split", m->split);
}
