/* Fast path for BERT: opening, splitting the text into windows, and the parts that go through the stages. */
#include "fast_bert.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <string.h>

/* ---- windows ---- */

void ses_bert_classify_ref(const ses_bert_fast *f, ses_bert_work *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i += 64) {
        uint64_t space = 0, punct = 0, check = 0, inside = 0;
        for (size_t j = 0; j < 64 && i + j < n; j++) {
            uint8_t c = (uint8_t)text[i + j], bit = c < 128 ? (uint8_t)(1 << (c >> 4)) : 0;
            uint64_t one = (uint64_t)1 << j;
            inside |= one;
            if (f->space[c & 15] & bit) space |= one;
            if (f->punct[c & 15] & bit) punct |= one;
            if (f->check[c & 15] & bit || (c >= 128 && f->check_non_ascii)) check |= one;
            w->lowered[i + j] = (char)(f->lower && c >= 'A' && c <= 'Z' ? c + 32 : c);
        }
        w->word[i / 64] = ~(space | punct) & inside;
        w->punct[i / 64] = punct;
        w->check[i / 64] = check;
    }
}

static bool put_large(const ses_bert_large_entry *x, ses_token_buf *r, const char *key, uint32_t from)
{
    if (memcmp(x->key, key, sizeof x->key) && memcmp((++x)->key, key, sizeof x->key)) return false;
    uint32_t word = r->n_words - 1;
    for (size_t i = 0; i < x->n; i++) {
        word += x->starts >> i & 1;
        r->id[r->n] = x->id[i];
        r->byte_offset[r->n] = (ses_offset){ from + x->begin[i], from + x->end[i] };
        r->word_id[r->n++] = (int32_t)word;
    }
    r->n_words += x->words;
    return true;
}

static bool put_small(ses_token_buf *r, const ses_word_cache_entry *x, const char *key, uint32_t from)
{
    if (memcmp(x->key, key, 15) || x->key[15] != (uint8_t)key[SES_BERT_LONG]) return false;
    for (size_t i = 0; i < x->n; i++) {
        r->id[r->n] = x->id[i];
        r->byte_offset[r->n] = (ses_offset){ from + (x->range[i] >> 4), from + (x->range[i] & 15u) };
        r->word_id[r->n++] = (int32_t)r->n_words;
    }
    r->n_words++;
    return true;
}

bool ses_bert_encode_window_ref(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                                size_t base, size_t n, ses_err *e)
{
    size_t count = ses_bert_find_pieces(w, n);
    for (size_t i = 0; i < count; i++) {
        size_t at = w->begin[i], len = (size_t)w->end[i] - at + 1, non_ascii = 0;
        uint32_t from = (uint32_t)(base + at);
        if (len > SES_BERT_LONG) {
            if (!ses_bert_encode_long(f, w, k, text, base, at, len, e)) return false;
            continue;
        }
        char *key = w->key[0];
        memset(key, 0, sizeof w->key[0]);
        memcpy(key, w->lowered + at, len);
        for (size_t j = 0; j < len; j++) non_ascii |= (uint8_t)key[j] & 0x80u;
        key[SES_BERT_LONG] = (char)(len | non_ascii);
        ses_word_cache_entry *x = NULL;
        if (len <= SES_BERT_SHORT) {
            uint64_t half[2];
            memcpy(half, key, sizeof half);
            half[1] |= (uint64_t)(uint8_t)key[SES_BERT_LONG] << 56;
            x = &w->small[2 * (ses_word_hash16(&f->hash, half[0], half[1]) >> (64 - SES_BERT_SMALL_BITS))];
            if (put_small(&k->tokens, x, key, from) || put_small(&k->tokens, x + 1, key, from)) continue;
        }
        uint32_t slot = ses_bert_large_slot(f, key);
        if (!put_large(&w->large[slot], &k->tokens, key, from) &&
            !ses_bert_encode_miss(f, w, k, text, from, len, key, slot, x, e))
            return false;
    }
    return true;
}

