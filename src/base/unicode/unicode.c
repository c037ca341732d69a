/* Properties of code points, lower case, and normalization forms (Unicode Standard Annex 15). */
#include "unicode.h"

#include "base/alloc.h"
#include "unicode_tables.h"
#include "utf8.h"

#include <string.h>

static bool is_old(ses_nf form) { return form >= SES_NFC9; }
static bool is_compat(ses_nf form) { return (form & 3) >= SES_NFKC; }
static bool composes(ses_nf form) { return (form & 1) == 0; }

/* A character added after Unicode 9 is unassigned in Unicode 9: no combining class, no decomposition. */
static uint8_t class_of(const ses_cp_info *c, bool old)
{
    return old && c->flags & SES_CP_AFTER9 ? 0 : c->ccc;
}
static uint32_t flags_of(const ses_cp_info *c, bool old)
{
    return old && c->flags & SES_CP_AFTER9 ? 0 : c->flags;
}

size_t ses_cp_lower(uint32_t cp, uint32_t out[2])
{
    if (cp == 0x130) return out[0] = 'i', out[1] = 0x307, 2; /* the only character with two */
    int32_t delta = ses_lower_delta[ses_lower_row[(size_t)ses_lower_page[cp >> 7] << 7 | (cp & 127)]];
    out[0] = (uint32_t)((int32_t)cp + delta);
    return 1;
}

uint8_t ses_cp_script(uint32_t cp)
{
    uint8_t s = ses_script_row[(size_t)ses_script_page[cp >> 7] << 7 | (cp & 127)];
    return s == ses_script_han[1] || s == ses_script_han[2] ? ses_script_han[0] : s;
}

/* ---- Hangul syllables, computed (Unicode 3.12) ---- */

enum { S0 = 0xAC00, L0 = 0x1100, V0 = 0x1161, T0 = 0x11A7, NL = 19, NV = 21, NT = 28, NS = NL * NV * NT };

static size_t hangul_decompose(uint32_t cp, uint32_t out[3])
{
    uint32_t s = cp - S0;
    out[0] = L0 + s / (NV * NT);
    out[1] = V0 + s % (NV * NT) / NT;
    if (s % NT == 0) return 2;
    out[2] = T0 + s % NT;
    return 3;
}

static uint32_t hangul_compose(uint32_t a, uint32_t b)
{
    if (a - L0 < NL && b - V0 < NV) return S0 + ((a - L0) * NV + (b - V0)) * NT;
    if (a - S0 < NS && (a - S0) % NT == 0 && b > T0 && b - T0 < NT) return a + (b - T0);
    return 0;
}

/* ---- single characters and pairs ---- */

size_t ses_cp_decompose(uint32_t cp, ses_nf form, uint32_t out[SES_MAX_DECOMPOSITION])
{
    if (cp - S0 < NS) return hangul_decompose(cp, out);
    if (is_old(form) && ses_cp_is(cp, SES_CP_AFTER9)) return out[0] = cp, 1;
    const uint32_t *seq = NULL;
    uint32_t at = is_compat(form) ? ses_compat_row[(size_t)ses_compat_page[cp >> 6] << 6 | (cp & 63)] : 0;
    if (at)
        seq = ses_compat_pool + at;
    else if ((at = ses_canon_row[(size_t)ses_canon_page[cp >> 6] << 6 | (cp & 63)]) != 0)
        seq = ses_canon_pool + at;
    else
        return out[0] = cp, 1;
    size_t n = 0;
    do out[n++] = *seq & 0x1FFFFF;
    while (!(*seq++ >> 31) && n < SES_MAX_DECOMPOSITION);
    return n;
}

uint32_t ses_cp_compose(uint32_t a, uint32_t b)
{
    if (!ses_cp_is(b, SES_CP_COMPOSES_SECOND)) return 0;
    uint32_t hangul = hangul_compose(a, b);
    if (hangul) return hangul;
    size_t low = 0, high = ses_pairs; /* triples a, b, composite in order */
    while (low < high) {
        size_t mid = (low + high) / 2;
        const uint32_t *p = ses_pair + 3 * mid;
        if (p[0] == a && p[1] == b) return p[2];
        if (p[0] < a || (p[0] == a && p[1] < b))
            low = mid + 1;
        else
            high = mid;
    }
    return 0;
}

/* ---- changes ---- */

static bool reserve(ses_changes *c, size_t more, ses_err *e)
{
    if (more <= c->cap - c->n) return true;
    size_t cap;
    if (!ses_add_size(c->n, more, &cap) || !ses_add_size(cap, cap / 2, &cap) || !ses_add_size(cap, 64, &cap))
        return ses_fail(e, SES_ENOMEM, "text too long");
    ses_change *item = ses_realloc_array(c->item, cap, sizeof *item, e);
    if (!item) return false;
    c->item = item;
    c->cap = cap;
    return true;
}

bool ses_changes_put(ses_changes *c, uint32_t cp, int32_t change, ses_err *e)
{
    if (c->n == c->cap && !reserve(c, 1, e)) return false;
    c->item[c->n++] = (ses_change){ cp, change };
    return true;
}

void ses_changes_free(ses_changes *c)
{
    ses_free(c->item);
    *c = (ses_changes){ 0 };
}

/* ---- normal forms ---- */

/* A prefix is normalized if no character changes, marks are in order, and nothing can compose. Boundaries are
 * before characters without SES_CP_NO_BOUNDARY. */
