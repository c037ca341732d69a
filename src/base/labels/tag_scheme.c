/* Label schemes: see tag_scheme.h. */
#include "tag_scheme.h"

#include <string.h>

const char *const ses_tag_scheme_names[3] = { "none", "bio", "bioes" };

ses_tag ses_tag_parse(const char *label, size_t n)
{
    if (n == 1 && *label == 'O') return (ses_tag){ 'O', label + 1, 0 };
    if (n < 3 || label[1] != '-' || !strchr("BIESLU", label[0])) return (ses_tag){ 0, label, n };
    char prefix = label[0] == 'L' ? 'E' : label[0] == 'U' ? 'S' : label[0];
    return (ses_tag){ prefix, label + 2, n - 2 };
}

static bool same_type(const ses_tag *a, const ses_tag *b)
{
    return a->n == b->n && !memcmp(a->type, b->type, a->n);
}

bool ses_tag_allowed(ses_tag_scheme s, const ses_tag *from, const ses_tag *to)
{
    if (s == SES_TAGS_PLAIN) return true;
    bool open = s == SES_TAGS_BIOES && from && (from->prefix == 'B' || from->prefix == 'I');
    bool continues = to && (to->prefix == 'I' || to->prefix == 'E');
    if (open) return continues && same_type(from, to);
    bool inside = from && s == SES_TAGS_BIO && (from->prefix == 'B' || from->prefix == 'I');
    return !continues || (inside && same_type(from, to));
}

/* conlleval: does a span begin at t, after p? */
static bool begins(const ses_tag *p, const ses_tag *t)
{
    if (t->prefix == 'O' || !t->prefix) return false;
    if (t->prefix == 'B' || t->prefix == 'S') return true;
    return !p || (p->prefix != 'B' && p->prefix != 'I') || !same_type(p, t);
}

/* Does the span of p end before t? */
static bool ends(const ses_tag *p, const ses_tag *t)
{
    return !t || p->prefix == 'E' || p->prefix == 'S' || t->prefix == 'O' || !t->prefix || begins(p, t);
}

static char prefix_in(ses_tag_scheme to, bool first, bool last)
{
    if (to == SES_TAGS_BIO) return first ? 'B' : 'I';
    return first && last ? 'S' : first ? 'B' : last ? 'E' : 'I';
}

size_t ses_tags_convert(ses_tag *tag, size_t n, ses_tag_scheme to, bool bioes)
{
    ses_tag before = { 0 }; /* the label before, as it was */
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        ses_tag now = tag[i];
        if (now.prefix && now.prefix != 'O') {
            bool first = begins(i ? &before : NULL, &now), last = ends(&now, i + 1 < n ? &tag[i + 1] : NULL);
            char expected = prefix_in(SES_TAGS_BIOES, first, last);
            wrong += bioes && now.prefix != expected;
            if (to != SES_TAGS_PLAIN) tag[i].prefix = prefix_in(to, first, last);
        }
        before = now;
    }
    return wrong;
}
