/* Appends transformed characters to a text and assigns their source ranges. */
#include "transform.h"

/* Advance by n characters, at most to the end. */
static void consume(ses_transform *t, size_t n)
{
    for (; n && t->at < t->end; n--) {
        uint32_t cp;
        t->at += ses_utf8_next(t->in->byte + t->at, &cp);
    }
}

bool ses_transform_put(ses_transform *t, uint32_t cp, int32_t change, ses_err *e)
{
    if (!ses_text_reserve(t->out, 4, e)) return false;
    ses_offset from = { t->in->base, t->in->base };
    if (change <= 0 && t->at < t->end)
        from = t->in->from[t->at];
    else if (t->at > t->begin)
        from = t->in->from[t->at - 1];
    ses_text_put_char_reserved(t->out, cp, from);
    if (change <= 0) consume(t, 1 + (size_t) - (int64_t)change);
    return true;
}

bool ses_transform_changes(ses_transform *t, const ses_changes *c, ses_err *e)
{
    for (size_t i = 0; i < c->n; i++)
        if (!ses_transform_put(t, c->item[i].cp, c->item[i].change, e)) return false;
    return true;
}

bool ses_transform_copy(ses_transform *t, size_t n, ses_err *e)
{
    if (!ses_text_copy(t->out, t->in, t->at, t->at + n, e)) return false;
    t->at += n;
    return true;
}
