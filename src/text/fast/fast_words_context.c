/* Fast path for word-local pipelines: tests whether normalizers treat text next to a space independently. */
#include "fast_words.h"

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <string.h>

/* Append the normalized form of `in` to out. */
static bool normalize(const ses_words_fast *f, ses_words_work *w, ses_text *in, ses_text *out, ses_err *e)
{
    const ses_stage_list *steps = &f->t->steps[SES_NORMALIZER];
    if (!steps->n) return ses_text_copy(out, in, 0, in->n, e);
    uint32_t base = in->n ? in->from[0].begin : 0;
    for (size_t i = 0; i < steps->n; i++) {
        ses_text *to = i + 1 == steps->n ? out : &w->text[3 + (i & 1)];
        if (to != out) to->n = 0;
        in->base = base;
        if (!steps->step[i].stage->normalize(steps->step[i].self, in, 0, in->n, to, e)) return false;
        in = to;
    }
    return true;
}

/* Whether the parts normalize the same together as one by one, source ranges included. */
static bool normalizes_separately(const ses_words_fast *f, ses_words_work *w, const ses_string *part,
                                  size_t n, bool *yes, ses_err *e)
{
    ses_text *in = &w->text[0], *whole = &w->text[1], *parts = &w->text[2];
    size_t at = 0;
    whole->n = parts->n = 0;
    for (size_t i = 0; i < n; at += part[i++].n) {
        in->n = 0;
        size_t before = parts->n;
        if (!ses_text_put_self(in, part[i].p, part[i].n, at, e) || !normalize(f, w, in, parts, e))
            return false;
        if (part[i].n && parts->n == before) return *yes = false, true;
    }
    in->n = 0;
    for (size_t i = 0, begin = 0; i < n; begin += part[i++].n)
        if (!ses_text_put_self(in, part[i].p, part[i].n, begin, e)) return false;
    if (!normalize(f, w, in, whole, e)) return false;
    *yes = whole->n == parts->n && !memcmp(whole->byte, parts->byte, whole->n) &&
           !memcmp(whole->from, parts->from, whole->n * sizeof *whole->from);
    return true;
}

/* A normalizer error (a broken character map, for example) counts as no; it occurs again on the text and
 * is reported there. */
static bool is_independent(const ses_words_fast *f, ses_words_work *w, const ses_string *part, size_t n,
                           bool *yes, ses_err *e)
{
    ses_err own = { 0 };
    if (normalizes_separately(f, w, part, n, yes, &own)) return true;
    *yes = false;
    return own.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "%s", own.msg);
}

/* Letters, numbers, punctuation and symbols that no rule merges with or removes next to a space. */
static bool is_plain_char(uint32_t cp)
{
    const ses_cp_info *i = ses_cp(cp);
    bool solid = ses_gc_in(cp, SES_GCS_L | SES_GCS_N | SES_GCS_P | SES_GCS_S);
    bool joins = i->gb >= SES_GB_CR && i->gb <= SES_GB_PREPEND;
    return solid && !i->ccc && !joins && i->gb != SES_GB_LINKER &&
           !(i->flags & (SES_CP_SPACE | SES_CP_OTHER8)) && cp != 0x2581;
}

bool ses_words_split_safe(const ses_words_fast *f, ses_words_work *w, uint32_t cp, bool *yes, ses_err *e)
{
    if (cp < 0x10000 && w->split_safe && w->split_safe[cp]) return *yes = w->split_safe[cp] == 1, true;
    char c[4];
    ses_string self = { c, ses_utf8_encode(cp, c) };
    *yes = false;
    if (cp >= 0x10000) return !f->spm || ses_words_spm_split_safe(f, w, self, yes, e);
    if (f->spm) {
        if (!ses_words_spm_split_safe(f, w, self, yes, e)) return false;
        w->split_safe[cp] = *yes ? 1 : 2;
        return true;
    }
    ses_string two[2][2] = { { self, { " a", 2 } }, { { "a", 1 }, { " ", 1 } } };
    char spaced[5] = { ' ' };
    memcpy(spaced + 1, c, self.n);
    two[1][1] = (ses_string){ spaced, self.n + 1 };
    *yes = is_plain_char(cp);
    for (int i = 0; *yes && i < 2; i++)
        if (!is_independent(f, w, two[i], 2, yes, e)) return false;
    if (*yes) { /* and it does not become white space */
        ses_text *t = &w->text[2];
        uint32_t first;
        *yes = t->n > 2 && t->byte[1] == ' ';
        if (*yes) ses_utf8_next(t->byte + 2, &first);
        *yes = *yes && is_plain_char(first);
    }
    if (w->split_safe) w->split_safe[cp] = *yes ? 1 : 2;
    return true;
}

bool ses_words_context_free(const ses_words_fast *f, ses_words_work *w, ses_string chunk, bool left,
                            bool right, bool *yes, ses_err *e)
{
    ses_string part[3] = { { "a", left ? 1 : 0 }, chunk, { " a", right ? 2 : 0 } };
    return is_independent(f, w, part, 3, yes, e);
}

bool ses_words_unchanged(const ses_words_fast *f, ses_words_work *w, bool *yes, ses_err *e)
{
    static const ses_string part[] = { { "a", 1 }, { " a", 2 }, { " a", 2 } };
    static const char all[] = "a a a";
    if (!is_independent(f, w, part, 3, yes, e)) return false;
    *yes = *yes && w->text[1].n == 5 && !memcmp(w->text[1].byte, all, 5);
    for (uint32_t i = 0; *yes && i < 5; i++)
        *yes = w->text[1].from[i].begin == i && w->text[1].from[i].end == i + 1;
    return true;
}
