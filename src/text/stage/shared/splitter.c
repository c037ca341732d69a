/* Splits pieces at delimiters, with the five behaviors of SplitDelimiterBehavior in HF Tokenizers. */
#include "splitter.h"

#include "base/str.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <string.h>

static const char *const name[] = { [SES_SPLIT_REMOVED] = "Removed",
                                    [SES_SPLIT_ISOLATED] = "Isolated",
                                    [SES_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                    [SES_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                    [SES_SPLIT_CONTIGUOUS] = "Contiguous" };

const char *ses_split_behavior_name(ses_split_behavior how) { return name[how]; }

bool ses_setting_split_behavior(const ses_json *settings, const char *key, ses_split_behavior def,
                                ses_split_behavior *out, ses_err *e)
{
    *out = def;
    if (ses_setting_absent(settings, key)) return true;
    size_t n = 0;
    const char *s = ses_json_string(ses_json_get(settings, key), &n);
    for (size_t i = 0; s && i < SES_LEN(name); i++) {
        if (!ses_equal(s, n, name[i])) continue;
        *out = (ses_split_behavior)i;
        return true;
    }
    return ses_fail(
        e, SES_EFORMAT,
        "key \"%s\" must be Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous, not %s", key,
        s ? ses_quoted_of(s, n).s : ses_json_type_name(ses_json_type_of(ses_json_get(settings, key))));
}

static bool put(ses_splitter *c, size_t begin, size_t end, ses_err *e)
{
    return begin == end || ses_pieces_put(c->out, (uint32_t)begin, (uint32_t)end, -1, e);
}

/* Whether this part merges with the held part. `delimiter` of the splitter is the kind of the last part. */
static bool merges(const ses_splitter *c, bool delimiter)
{
    switch (c->how) {
    case SES_SPLIT_MERGED_WITH_PREVIOUS: return delimiter && !c->delimiter;
    case SES_SPLIT_MERGED_WITH_NEXT: return !delimiter && c->delimiter;
    case SES_SPLIT_CONTIGUOUS: return delimiter == c->delimiter;
    default: return false;
    }
}

bool ses_splitter_add(ses_splitter *c, size_t begin, size_t end, bool delimiter, ses_err *e)
{
    if (c->how == SES_SPLIT_REMOVED) return delimiter || put(c, begin, end, e);
    if (c->how == SES_SPLIT_ISOLATED) return put(c, begin, end, e);
    bool ok = true;
    if (c->held && merges(c, delimiter)) {
        c->end = end;
    } else {
        ok = !c->held || put(c, c->begin, c->end, e);
        c->begin = begin;
        c->end = end;
        c->held = true;
    }
    c->delimiter = delimiter;
    return ok;
}

bool ses_splitter_finish(ses_splitter *c, ses_err *e)
{
    bool ok = !c->held || put(c, c->begin, c->end, e);
    c->held = c->delimiter = false;
    return ok;
}

bool ses_pieces_split(const ses_pieces *in, ses_pieces *out, ses_split_fn *split, const void *self,
                      ses_err *e)
{
    for (size_t i = 0; i < in->n; i++) {
        const ses_piece *p = &in->piece[i];
        bool ok = p->id >= 0 ? ses_pieces_put(out, p->begin, p->end, p->id, e)
                             : split(self, &in->text, p->begin, p->end, out, e);
        if (!ok) return false;
    }
    return true;
}

bool ses_split_at_property(const ses_text *text, size_t begin, size_t end, uint32_t flags,
                           ses_split_behavior how, ses_pieces *out, ses_err *e)
{
    ses_splitter c = { .out = out, .how = how };
    size_t done = begin;
    for (size_t i = begin, len; i < end; i += len) {
        uint32_t cp;
        len = ses_utf8_next(text->byte + i, &cp);
        if (!ses_cp_is(cp, flags)) continue;
        if ((done < i && !ses_splitter_add(&c, done, i, false, e)) ||
            !ses_splitter_add(&c, i, i + len, true, e))
            return false;
        done = i + len;
    }
    return (done == end || ses_splitter_add(&c, done, end, false, e)) && ses_splitter_finish(&c, e);
}
