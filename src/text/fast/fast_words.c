/* Fast path for word-local pipelines: opening, and finding positions to split at. */
#include "fast_words.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "text/spm/spm_norm.h"
#include "text/stage/norm_replace.h"
#include "text/stage/shared/metaspace.h"
#include "text/vocab/bpe.h"

#include <string.h>

/* ---- splitting into chunks ---- */

uint64_t ses_words_spaces_ref(const char *p)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++) mask |= (uint64_t)(p[i] == ' ') << i;
    return mask;
}

/* Whether the characters around the space at `at` (not both ASCII) are safe to split between. */
static bool is_split_safe_around(const ses_words_fast *f, ses_words_work *w, const char *text, size_t at,
                                 bool *yes, ses_err *e)
{
    size_t before = at - 1;
    uint32_t cp;
    while (ses_utf8_continues(text[before])) before--;
    ses_utf8_next(text + before, &cp);
    if (!ses_words_split_safe(f, w, cp, yes, e)) return false;
    if (!*yes) return true;
    ses_utf8_next(text + at + 1, &cp);
    return ses_words_split_safe(f, w, cp, yes, e);
}

/* List the spaces of text[*at, end) to split at, up to the capacity of the list. *at: position to continue
 * from; a character precedes it. */
static bool list_chunks(const ses_words_fast *f, ses_words_work *w, const char *text, size_t *at, size_t end,
                        size_t *count, ses_err *e)
{
    size_t n = *count, pos = *at;
    for (; pos + 1 < end && n <= SES_WORDS_MAX_CHUNKS; pos += 64) {
        size_t left = end - 1 - pos; /* the last byte is not a split position */
        uint64_t mask;
        if (left >= 64) {
            mask = f->spaces(text + pos);
        } else {
            char rest[64] = { 0 };
            memcpy(rest, text + pos, left);
            mask = f->spaces(rest);
        }
        for (; mask; mask &= mask - 1) {
            size_t i = pos + (size_t)__builtin_ctzll(mask);
            uint8_t a = f->split_safe[(uint8_t)text[i - 1]], b = f->split_safe[(uint8_t)text[i + 1]];
            bool yes = a & b & 1;
            if (a && b && !yes && !is_split_safe_around(f, w, text, i, &yes, e)) return false;
            w->chunk_start[n] = (uint32_t)i;
            n += yes;
        }
    }
    *at = pos;
    *count = n;
    return true;
}

/* Whether the character at the start of a text is split-safe, and therefore never removed. */
static bool is_split_safe_at(const ses_words_fast *f, ses_words_work *w, const char *text, size_t *at,
                             bool *yes, ses_err *e)
{
    uint32_t cp;
    size_t here = *at;
    *at += ses_utf8_next(text + here, &cp);
    if (cp < 0x80) return *yes = f->split_safe[cp] == 1, true;
    return ses_words_split_safe(f, w, cp, yes, e);
}

/* Whether the first chunk is independent of the rest. HF Tokenizers may shift all later offsets if a
 * normalizer removes the first character. A split-safe character is kept, if no rule merges it with its
 * neighbor. */
static bool first_is_independent(const ses_words_fast *f, ses_words_work *w, const char *text, size_t begin,
                                 size_t end, bool *yes, ses_err *e)
{
    size_t at = begin;
    if (!is_split_safe_at(f, w, text, &at, yes, e)) return false;
    bool more = at < end;
    if (*yes && more && (uint8_t)text[at] < 0x80) return true;
    if (*yes && more && !is_split_safe_at(f, w, text, &at, yes, e)) return false;
    if (*yes && more) return true;
    return ses_words_context_free(f, w, (ses_string){ text + begin, end - begin }, false, true, yes, e);
}

