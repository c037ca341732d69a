/* BertNormalizer: removes control characters, replaces white space by a space, puts spaces around CJK
 * characters, removes accents, converts to lower case. One pass; every character keeps its source range. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "text/stage/shared/transform.h"

typedef struct bert {
    bool clean, cjk, strip, lower;
    bool strip_set; /* strip_accents is given; null: same as lowercase */
} bert;

enum { MOVES_D = SES_CP_QC_NO << SES_NFD, JOINS_D = SES_CP_NO_BOUNDARY << SES_NFD };

/* Maximum bytes that one character becomes: two spaces and four characters. */
enum { MAX_BYTES = 32 };

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    bert *b = ses_arena_array(mem, 1, sizeof *b, e);
    if (!b || !ses_setting_bool(settings, "clean_text", true, &b->clean, e) ||
        !ses_setting_bool(settings, "handle_chinese_chars", true, &b->cjk, e) ||
        !ses_setting_bool(settings, "lowercase", true, &b->lower, e) ||
        !ses_setting_bool(settings, "strip_accents", b->lower, &b->strip, e))
        return NULL;
    b->strip_set = !ses_setting_absent(settings, "strip_accents");
    return b;
}

static void save(const void *self, ses_json_writer *w)
{
    const bert *b = self;
    ses_json_member_bool(w, "clean_text", b->clean);
    ses_json_member_bool(w, "handle_chinese_chars", b->cjk);
    ses_json_put_key(w, "strip_accents");
    if (b->strip_set)
        ses_json_put_bool(w, b->strip);
    else
        ses_json_put_null(w);
    ses_json_member_bool(w, "lowercase", b->lower);
}

static bool is_removed(const bert *b, uint32_t cp, uint32_t flags)
{
    return b->clean && (flags & SES_CP_OTHER8 || cp == 0xFFFD);
}

/* The caller has reserved the capacity. */
static void emit_lower(const bert *b, ses_text *out, uint32_t cp, ses_offset from)
{
    uint32_t low[2] = { cp };
    size_t k = b->lower ? ses_cp_lower(cp, low) : 1;
    for (size_t i = 0; i < k; i++) ses_text_put_char_reserved(out, low[i], from);
}

static bool continues_run(uint32_t flags) { return flags & JOINS_D && !(flags & SES_CP_AFTER9); }

/* ---- mark runs: combining marks that remain when accents are removed ----
 *
 * NFD sorts the marks of a starter by combining class. HF Tokenizers gives the source range of the k-th
 * source character to the k-th mark after sorting, not counting later parts of a decomposition. The order
 * is visible only if some marks remain. */

typedef struct mark_run {
    /* the run before sorting; change: byte offset of the character from the start of the run */
    ses_changes source;
    ses_changes form;
    uint32_t *cp;
    size_t cap;
} mark_run;

static void mark_run_free(mark_run *k)
{
    ses_changes_free(&k->source);
    ses_changes_free(&k->form);
    ses_free(k->cp);
}

/* Start of the NFD run (a starter and its marks) that contains the character at i. */
static size_t run_start(const bert *b, const ses_text *in, size_t begin, size_t i)
{
    for (;;) {
        uint32_t cp;
        ses_utf8_next(in->byte + i, &cp);
        uint32_t flags = ses_cp(cp)->flags;
        if (i == begin || !(continues_run(flags) || is_removed(b, cp, flags))) return i;
        do i--;
        while (ses_utf8_continues(in->byte[i]));
    }
}

/* Collect the run from `first` on into k; *end: its end. */
static bool collect(const bert *b, const ses_text *in, size_t first, size_t *end, mark_run *k, ses_err *e)
{
    size_t i = first;
    k->source.n = k->form.n = 0;
    while (i < *end) {
        uint32_t cp;
        size_t len = ses_utf8_next(in->byte + i, &cp);
        uint32_t flags = ses_cp(cp)->flags;
        if (!is_removed(b, cp, flags)) {
            if (k->source.n && !continues_run(flags)) break;
            if (flags & SES_CP_CJK && b->cjk) cp = ' '; /* the space after it */
            if (!ses_changes_put(&k->source, cp, (int32_t)(i - first), e)) return false;
        }
        i += len;
    }
    *end = i;
    return true;
}

/* The character at *i belongs to a mark run: emit the remaining characters of the run that are not emitted
 * yet; *i moves past the run. */