static bool encode_pieces(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                          size_t base, size_t n, ses_err *e)
{
    return ses_token_buf_reserve(&k->tokens, n + SES_BERT_SLACK, e) &&
           f->encode_window(f, w, k, text, base, n, e);
}

typedef enum { NO_HIT, HIT, CONTEXT_HIT } hit;

static bool needs_context(const ses_added_token *t)
{
    bool has_space = false;
    for (size_t i = 0; i < t->content.n; i++) has_space |= (uint8_t)t->content.p[i] <= ' ';
    return t->lstrip || t->rstrip || t->single_word || has_space;
}

/* Whether an added token starts at `at`, or anything else the window code does not support. */
static hit check(const ses_bert_fast *f, const ses_bert_work *w, const char *text, size_t base, size_t at,
                 size_t n)
{
    const ses_added *a = &f->t->added;
    int32_t token = -1;
    uint8_t c = (uint8_t)text[base + at];
    if (c >= 128 ? f->normal : f->kind[c] == SES_BERT_REMOVED) return HIT;
    if (ses_matcher_longest(&a->raw, text + base + at, n - base - at, &token))
        return needs_context(&a->token[token]) ? CONTEXT_HIT : HIT;
    /* a token may extend past the window; then it counts as a match */
    size_t rest = SES_BERT_WINDOW - at;
    return f->normal && (rest < 64 || ses_matcher_longest(&a->normal, w->lowered + at, rest, &token))
               ? HIT
               : NO_HIT;
}

/* Whether [begin, end) contains an added token whose match depends on text outside the range. */
static bool has_context_token(const ses_bert_fast *f, const char *text, size_t begin, size_t end, size_t n)
{
    const ses_added *a = &f->t->added;
    int32_t token = -1;
    for (; f->context_tokens && begin < end; begin++)
        if (a->raw.root[(uint8_t)text[begin]] &&
            ses_matcher_longest(&a->raw, text + begin, n - begin, &token) && needs_context(&a->token[token]))
            return true;
    return false;
}

static hit find_hit(const ses_bert_fast *f, const ses_bert_work *w, const char *text, size_t base,
                    size_t stop, size_t n, size_t *at)
{
    for (size_t i = 0; i < (stop + 63) / 64; i++)
        for (uint64_t bits = w->check[i]; bits; bits &= bits - 1) {
            *at = 64 * i + (size_t)__builtin_ctzll(bits);
            hit h = *at < stop ? check(f, w, text, base, *at, n) : NO_HIT;
            if (h != NO_HIT) return h;
        }
    return NO_HIT;
}

static bool is_kind(const ses_bert_fast *f, char c, ses_bert_kind kind)
{
    return (uint8_t)c < 128 && f->kind[(uint8_t)c] == kind;
}

static bool encode_by_stages(ses_encode_ctx *k, const char *text, size_t begin, size_t end, ses_err *e)
{
    k->invalid_utf8 = ses_utf8_valid(text + begin, end - begin) != end - begin;
    return !k->invalid_utf8 && ses_encode_by_stages(k, text, begin, end, NULL, e);
}

/* A run of letters longer than a window: one piece; if it contains an added token, it goes through the
 * stages. */
static bool encode_long_piece(const ses_bert_fast *f, ses_bert_work *w, ses_encode_ctx *k, const char *text,
                              size_t *pos, size_t n, bool *context_tokens, ses_err *e)
{
    size_t begin = *pos, end = begin;
    bool non_ascii = f->normal;
    while (end < n && !is_kind(f, text[end], SES_BERT_SPACE) && !is_kind(f, text[end], SES_BERT_SINGLE)) {
        uint8_t c = (uint8_t)text[end];
        bool look = c < 128 ? f->check[c & 15] >> (c >> 4) & 1 : f->check_non_ascii;
        if (!non_ascii && look) non_ascii = check(f, w, text, end, 0, n) != NO_HIT;
        end++;
    }
    while (non_ascii && end < n && !is_kind(f, text[end], SES_BERT_SPACE)) end++;
    *pos = end;
    *context_tokens = non_ascii && has_context_token(f, text, begin, end, n);
    if (*context_tokens) return true;
    return non_ascii ? encode_by_stages(k, text, begin, end, e)
                     : ses_bert_encode_non_ascii(f, w, k, text, begin, end, e);
}