size_t ses_nf_normalized_prefix(ses_nf form, const char *p, size_t n)
{
    const bool old = is_old(form);
    const uint32_t no_boundary = (uint32_t)SES_CP_NO_BOUNDARY << (form & 3);
    const uint32_t qc_no = (uint32_t)SES_CP_QC_NO << (form & 3);
    const uint32_t stop = composes(form) ? qc_no | SES_CP_COMPOSES_SECOND : qc_no;
    size_t boundary = 0, i = 0; /* boundary: the last one so far */
    uint8_t last = 0;           /* class of the previous character */
    while (i < n) {
        if ((unsigned char)p[i] < 0x80) {
            boundary = i++;
            last = 0;
            continue;
        }
        uint32_t cp;
        size_t k = ses_utf8_next(p + i, &cp);
        const ses_cp_info *c = ses_cp(cp);
        uint32_t flags = flags_of(c, old);
        uint8_t ccc = class_of(c, old);
        if (!(flags & no_boundary)) boundary = i;
        if (flags & stop || (ccc && ccc < last)) return boundary;
        last = ccc;
        i += k;
    }
    return n;
}

size_t ses_nf_segment(ses_nf form, const char *p, size_t n)
{
    const bool old = is_old(form);
    const uint32_t no_boundary = (uint32_t)SES_CP_NO_BOUNDARY << (form & 3);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t k = ses_utf8_next(p + i, &cp);
        if (i && !(flags_of(ses_cp(cp), old) & no_boundary)) return i;
        i += k;
    }
    return n;
}

/* State of one ses_nf_normalize. */
typedef struct run {
    ses_changes *out;
    size_t begin, marks; /* start of its output; start of the marks that are not sorted yet */
    ses_nf form;
    bool old;
} run;

/* Stable sort by combining class: insertion sort for short runs, counting sort for long ones, so that text of
 * marks only takes linear time. */
static bool sort_marks(const run *r, ses_err *e)
{
    ses_changes *c = r->out;
    size_t n = c->n - r->marks;
    if (n < 2) return true;
    if (n <= 16) {
        ses_change *a = c->item + r->marks;
        for (size_t i = 1; i < n; i++) {
            ses_change x = a[i];
            uint8_t ccc = class_of(ses_cp(x.cp), r->old);
            size_t j = i;
            for (; j && class_of(ses_cp(a[j - 1].cp), r->old) > ccc; j--) a[j] = a[j - 1];
            a[j] = x;
        }
        return true;
    }
    size_t at[256] = { 0 };
    if (!reserve(c, n, e)) return false; /* scratch space after the items; c->n is unchanged */
    ses_change *a = c->item + r->marks, *scratch = c->item + c->n;
    for (size_t i = 0; i < n; i++) at[class_of(ses_cp(a[i].cp), r->old)]++;
    for (size_t k = 0, sum = 0; k < 256; k++) {
        size_t count = at[k];
        at[k] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) scratch[at[class_of(ses_cp(a[i].cp), r->old)]++] = a[i];
    memcpy(a, scratch, n * sizeof *a);
    return true;
}

static bool add(run *r, uint32_t cp, ses_err *e)
{
    uint32_t seq[SES_MAX_DECOMPOSITION];
    size_t n = ses_cp_decompose(cp, r->form, seq);
    for (size_t i = 0; i < n; i++) {
        if (!class_of(ses_cp(seq[i]), r->old)) {
            if (!sort_marks(r, e)) return false;
            r->marks = r->out->n + 1;
        }
        if (!ses_changes_put(r->out, seq[i], i > 0, e)) return false;
    }
    return true;
}

/* Composes, in place, each starter with the following characters that are not blocked. */
static void compose(const run *r)
{
    ses_changes *c = r->out;
    size_t w = r->begin, starter = SIZE_MAX;
    int last = -1; /* class of the last character kept after the starter; -1: none */
    for (size_t i = r->begin; i < c->n; i++) {
        ses_change x = c->item[i];
        int ccc = class_of(ses_cp(x.cp), r->old);
        if (starter != SIZE_MAX && last < ccc) {
            uint32_t whole = ses_cp_compose(c->item[starter].cp, x.cp);
            if (whole && !(r->old && ses_cp_is(whole, SES_CP_AFTER9))) {
                c->item[starter].cp = whole;
                c->item[starter].change += x.change - 1;
                continue;
            }
        }
        if (!ccc) starter = w;
        last = ccc ? ccc : -1;
        c->item[w++] = x;
    }
    c->n = w;
}

static bool finish(run *r, ses_err *e)
{
    if (!sort_marks(r, e)) return false;
    if (composes(r->form)) compose(r);
    return true;
}

bool ses_nf_normalize(ses_nf form, const char *p, size_t n, ses_changes *out, ses_err *e)
{
    run r = { out, out->n, out->n, form, is_old(form) };
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += ses_utf8_next(p + i, &cp);
        if (!add(&r, cp, e)) return false;
    }
    return finish(&r, e);
}

bool ses_nf_normalize_points(ses_nf form, const uint32_t *cp, size_t n, ses_changes *out, ses_err *e)
{
    run r = { out, out->n, out->n, form, is_old(form) };
    for (size_t i = 0; i < n; i++)
        if (!add(&r, cp[i], e)) return false;
    return finish(&r, e);
}
