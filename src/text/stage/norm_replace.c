/* Replace: replaces every match of a pattern. The replacement gets the source range of the match's last
 * character; for an empty match, of the character before it. */
#include "norm_replace.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_replace *r = ses_arena_array(mem, 1, sizeof *r, e);
    if (!r || !ses_setting_string(settings, "content", NULL, mem, &r->content, e) ||
        !ses_pattern_open(&r->pattern, settings, "pattern", mem, e))
        return NULL;
    return r;
}

static void close(void *self) { ses_pattern_close(&((ses_replace *)self)->pattern); }

static void save(const void *self, ses_json_writer *w)
{
    const ses_replace *r = self;
    ses_pattern_save(&r->pattern, "pattern", w);
    ses_json_member_stringn(w, "content", r->content.p, r->content.n);
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    const ses_replace *r = self;
    if (begin == end) return true;
    ses_regex_scan s;
    size_t done = 0; /* relative to begin */
    bool ok = ses_regex_start(&s, r->pattern.regex, in->byte + begin, end - begin, e);
    while (ok && (ok = ses_regex_next(&s, e)) && s.found) {
        ses_offset from = s.end ? in->from[begin + s.end - 1] : (ses_offset){ in->base, in->base };
        ok = ses_text_copy(out, in, begin + done, begin + s.begin, e) &&
             ses_text_put(out, r->content.p, r->content.n, from, e);
        done = s.end;
    }
    ses_regex_stop(&s);
    return ok && ses_text_copy(out, in, begin + done, end, e);
}

/* Failures count as a change: normalize reports them. */
static bool changes(const void *self, const char *p, size_t n)
{
    const ses_replace *r = self;
    ses_err own = { 0 };
    ses_regex_scan s;
    bool found = !ses_regex_start(&s, r->pattern.regex, p, n, &own) || !ses_regex_next(&s, &own) || s.found;
    ses_regex_stop(&s);
    return found;
}

const ses_stage ses_stage_norm_replace = { .type = "Replace",
                                           .kind = SES_NORMALIZER,
                                           .open = open,
                                           .close = close,
                                           .save = save,
                                           .normalize = normalize,
                                           .changes = changes };