/* Discard the tokens so far and encode the whole text by stages. */
static bool encode_all_by_stages(ses_encode_ctx *k, const char *text, size_t n, ses_token_buf at, ses_err *e)
{
    ses_encode_ctx_rewind(k, at.n, at.n_words);
    return encode_by_stages(k, text, 0, n, e);
}

static bool encode(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t n, ses_err *e)
{
    const ses_bert_fast *f = self;
    ses_bert_work *w = work;
    ses_token_buf start = k->tokens;
    for (size_t pos = 0; pos < n;) {
        size_t len = n - pos < SES_BERT_WINDOW ? n - pos : SES_BERT_WINDOW, stop = len, at = 0;
        f->classify(f, w, text + pos, len);
        memset(w->lowered + len, 0, 64);
        if (pos + len < n)
            while (stop && w->word[(stop - 1) / 64] >> (stop - 1) % 64 & 1) stop--;
        if (!stop) {
            bool context_tokens = false;
            if (!encode_long_piece(f, w, k, text, &pos, n, &context_tokens, e)) return false;
            if (context_tokens) return encode_all_by_stages(k, text, n, start, e);
            continue;
        }
        hit h = find_hit(f, w, text, pos, stop, n, &at);
        if (h == CONTEXT_HIT) return encode_all_by_stages(k, text, n, start, e);
        if (h == NO_HIT) {
            if (!encode_pieces(f, w, k, text, pos, stop, e)) return false;
            pos += stop;
            continue;
        }
        size_t begin = at, end = pos + at;
        while (begin && w->word[(begin - 1) / 64] >> (begin - 1) % 64 & 1) begin--;
        while (end < n && !is_kind(f, text[end], SES_BERT_SPACE)) end++;
        if (has_context_token(f, text, pos + begin, end, n))
            return encode_all_by_stages(k, text, n, start, e);
        if (begin && !encode_pieces(f, w, k, text, pos, begin, e)) return false;
        if (!encode_by_stages(k, text, pos + begin, end, e)) return false;
        pos = end;
    }
    return true;
}

/* ---- opening ---- */

static bool applies(const ses_tokenizer *t)
{
    const ses_stage_list *norm = &t->steps[SES_NORMALIZER], *pre = &t->steps[SES_PRE_TOKENIZER];
    if (norm->n > 1 || pre->n != 1 || pre->step[0].stage != &ses_stage_pre_bert) return false;
    if (norm->n && norm->step[0].stage != &ses_stage_norm_bert) return false;
    if (t->model.stage != &ses_stage_model_wordpiece) return false;
    for (size_t i = 0; i < t->added.n; i++) {
        const ses_added_token *a = &t->added.token[i];
        bool plain = !a->lstrip && !a->rstrip && !a->single_word && a->content.n < 64;
        for (size_t j = 0; j < a->content.n; j++)
            if (a->content.p[j] <= ' ' && a->content.p[j] >= 0)
                plain = false;
            else if (a->content.p[j] < 0)
                plain = false;
        if (a->normalized && !plain) return false;
    }
    return true;
}

static void add_to_set(uint8_t row[16], uint32_t c) { row[c & 15] |= (uint8_t)(1 << (c >> 4)); }