static bool encode_span(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t begin,
                        size_t all, ses_err *e)
{
    const ses_words_fast *f = self;
    ses_words_work *w = work;
    ses_words_put_fn *put = f->spm ? ses_words_spm_put : f->put;
    size_t end = all;
    while (f->spm && f->spm_norm->remove_extra_whitespaces && end > begin + 1 && text[end - 1] == ' ') end--;
    const uint32_t ends[2] = { (uint32_t)begin, (uint32_t)end };
    ses_token_buf start = k->tokens;
    size_t at = begin + 1, count = 1;
    bool good = true, dependent = false, first = true;
    w->chunk_start[0] = (uint32_t)begin;
    if (f->spm) ses_words_spm_begin(f, w, k, begin);
    while (good && !dependent) {
        if (!list_chunks(f, w, text, &at, end, &count, e)) return false;
        bool last = at + 1 >= end;
        if (first && !f->spm && count > 1 &&
            !first_is_independent(f, w, text, begin, w->chunk_start[1], &good, e))
            return false;
        first = false;
        if (!good) break;
        if (last) w->chunk_start[count] = (uint32_t)end;
        if (!put(f, w, k, text, ends, 0, last ? count : count - 1, &dependent, e)) return false;
        if (last && !dependent)
            return k->tokens.n_words += f->spm != NULL, true; /* the whole text was one word */
        w->chunk_start[0] = w->chunk_start[count - 1];
        count = 1;
    }
    ses_encode_ctx_rewind(k, start.n, start.n_words);
    return ses_encode_by_stages(k, text, begin, all, NULL, e);
}

/* Clear both caches if the positions of the word store are exhausted. */
static void clear_if_exhausted(ses_words_work *w)
{
    if (!ses_word_store_exhausted(&w->store)) return;
    ses_word_store_clear(&w->store);
    memset(w->cache, 0, ((size_t)2 << SES_WORDS_CACHE_BITS) * sizeof *w->cache);
}

static bool encode(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t n, ses_err *e)
{
    const ses_words_fast *f = self;
    ses_words_work *w = work;
    if (!n) return true;
    clear_if_exhausted(w);
    w->n = n;
    if (!f->roots.n || !ses_added_any(&f->roots, &f->t->added, text, n))
        return encode_span(f, w, k, text, 0, n, e);
    if (f->has_single_word) return ses_encode_by_stages(k, text, 0, n, NULL, e);
    return ses_added_for_each_span(&f->t->added, encode_span, f, w, k, text, n, e);
}

/* ---- opening ---- */

static bool has_space_or_non_ascii(ses_string s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((uint8_t)s.p[i] <= ' ' || (uint8_t)s.p[i] >= 0x80) return true;
    return false;
}

static bool equals(ses_string s, const char *text) { return s.n == strlen(text) && !memcmp(s.p, text, s.n); }

/* A Replace must match white space only, or nothing with white space. */
static bool fits_replace(const ses_replace *r, ses_words_fast *f)
{
    f->needs_context_check |= r->pattern.is_regex || has_space_or_non_ascii(r->content);
    f->may_create_spaces |= !r->pattern.is_regex && has_space_or_non_ascii(r->content);
    if (!r->pattern.is_regex) return r->pattern.text.n && !has_space_or_non_ascii(r->pattern.text);
    return equals(r->pattern.text, " {2,}") || equals(r->pattern.text, "\\s{2,}|[\\n\\r\\t]") ||
           equals(r->pattern.text, "\\s+");
}

/* Normalizers that depend only on single characters, grapheme clusters, or white space. */
static bool fits_normalizers(const ses_stage_list *s, ses_words_fast *f)
{
    static const ses_stage *const known[] = {
        &ses_stage_norm_bert,  &ses_stage_norm_lowercase,     &ses_stage_norm_nfc,
        &ses_stage_norm_nfd,   &ses_stage_norm_nfkc,          &ses_stage_norm_nfkd,
        &ses_stage_norm_nmt,   &ses_stage_norm_precompiled,   &ses_stage_norm_replace,
        &ses_stage_norm_strip, &ses_stage_norm_strip_accents,
    };
    for (size_t i = 0; i < s->n; i++) {
        const ses_stage *stage = s->step[i].stage;
        bool fits = false;
        for (size_t j = 0; j < SES_LEN(known); j++) fits |= stage == known[j];
        f->needs_context_check |= stage == &ses_stage_norm_strip;
        if (!fits) return false;
        if (stage == &ses_stage_norm_replace && !fits_replace(s->step[i].self, f)) return false;
    }
    return true;
}

