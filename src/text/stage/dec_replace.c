/* Replace as a decoder: replaces every match of a pattern in each token. */
#include "base/str.h"
#include "text/stage/shared/pattern.h"

typedef struct replace {
    ses_pattern pattern;
    ses_string content;
} replace;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    replace *r = ses_arena_array(mem, 1, sizeof *r, e);
    bool ok = r && ses_setting_string(settings, "content", NULL, mem, &r->content, e) &&
              ses_pattern_open(&r->pattern, settings, "pattern", mem, e);
    return ok ? r : NULL;
}

static void close(void *self) { ses_pattern_close(&((replace *)self)->pattern); }

static void save(const void *self, ses_json_writer *w)
{
    const replace *r = self;
    ses_pattern_save(&r->pattern, "pattern", w);
    ses_json_member_stringn(w, "content", r->content.p, r->content.n);
}

static bool rewrite(const replace *r, ses_string *s, ses_buf *buf, ses_arena *mem, ses_err *e)
{
    ses_regex_scan scan;
    size_t done = 0;
    buf->len = 0;
    bool any = false, ok = ses_regex_start(&scan, r->pattern.regex, s->p, s->n, e);
    while (ok && (ok = ses_regex_next(&scan, e)) && scan.found) {
        ses_buf_append(buf, s->p + done, scan.begin - done);
        ses_buf_append(buf, r->content.p, r->content.n);
        done = scan.end;
        any = true;
    }
    ses_regex_stop(&scan);
    if (!ok || !any) return ok;
    ses_buf_append(buf, s->p + done, s->n - done);
    if (!ses_buf_ok(buf, e)) return false;
    *s = (ses_string){ ses_arena_strndup(mem, buf->len ? buf->data : "", buf->len, e), buf->len };
    return s->p != NULL;
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    ses_buf buf = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++)
        if (s->string[i].n) ok = rewrite(self, &s->string[i], &buf, &s->mem, e);
    ses_buf_free(&buf);
    return ok;
}

const ses_stage ses_stage_dec_replace = {
    .type = "Replace", .kind = SES_DECODER, .open = open, .close = close, .save = save, .decode = decode
};
