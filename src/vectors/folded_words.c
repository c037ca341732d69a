/* Words without regard to case. */
#include "folded_words.h"

#include "base/alloc.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <string.h>

/* Characters whose upper case is not the one of their lower case: str.upper maps them to other letters. */
static const struct {
    uint32_t cp;
    const char *folded;
} special[] = {
    { 0xB5, "\xce\xbc" },  { 0xDF, "ss" },
    { 0x131, "i" },        { 0x149, "\xca\xbcn" },
    { 0x17F, "s" },        { 0x3C2, "\xcf\x83" },
    { 0xFB00, "ff" },      { 0xFB01, "fi" },
    { 0xFB02, "fl" },      { 0xFB03, "ffi" },
    { 0xFB04, "ffl" },     { 0xFB05, "st" },
    { 0xFB06, "st" },      { 0x212A, "\xe2\x84\xaa" },
    { 0x130, "\xc4\xb0" },
};

static void fold_char(ses_buf *out, const char *s, size_t n, uint32_t cp)
{
    uint32_t lower[2];
    char utf8[4];
    for (size_t i = 0; i < SES_LEN(special); i++)
        if (special[i].cp == cp) {
            ses_buf_puts(out, special[i].folded);
            return;
        }
    if (cp > 0x10FFFF) { /* not UTF-8 */
        ses_buf_append(out, s, n);
        return;
    }
    size_t k = ses_cp_lower(cp, lower);
    for (size_t i = 0; i < k; i++) ses_buf_append(out, utf8, ses_utf8_encode(lower[i], utf8));
}

void ses_fold_word(ses_buf *out, ses_string w, ses_fold fold)
{
    out->len = 0;
    if (fold == SES_FOLD_NONE) {
        ses_buf_append(out, w.p, w.n);
        return;
    }
    for (size_t i = 0, n = 1; i < w.n; i += n) {
        uint32_t cp = (unsigned char)w.p[i];
        n = 1;
        if (cp >= 'A' && cp <= 'Z')
            ses_buf_put(out, (char)(cp - 'A' + 'a'));
        else if (cp < 0x80 || fold == SES_FOLD_ASCII)
            ses_buf_put(out, w.p[i]);
        else {
            n = ses_char_at(w.p + i, w.n - i, &cp);
            fold_char(out, w.p + i, n, cp);
        }
    }
}

bool ses_folded_words_build(ses_folded_words *f, const ses_vectors *v, int64_t n, ses_fold fold, ses_err *e)
{
    ses_buf word = { 0 };
    *f = (ses_folded_words){ .fold = fold, .n = n };
    f->first = ses_alloc_array((size_t)n, sizeof *f->first, e);
    bool ok = f->first && ses_strmap_reserve(&f->map, (size_t)n, e);
    for (int64_t i = 0; ok && i < n; i++) {
        int64_t known;
        bool fresh;
        ses_fold_word(&word, ses_vectors_word(v, i), fold);
        ok = ses_buf_ok(&word, e);
        if (ok && ses_strmap_find(&f->map, word.data, word.len, &known)) {
            f->first[i] = known;
            continue;
        }
        char *key = ok ? ses_arena_strndup(&f->arena, word.data, word.len, e) : NULL;
        ok = key && ses_strmap_insert(&f->map, key, word.len, i, &fresh, e);
        f->first[i] = i;
    }
    ses_buf_free(&word);
    if (!ok) ses_folded_words_free(f);
    return ok;
}

void ses_folded_words_free(ses_folded_words *f)
{
    ses_strmap_free(&f->map);
    ses_arena_free(&f->arena);
    ses_free(f->first);
    *f = (ses_folded_words){ 0 };
}

int64_t ses_folded_words_find(const ses_folded_words *f, ses_string word, ses_buf *scratch)
{
    int64_t i;
    ses_fold_word(scratch, word, f->fold);
    return scratch->data && ses_strmap_find(&f->map, scratch->data, scratch->len, &i) ? i : -1;
}
