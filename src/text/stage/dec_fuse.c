/* Fuse: joins all tokens into one string. */
#include "base/alloc.h"
#include "text/stage.h"

#include <string.h>

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings;
    return ses_arena_array(mem, 1, 1, e);
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    (void)self;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!ses_add_size(n, s->string[i].n, &n))
            return ses_fail(e, SES_ENOMEM, "the decoded text is too long");
    char *p = ses_arena_array(&s->mem, n, 1, e);
    if (!p) return false;
    for (size_t i = 0; i < s->n; at += s->string[i++].n)
        if (s->string[i].n) memcpy(p + at, s->string[i].p, s->string[i].n);
    s->n = 0;
    return ses_strings_put(s, p, n, e);
}

const ses_stage ses_stage_dec_fuse = { .type = "Fuse", .kind = SES_DECODER, .open = open, .decode = decode };