/* The first pre-tokenizer must split at every space; the others refine its pieces. */
static bool fits_pre_tokenizers(const ses_stage_list *s)
{
    static const ses_stage *const known[] = {
        &ses_stage_pre_whitespace_split, &ses_stage_pre_whitespace, &ses_stage_pre_bert,
        &ses_stage_pre_metaspace,        &ses_stage_pre_digits,     &ses_stage_pre_punctuation,
    };
    for (size_t i = 0; i < s->n; i++) {
        bool fits = false;
        for (size_t j = 0; j < (i ? SES_LEN(known) : 4); j++) fits |= s->step[i].stage == known[j];
        if (!fits) return false;
        if (s->step[i].stage == &ses_stage_pre_metaspace && !((const ses_metaspace *)s->step[i].self)->split)
            return false;
    }
    return s->n > 0;
}

/* Models that yield at least one token per word. */
static bool fits_model(const ses_stage_instance *s)
{
    if (s->stage == &ses_stage_model_bpe) return ((const ses_bpe *)s->self)->unk_id >= 0;
    return s->stage == &ses_stage_model_unigram || s->stage == &ses_stage_model_wordlevel ||
           s->stage == &ses_stage_model_wordpiece;
}

static bool applies(const ses_tokenizer *t, ses_words_fast *f)
{
    return fits_normalizers(&t->steps[SES_NORMALIZER], f) &&
           fits_pre_tokenizers(&t->steps[SES_PRE_TOKENIZER]) && fits_model(&t->model);
}

static void work_free(void *work)
{
    ses_words_work *w = work;
    if (!w) return;
    ses_free(w->cache);
    ses_word_store_close(&w->store);
    ses_free(w->split_safe);
    ses_token_list_free(&w->raw);
    for (size_t i = 0; i < SES_LEN(w->text); i++) ses_text_free(&w->text[i]);
    ses_free(w);
}

static void *work_new(const void *self, ses_err *e)
{
    (void)self;
    ses_words_work *w = ses_alloc(sizeof *w, e);
    if (!w) return NULL;
    w->cache = ses_alloc_array((size_t)2 << SES_WORDS_CACHE_BITS, sizeof *w->cache, e);
    w->split_safe = ses_alloc_array(0x10000, 1, e);
    if (w->cache && w->split_safe && ses_word_store_open(&w->store, e)) return w;
    work_free(w);
    return NULL;
}

/* Find which ASCII characters are split-safe, and whether the pipeline can be split at all: "a" and " a"
 * must stay unchanged. */
static bool classify_ascii(ses_words_fast *f, bool *fits, ses_err *e)
{
    if (f->spm) { /* checked for each chunk instead */
        memset(f->split_safe, 1, 128);
        memset(f->split_safe + 128, 2, 128);
        f->split_safe[' '] = 0;
        return true;
    }
    ses_words_work *w = ses_alloc(sizeof *w, e);
    bool ok = w && ses_words_unchanged(f, w, fits, e);
    for (uint32_t c = 0; ok && *fits && c < 128; c++) {
        bool yes;
        ok = ses_words_split_safe(f, w, c, &yes, e);
        f->split_safe[c] = yes;
    }
    memset(f->split_safe + 128, 2, 128);
    work_free(w);
    return ok;
}

static bool open(const ses_tokenizer *t, ses_isa isa, ses_arena *mem, void **self, ses_err *e)
{
    bool fits = true;
    ses_words_fast *f = ses_arena_array(mem, 1, sizeof *f, e);
    if (!f) return false;
    if (!ses_words_spm_open(f, t) && (f->spm || !applies(t, f))) return true;
    if (t->added.normal.n) return true; /* tokens in normalized text may span several chunks */
    f->t = t;
    f->surface = t->model.stage->text_named_id ? t->model.stage->text_named_id(t->model.self) : -1;
    for (size_t i = 0; i < t->added.n; i++) f->has_single_word |= t->added.token[i].single_word;
    if (!classify_ascii(f, &fits, e)) return false;
    if (!fits) return true;
    f->hash = ses_word_hash_new();
    ses_added_first_bytes_init(&f->roots, &t->added);
    f->spaces = ses_words_spaces_ref;
    f->put = ses_words_put_ref;
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (isa >= SES_ISA_AVX2) f->spaces = ses_words_spaces_avx2, f->put = ses_words_put_avx2;
#else
    (void)isa;
#endif
    *self = f;
    return true;
}

const ses_fast_path ses_fast_path_words = { .name = "words",
                                            .open = open,
                                            .work_new = work_new,
                                            .work_free = work_free,
                                            .no_empty_pieces = true,
                                            .encode = encode };
