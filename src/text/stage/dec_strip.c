/* Strip: removes a character up to `start` times at the start and up to `stop` times at the end of each
 * token. */
#include "base/unicode/utf8.h"
#include "text/stage/shared/rewrite_strings.h"

#include <string.h>

typedef struct self_type {
    uint32_t content;
    int64_t start, stop;
} self_type;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    self_type *d = ses_arena_array(mem, 1, sizeof *d, e);
    bool ok = d && ses_setting_char(settings, "content", &d->content, e) &&
              ses_setting_int(settings, "start", 0, 0, INT64_MAX, &d->start, e) &&
              ses_setting_int(settings, "stop", 0, 0, INT64_MAX, &d->stop, e);
    return ok ? d : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    const self_type *d = self;
    ses_setting_put_char(w, "content", d->content);
    ses_json_member_int(w, "start", d->start);
    ses_json_member_int(w, "stop", d->stop);
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    const self_type *d = self;
    char mark[4];
    size_t n = ses_utf8_encode(d->content, mark);
    for (size_t i = 0; i < s->n; i++) {
        ses_string *t = &s->string[i];
        size_t begin = 0, end = t->n;
        for (int64_t k = 0; k < d->start && begin + n <= t->n && !memcmp(t->p + begin, mark, n); k++)
            begin += n;
        int64_t k = 0;
        for (; k < d->stop && end >= n && !memcmp(t->p + end - n, mark, n); k++) end -= n;
        if (begin > end || (!end && k < d->stop)) /* HF Tokenizers panics */
            return ses_fail(e, SES_EARG, "Strip: token %zu has fewer characters than must be removed", i);
        *t = (ses_string){ t->p + begin, end - begin };
    }
    return true;
}

const ses_stage ses_stage_dec_strip = {
    .type = "Strip", .kind = SES_DECODER, .open = open, .save = save, .decode = decode
};