static bool emit_mark_run(const bert *b, const ses_text *in, size_t begin, size_t end, size_t *i,
                          ses_text *out, mark_run *k, ses_err *e)
{
    size_t first = run_start(b, in, begin, *i), stop = end;
    if (!collect(b, in, first, &stop, k, e)) return false;
    if (k->cap < k->source.n) {
        uint32_t *cp = ses_realloc_array(k->cp, k->source.n, sizeof *cp, e);
        if (!cp) return false;
        k->cp = cp;
        k->cap = k->source.n;
    }
    for (size_t j = 0; j < k->source.n; j++) k->cp[j] = k->source.item[j].cp;
    if (!ses_nf_normalize_points(SES_NFD9, k->cp, k->source.n, &k->form, e)) return false;

    /* A starter before the marks was already emitted. */
    bool starter_done = k->source.n && first + (size_t)k->source.item[0].change < *i;
    ses_offset from = { 0 };
    for (size_t j = 0, consumed = 0; j < k->form.n; j++) {
        uint32_t cp = k->form.item[j].cp;
        if (k->form.item[j].change == 0) from = in->from[first + (size_t)k->source.item[consumed++].change];
        uint32_t flags = ses_cp(cp)->flags;
        if (flags & SES_CP_MN8 || (starter_done && !continues_run(flags))) continue;
        if (!ses_text_reserve(out, MAX_BYTES, e)) return false;
        emit_lower(b, out, cp, from);
    }
    *i = stop;
    return true;
}

/* ---- main pass ---- */

static void emit_non_ascii(const bert *b, uint32_t cp, uint32_t flags, ses_offset from, ses_text *out)
{
    if (is_removed(b, cp, flags)) return;
    if (b->clean && flags & SES_CP_SPACE) cp = ' ';
    bool apart = b->cjk && flags & SES_CP_CJK;
    if (apart) ses_text_put_char_reserved(out, ' ', from);
    if (b->strip && flags & (MOVES_D | SES_CP_MN8)) {
        uint32_t part[SES_MAX_DECOMPOSITION];
        size_t n = ses_cp_decompose(cp, SES_NFD9, part);
        for (size_t j = 0; j < n; j++)
            if (!ses_cp_is(part[j], SES_CP_MN8)) emit_lower(b, out, part[j], from);
    } else {
        emit_lower(b, out, cp, from);
    }
    if (apart) ses_text_put_char_reserved(out, ' ', from);
}

/* Copy ASCII up to the first other byte; return its position. The caller has reserved the capacity. */
static size_t emit_ascii(const bert *b, const ses_text *in, size_t i, size_t end, ses_text *out)
{
    char *byte = out->byte;
    size_t n = out->n;
    for (; i < end; i++) {
        unsigned char c = (unsigned char)in->byte[i];
        if (c >= 0x80) break;
        if (b->clean && (c < ' ' || c == 0x7F)) {
            if (c != '\t' && c != '\n' && c != '\r') continue;
            c = ' ';
        }
        if (b->lower && c >= 'A' && c <= 'Z') c |= 0x20;
        byte[n] = (char)c;
        out->from[n++] = in->from[i];
    }
    out->n = n;
    return i;
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    const bert *b = self;
    mark_run k = { 0 };
    bool ok = true;
    for (size_t i = begin; ok && i < end;) {
        ok = ses_text_reserve(out, end - i + MAX_BYTES, e);
        if (!ok) break;
        i = emit_ascii(b, in, i, end, out);
        while (i < end && (unsigned char)in->byte[i] >= 0x80 && out->cap - out->n >= MAX_BYTES) {
            uint32_t cp;
            size_t len = ses_utf8_next(in->byte + i, &cp);
            uint32_t flags = ses_cp(cp)->flags;
            if (b->strip && flags & SES_CP_NFD_NON_MN8 && !is_removed(b, cp, flags)) {
                ok = emit_mark_run(b, in, begin, end, &i, out, &k, e);
                break;
            }
            emit_non_ascii(b, cp, flags, in->from[i], out);
            i += len;
        }
    }
    mark_run_free(&k);
    return ok;
}

const ses_stage ses_stage_norm_bert = {
    .type = "BertNormalizer", .kind = SES_NORMALIZER, .open = open, .save = save, .normalize = normalize
};