/* Find the class of each ASCII character by running the normalizer on it. */
static bool classify_ascii(ses_bert_fast *f, bool *fits, ses_err *e)
{
    const ses_added *a = &f->t->added;
    f->lower = true;
    for (uint32_t c = 0; c < 128; c++) {
        ses_bert_char x = { 0 };
        if (!ses_bert_normalize_char(f, c, &x, e)) return false;
        f->kind[c] = x.kind;
        uint32_t lowered = c >= 'A' && c <= 'Z' ? c + 32 : c;
        if (c == 'A') f->lower = x.byte[0] == 'a';
        if (x.kind == SES_BERT_LETTER || x.kind == SES_BERT_SINGLE)
            *fits &= x.n == 1 && (uint8_t)x.byte[0] == (f->lower ? lowered : c);
        if (x.kind == SES_BERT_BY_STAGES) *fits = false;
        if (x.kind == SES_BERT_SPACE) add_to_set(f->space, c);
        if (x.kind == SES_BERT_SINGLE) add_to_set(f->punct, c);
        if (x.kind == SES_BERT_REMOVED || a->raw.root[c] || a->normal.root[lowered] || a->normal.root[c])
            add_to_set(f->check, c);
    }
    f->normal = f->check_non_ascii = a->normal.n > 0;
    for (size_t c = 128; c < 256; c++) f->check_non_ascii |= a->raw.root[c] != 0;
    for (size_t i = 0; i < a->n; i++) f->context_tokens |= needs_context(&a->token[i]);
    return true;
}

/* Trie of the tokens that start with prefix, without the prefix. */
static bool build_trie(ses_trie *t, const ses_vocab *v, ses_string prefix, ses_arena *mem, ses_err *e)
{
    ses_string *key = ses_alloc_array((size_t)v->size + 1, sizeof *key, e);
    if (!key) return false;
    for (int32_t id = 0; id < v->size; id++) {
        size_t n = 0;
        const char *s = ses_vocab_token(v, id, &n);
        if (s && n > prefix.n && !memcmp(s, prefix.p, prefix.n))
            key[id] = (ses_string){ s + prefix.n, n - prefix.n };
    }
    bool ok = ses_trie_build(t, key, (size_t)v->size, mem, e);
    ses_free(key);
    return ok;
}

static bool open(const ses_tokenizer *t, ses_isa isa, ses_arena *mem, void **self, ses_err *e)
{
    bool fits = true;
    if (!applies(t)) return true;
    ses_bert_fast *f = ses_arena_array(mem, 1, sizeof *f, e);
    if (!f) return false;
    f->t = t;
    f->m = t->model.self;
    f->hash = ses_word_hash_new();
    if (!classify_ascii(f, &fits, e)) return false;
    if (!fits) return true;
    if (!build_trie(&f->first, &f->m->vocab, (ses_string){ "", 0 }, mem, e) ||
        !build_trie(&f->next, &f->m->vocab, f->m->prefix, mem, e))
        return false;
    f->classify = ses_bert_classify_ref;
    f->encode_window = ses_bert_encode_window_ref;
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (isa >= SES_ISA_AVX2)
        f->classify = ses_bert_classify_avx2, f->encode_window = ses_bert_encode_window_avx2;
    if (isa >= SES_ISA_AVX512) f->classify = ses_bert_classify_avx512;
#else
    (void)isa;
#endif
    *self = f;
    return true;
}

static void work_free(void *work)
{
    ses_bert_work *w = work;
    if (!w) return;
    ses_free(w->caches);
    ses_arena_free(&w->mem);
    ses_free(w);
}

static void *work_new(const void *self, ses_err *e)
{
    (void)self;
    ses_bert_work *w = ses_alloc(sizeof *w, e);
    if (!w) return NULL;
    /* untouched zero pages; entries aligned to cache lines */
    size_t small = ((size_t)2 << SES_BERT_SMALL_BITS) * sizeof *w->small;
    size_t large = ((size_t)2 << SES_BERT_LARGE_BITS) * sizeof *w->large;
    w->caches = ses_alloc(SES_ALIGN + small + large, e);
    if (w->caches) {
        char *p = w->caches + (SES_ALIGN - (uintptr_t)w->caches % SES_ALIGN) % SES_ALIGN;
        w->small = (ses_word_cache_entry *)p;
        w->large = (ses_bert_large_entry *)(p + small);
        return w;
    }
    work_free(w);
    return NULL;
}

const ses_fast_path ses_fast_path_bert = { .name = "bert",
                                           .open = open,
                                           .work_new = work_new,
                                           .work_free = work_free,
                                           .validates_utf8 = true,
                                           .no_empty_pieces = true,
                                           .encode = encode };
