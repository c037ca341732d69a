/* Fast path for byte-level BPE: opening, and splitting the text into windows. */
#include "fast_byte_bpe.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "text/regex/scan_gpt2.h"
#include "text/vocab/byte_chars.h"

#include <string.h>

/* ---- spans ---- */

/* Encode a match that is longer than a window. */
static bool encode_long_match(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                              const char *text, size_t *pos, size_t end, ses_err *e)
{
    size_t n = ses_scan_gpt2(text + *pos, end - *pos), at = *pos;
    *pos += n;
    return ses_byte_bpe_encode_long(f, w, k, text + at, n, (uint32_t)at, e);
}

/* Encode a word that starts with an inserted space: like any other word, then shift the offsets after the
 * space by one. The space gets the range of the first character, which has `first` bytes. */
static bool encode_spaced(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                          ses_string word, size_t at, size_t first, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    size_t from = r->n;
    if (word.n > SES_WORD_STORE_LONG) {
        if (!ses_byte_bpe_encode_long(f, w, k, word.p, word.n, (uint32_t)at, e)) return false;
    } else {
        memcpy(w->text, word.p, word.n);
        w->begin[0] = 0;
        w->begin[1] = (uint16_t)word.n;
        if (!ses_token_buf_reserve(r, word.n + SES_BYTE_BPE_SLACK, e) || !f->encode_words(f, w, k, at, 1, e))
            return false;
    }
    for (size_t i = from; i < r->n; i++) {
        ses_offset *o = &r->byte_offset[i];
        if (o->end == at + 1)
            *o = (ses_offset){ (uint32_t)at, (uint32_t)(at + first) };
        else
            *o = (ses_offset){ o->begin > at ? o->begin - 1 : o->begin, o->end - 1 };
    }
    return true;
}

/* First match of a span that does not start with a space, with add_prefix_space. */
static bool encode_first_with_space(const ses_byte_bpe_fast *f, ses_byte_bpe_work *w, ses_encode_ctx *k,
                                    const char *text, size_t *pos, size_t end, ses_err *e)
{
    size_t n = 1, at = *pos, left = end - at;
    char *copy = NULL;
    ses_mark mark = ses_arena_mark(&k->scratch);
    for (size_t size = 256;; size *= 4) { /* copy enough text that the match ends inside */
        size_t have = left < size ? left : size;
        copy = ses_arena_alloc(&k->scratch, have + 1, e);
        if (!copy) return false;
        copy[0] = ' ';
        memcpy(copy + 1, text + at, have);
        n = ses_scan_gpt2(copy, have + 1);
        if (have == left || n + 8 < have) break;
    }
    uint32_t c;
    size_t first = ses_utf8_next(text + at, &c);
    bool ok = encode_spaced(f, w, k, (ses_string){ copy, n }, at, first, e);
    ses_arena_rewind(&k->scratch, mark);
    *pos += n - 1;
    return ok;
}

static bool encode_span(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t begin,
                        size_t end, ses_err *e)
{
    const ses_byte_bpe_fast *f = self;
    ses_byte_bpe_work *w = work;
    size_t pos = begin;
    if (f->prefix_space && text[pos] != ' ' && !encode_first_with_space(f, w, k, text, &pos, end, e))
        return false;
    while (pos < end) {
        size_t left = end - pos, n = left < SES_BYTE_BPE_WINDOW ? left : SES_BYTE_BPE_WINDOW;
        bool last = left <= SES_BYTE_BPE_WINDOW;
        memcpy(w->text, text + pos, n);
        memset(w->text + n, 0, 128);
        size_t count = ses_byte_bpe_find_matches(f, w, text + pos, left, last);
        if (!ses_token_buf_reserve(&k->tokens, n + SES_BYTE_BPE_SLACK, e)) return false;
        if (!count) {
            if (!encode_long_match(f, w, k, text, &pos, end, e)) return false;
            continue;
        }
        if (!f->encode_words(f, w, k, pos, count, e)) return false;
        pos += w->begin[count];
    }
    return true;
}

