/* Extended grapheme clusters by the rules GB3 to GB13 of Unicode Standard Annex 29. */
#include "unicode.h"
#include "utf8.h"

/* State of the cluster so far. */
typedef struct cluster {
    ses_gb last;
    bool odd;        /* it ends in an odd number of regional indicators */
    bool pictograph; /* it ends in a pictograph and its extensions */
    bool consonant;  /* it ends in a consonant and its extensions */
    bool linked;     /* these contain a linker */
} cluster;

static cluster after(const cluster *c, ses_gb g)
{
    bool extends = g == SES_GB_EXTEND || g == SES_GB_LINKER;
    cluster next = { .last = g };
    next.odd = g == SES_GB_REGIONAL && !(c->last == SES_GB_REGIONAL && c->odd);
    next.pictograph = g == SES_GB_PICTOGRAPH || (c->pictograph && c->last != SES_GB_ZWJ &&
                                                 (extends || g == SES_GB_ZWNJ || g == SES_GB_ZWJ));
    next.consonant = g == SES_GB_CONSONANT || (c->consonant && (extends || g == SES_GB_ZWJ));
    next.linked = g != SES_GB_CONSONANT && next.consonant && (c->linked || g == SES_GB_LINKER);
    return next;
}

static bool is_control(ses_gb g) { return g == SES_GB_CR || g == SES_GB_LF || g == SES_GB_CONTROL; }

/* Hangul syllables: L (L | V | LV | LVT), (LV | V) (V | T), (LVT | T) T. */
static bool is_syllable(ses_gb a, ses_gb g)
{
    switch (a) {
    case SES_GB_L: return g == SES_GB_L || g == SES_GB_V || g == SES_GB_LV || g == SES_GB_LVT;
    case SES_GB_LV:
    case SES_GB_V: return g == SES_GB_V || g == SES_GB_T;
    case SES_GB_LVT:
    case SES_GB_T: return g == SES_GB_T;
    default: return false;
    }
}

static bool joins(const cluster *c, ses_gb g)
{
    if (is_control(c->last) || is_control(g)) return c->last == SES_GB_CR && g == SES_GB_LF;
    if (c->last == SES_GB_PREPEND || is_syllable(c->last, g)) return true;
    switch (g) {
    case SES_GB_EXTEND:
    case SES_GB_ZWNJ:
    case SES_GB_ZWJ:
    case SES_GB_LINKER:
    case SES_GB_SPACING: return true;
    case SES_GB_CONSONANT: return c->linked;
    case SES_GB_PICTOGRAPH: return c->pictograph && c->last == SES_GB_ZWJ;
    case SES_GB_REGIONAL: return c->last == SES_GB_REGIONAL && c->odd;
    default: return false;
    }
}

size_t ses_grapheme_len(const char *p, size_t n)
{
    if (!n) return 0;
    uint32_t cp;
    size_t i = ses_utf8_next(p, &cp);
    cluster c = { .last = SES_GB_OTHER };
    c = after(&c, ses_cp(cp)->gb);
    while (i < n) {
        size_t k = ses_utf8_next(p + i, &cp);
        ses_gb g = ses_cp(cp)->gb;
        if (!joins(&c, g)) break;
        c = after(&c, g);
        i += k;
    }
    return i;
}