/* Clear both caches if the positions of the word store are exhausted. */
static void clear_if_exhausted(ses_byte_bpe_work *w)
{
    if (!ses_word_store_exhausted(&w->store)) return;
    ses_word_store_clear(&w->store);
    memset(w->cache, 0, ((size_t)2 << SES_BYTE_BPE_CACHE_BITS) * sizeof *w->cache);
}

static bool encode(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t n, ses_err *e)
{
    const ses_byte_bpe_fast *f = self;
    if (!n) return true;
    clear_if_exhausted(work);
    if (f->roots.n && ses_added_any(&f->roots, &f->t->added, text, n))
        return ses_added_for_each_span(&f->t->added, encode_span, f, work, k, text, n, e);
    return encode_span(f, work, k, text, 0, n, e);
}

/* ---- opening ---- */

static bool applies(const ses_tokenizer *t)
{
    const ses_stage_list *pre = &t->steps[SES_PRE_TOKENIZER];
    if (t->steps[SES_NORMALIZER].n || pre->n != 1 || pre->step[0].stage != &ses_stage_pre_byte_level)
        return false;
    if (t->model.stage != &ses_stage_model_bpe) return false;
    const ses_byte_level *b = pre->step[0].self;
    const ses_bpe *m = t->model.self;
    return b->use_regex && m->plain && m->unk_from < 0;
}

static const uint8_t *classify_code_points(ses_arena *mem, ses_err *e)
{
    uint8_t *plane = ses_arena_alloc(mem, 0x10000, e);
    for (uint32_t c = 0; plane && c < 0x10000; c++) {
        const ses_cp_info *info = ses_cp(c);
        uint32_t gc = 1u << info->gc;
        plane[c] = info->flags & SES_CP_SPACE ? SES_BYTE_BPE_SPACE
                   : gc & SES_GCS_L           ? SES_BYTE_BPE_LETTER
                   : gc & SES_GCS_N           ? SES_BYTE_BPE_NUMBER
                                              : SES_BYTE_BPE_OTHER;
    }
    return plane;
}

static bool open(const ses_tokenizer *t, ses_isa isa, ses_arena *mem, void **self, ses_err *e)
{
    if (!applies(t)) return true;
    ses_byte_bpe_fast *f = ses_arena_array(mem, 1, sizeof *f, e);
    if (!f) return false;
    f->t = t;
    f->m = t->model.self;
    f->prefix_space = ((const ses_byte_level *)t->steps[SES_PRE_TOKENIZER].step[0].self)->add_prefix_space;
    for (int b = 0; b < 256; b++) {
        f->id[b] = f->m->direct[ses_byte_char((uint8_t)b)];
        if (f->id[b] < 0) return true; /* a byte has no token: the stages have rules for this */
    }
    f->hash = ses_word_hash_new();
    f->char_class = classify_code_points(mem, e);
    if (!f->char_class) return false;
    ses_added_first_bytes_init(&f->roots, &t->added);
    f->classify = ses_byte_bpe_classify_ref;
    f->encode_words = ses_byte_bpe_encode_words_ref;
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (isa >= SES_ISA_AVX2)
        f->classify = ses_byte_bpe_classify_avx2, f->encode_words = ses_byte_bpe_encode_words_avx2;
    if (isa >= SES_ISA_AVX512) f->classify = ses_byte_bpe_classify_avx512;
#else
    (void)isa;
#endif
    *self = f;
    return true;
}

static void work_free(void *work)
{
    ses_byte_bpe_work *w = work;
    if (!w) return;
    ses_free(w->cache);
    ses_word_store_close(&w->store);
    ses_bpe_backtrack_close(&w->backtrack);
    ses_free(w);
}

static void *work_new(const void *self, ses_err *e)
{
    (void)self;
    ses_byte_bpe_work *w = ses_alloc(sizeof *w, e);
    if (!w) return NULL;
    w->cache = ses_alloc_array((size_t)2 << SES_BYTE_BPE_CACHE_BITS, sizeof *w->cache, e);
    if (w->cache && ses_word_store_open(&w->store, e)) return w;
    work_free(w);
    return NULL;
}

const ses_fast_path ses_fast_path_byte_bpe = { .name = "bytes",
                                               .open = open,
                                               .work_new = work_new,
                                               .work_free = work_free,
                                               .no_empty_pieces = true,
                                               .encode = encode };
