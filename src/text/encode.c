/* Encodes one text or a pair: validates the input, runs a fast path or the stages, converts offsets to
 * code points, truncates and adds special tokens. Also the workspace ses_encode_ctx. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "base/unicode/utf8_replace.h"
#include "tokenizer_impl.h"
#include "utf8_valid_avx2.h"

#include <string.h>

enum { MAX_TEXT = INT32_MAX - 64 };

ses_encode_ctx *ses_encode_ctx_new(const ses_tokenizer *t, ses_err *e)
{
    ses_encode_ctx *k = ses_alloc(sizeof *k, e);
    if (!k) return NULL;
    k->t = t;
    if (t->fast_path && t->fast_path->work_new &&
        !(k->fast_path_work = t->fast_path->work_new(t->fast_path_self, e))) {
        ses_encode_ctx_free(k);
        return NULL;
    }
    return k;
}

static void free_encoding_buf(ses_encoding_buf *o)
{
    ses_free(o->id);
    ses_free(o->word_id);
    ses_free(o->byte_offset);
    ses_free(o->char_offset);
    ses_free(o->token_index);
    ses_free(o->sequence_id);
    ses_free(o->type_id);
    ses_free(o->special_mask);
    ses_free(o->attention_mask);
}

void ses_encode_ctx_free(ses_encode_ctx *k)
{
    if (!k) return;
    if (k->fast_path_work) k->t->fast_path->work_free(k->fast_path_work);
    ses_free(k->tokens.id);
    ses_free(k->tokens.byte_offset);
    ses_free(k->tokens.word_id);
    ses_free(k->char_offset);
    ses_codepoint_table_free(&k->codepoint_table);
    ses_free(k->override);
    ses_buf_free(&k->override_text);
    ses_text_free(&k->raw);
    for (int i = 0; i < 2; i++) {
        ses_text_free(&k->normalized[i]);
        ses_pieces_free(&k->pieces[i]);
    }
    ses_free(k->raw_matches.match);
    ses_free(k->normal_matches.match);
    ses_token_list_free(&k->piece_tokens);
    ses_arena_free(&k->scratch);
    ses_arena_free(&k->inputs);
    ses_free(k->piece_start);
    free_encoding_buf(&k->result);
    free_encoding_buf(&k->overflow);
    ses_free(k->strings.string);
    ses_arena_free(&k->strings.mem);
    ses_buf_free(&k->text);
    ses_free(k);
}

/* ---- inputs ---- */

/* Copy s with U+FFFD for invalid UTF-8. original[i]: offset in the input of byte i of the copy, and of its
 * end. */
static bool replace_invalid(ses_string *s, const uint32_t **original, ses_arena *mem, ses_err *e)
{
    size_t cap;
    if (!ses_mul_size(s->n, 3, &cap) || cap > MAX_TEXT)
        return ses_fail(e, SES_EARG, "text of %zu bytes is too long", s->n);
    char *out = ses_arena_alloc(mem, cap + 1, e);
    uint32_t *from = ses_arena_alloc(mem, (cap + 1) * sizeof *from, e);
    if (!out || !from) return false;
    size_t at = 0, n = 0;
    while (at < s->n) {
        bool good;
        size_t len = ses_utf8_next_subpart(s->p + at, s->n - at, &good), put = len;
        if (good)
            memcpy(out + n, s->p + at, len);
        else
            put = ses_utf8_encode(0xFFFD, out + n);
        for (size_t i = 0; i < put; i++) from[n + i] = (uint32_t)(put == len ? at + i : at);
        n += put;
        at += len;
    }
    from[n] = (uint32_t)at;
    *s = (ses_string){ out, n };
    *original = from;
    return true;
}

static bool is_utf8(const ses_encode_ctx *k, ses_string s)
{
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (k->t->isa >= SES_ISA_AVX2) return ses_utf8_valid_avx2(s.p, s.n);
#else
    (void)k;
#endif
    return ses_utf8_valid(s.p, s.n) == s.n;
}

/* Check the length, replace invalid UTF-8, and clear k->is_ascii if necessary. */
static bool validate(ses_encode_ctx *k, ses_string *s, const uint32_t **original, ses_err *e)
{
    if (s->n > MAX_TEXT)
        return ses_fail(e, SES_EARG, "text of %zu bytes is too long (maximum %d)", s->n, MAX_TEXT);
    if (ses_is_ascii(s->p, s->n)) return true;
    k->is_ascii = false;
    if (k->t->fast_path && k->t->fast_path->validates_utf8)
        return true; /* reported later through k->invalid_utf8 */
    return is_utf8(k, *s) || replace_invalid(s, original, &k->inputs, e);
}

static bool set_source(ses_encode_ctx *k, ses_input_text *s, ses_string text, const ses_string *words,
                       size_t n, ses_err *e)
{
    *s = (ses_input_text){ .text = text, .n_words = n };
    s->original = ses_arena_array(&k->inputs, words ? n + 1 : 1, sizeof *s->original, e);
    if (!s->original) return false;
    if (!words) return validate(k, &s->text, &s->original[0], e);
    ses_string *copy = ses_arena_array(&k->inputs, n + 1, sizeof *copy, e);
    if (!copy) return false;
    s->words = copy;
    for (size_t i = 0; i < n; i++) {
        copy[i] = words[i];
        if (!validate(k, &copy[i], &s->original[i], e)) return false;
    }
    return true;
}

/* ---- offsets ---- */

static bool reserve_char_offsets(ses_encode_ctx *k, ses_err *e)
{
    if (k->tokens.cap <= k->cap_char_offset) return true;
    ses_offset *offset = ses_realloc_array(k->char_offset, k->tokens.cap, sizeof *offset, e);
    if (!offset) return false;
    k->char_offset = offset;
    k->cap_char_offset = k->tokens.cap;
    return true;
}

/* Set the code point offsets of tokens [begin, end), which belong to string s. Byte offsets are mapped
 * back to the input if invalid bytes were replaced (original != NULL). */
static bool set_char_offsets(ses_encode_ctx *k, ses_string s, const uint32_t *original, size_t begin,
                             size_t end, ses_err *e)
{
    if (k->is_ascii) { /* HF Tokenizers reports two characters for a token that ends past the text */
        for (size_t i = begin; k->past_piece_end && i < end; i++) {
            ses_offset *b = &k->tokens.byte_offset[i];
            if (b->begin < s.n && b->end > s.n) b->end = b->begin + 2;
        }
        return true;
    }
    if (!reserve_char_offsets(k, e)) return false;
    if (!ses_codepoint_offsets(k->t->isa, &k->codepoint_table, s.p, s.n, k->tokens.byte_offset + begin,
                               k->char_offset + begin, end - begin, e))
        return false;
    for (size_t i = begin; original && i < end; i++) {
        ses_offset *b = &k->tokens.byte_offset[i];
        if (b->end <= s.n) *b = (ses_offset){ original[b->begin], original[b->end] };
    }
    return true;
}

/* ---- tokens ---- */

static bool is_added(const ses_encode_ctx *k, size_t token)
{
    const ses_token_override *o = ses_token_override_find(k, token);
    return o && o->is_added;
}

/* Apply the early stop after a fast path, which encodes the whole text first: drop all words after the one
 * that brings the count to max. Added tokens do not end the text. Same result as the limit of
 * ses_encode_by_stages. */
static void apply_limit(ses_encode_ctx *k, size_t begin, size_t max)
{
    const ses_token_buf *r = &k->tokens;
    size_t at = begin + (max ? max - 1 : 0);
    while (at < r->n) {
        size_t end = at + 1;
        while (end < r->n && r->word_id[end] == r->word_id[at]) end++;
        if (!is_added(k, at)) {
            ses_encode_ctx_rewind(k, end, (uint32_t)r->word_id[at] + 1);
            return;
        }
        at = end;
    }
}

/* The same for truncation from the left. first: index of the first word. */
static void apply_limit_from_left(ses_encode_ctx *k, size_t begin, size_t max, uint32_t first)
{
    const ses_token_buf *r = &k->tokens;
    size_t n = r->n - begin;
    if (!n || max > n) return;
    size_t at = r->n - (max ? max : 1);
    for (;;) {
        while (at > begin && r->word_id[at - 1] == r->word_id[at]) at--;
        if (at == begin || !is_added(k, at)) break;
        at--;
    }
    if (at > begin) ses_encode_ctx_remove(k, begin, at - begin, (uint32_t)r->word_id[at] - first);
}

/* Encode a string with the fast path, or by stages. False with k->invalid_utf8: not valid UTF-8. */
static bool encode_valid(ses_encode_ctx *k, ses_string s, const ses_token_limit *limit, ses_err *e)
{
    const ses_fast_path *fast = k->t->fast_path;
    size_t begin = k->tokens.n;
    uint32_t first = k->tokens.n_words;
    k->invalid_utf8 = false;
    if (!fast || (limit && !fast->no_empty_pieces)) {
        k->invalid_utf8 = !k->is_ascii && !is_utf8(k, s);
        return !k->invalid_utf8 && ses_encode_by_stages(k, s.p, 0, s.n, limit, e);
    }
    if (!fast->encode(k->t->fast_path_self, k->fast_path_work, k, s.p, s.n, e)) return false;
    if (limit && limit->from_left)
        apply_limit_from_left(k, begin, limit->max_tokens, first);
    else if (limit)
        apply_limit(k, begin, limit->max_tokens);
    return true;
}

/* Encode one string. A fast path that validates UTF-8 itself may find invalid bytes late; then the string is
 * encoded again with these bytes replaced. */
static bool encode_string(ses_encode_ctx *k, ses_string *s, const uint32_t **original,
                          const ses_token_limit *limit, ses_err *e)
{
    size_t begin = k->tokens.n;
    uint32_t words = k->tokens.n_words;
    if (!encode_valid(k, *s, limit, e)) {
        if (!k->invalid_utf8) return false;
        ses_encode_ctx_rewind(k, begin, words);
        if (!replace_invalid(s, original, &k->inputs, e) || !encode_valid(k, *s, limit, e)) return false;
    }
    return set_char_offsets(k, *s, *original, begin, k->tokens.n, e);
}

/* Encode one of the two texts: a string, or a list of words. */
static bool encode_source(ses_encode_ctx *k, int which, const ses_token_limit *limit, ses_err *e)
{
    ses_input_text *s = &k->source[which];
    k->truncation[which] = (ses_truncation_plan){ .begin = k->tokens.n, .parts = 1 };
    k->tokens.n_words = 0;
    if (!s->words && !encode_string(k, &s->text, &s->original[0], limit, e)) return false;
    for (size_t i = 0; s->words && i < s->n_words; i++) {
        size_t begin = k->tokens.n;
        if (!encode_string(k, &s->words[i], &s->original[i], limit, e)) return ses_wrap(e, "word %zu", i);
        for (size_t j = begin; j < k->tokens.n; j++) k->tokens.word_id[j] = (int32_t)i;
    }
    k->truncation[which].end = k->tokens.n;
    return true;
}

static size_t count_leading_special(const ses_post_template *s)
{
    size_t n = 0;
    while (n < s->n && s->item[n].kind == SES_TEMPLATE_SPECIAL) n++;
    return n;
}

/* The caller's limits, completed by the limits stored in tokenizer.json if use_stored_limits is set. */
static ses_encode_options resolve_options(const ses_tokenizer *t, const ses_encode_options *options)
{
    ses_encode_options o = { 0 };
    if (options) o = *options;
    const ses_stored_limits *s = &t->stored;
    if (!o.use_stored_limits) return o;
    if (s->truncate && o.truncation == SES_TRUNCATE_NONE) {
        o.truncation = s->strategy;
        o.max_length = s->max_length;
        o.stride = s->stride;
        o.truncate_left = s->truncate_left;
    }
    if (s->pad && !o.pad_to) {
        o.pad_to = s->pad_fixed > 0 ? s->pad_fixed : 0;
        o.pad_left = s->pad_left;
    }
    return o;
}

/* Validate both texts and reset the state of the last call. */
static bool set_input(ses_encode_ctx *k, const ses_input *in, const ses_encode_options *o, ses_err *e)
{
    k->has_pair = in->pair.p || in->pair_words;
    k->add_special = !o->no_special;
    k->post_template = k->t->post_template[k->has_pair];
    k->pad_to = o->pad_to;
    k->pad_left = o->pad_left;
    k->pad_id = o->has_pad_id ? o->pad_id : -1;
    k->is_ascii = true;
    k->past_piece_end = false;
    k->n_overrides = k->override_text.len = 0;
    ses_arena_reset(&k->inputs);
    if (o->max_length < 0 || o->stride < 0 || o->pad_to < 0 || o->pad_to > INT32_MAX)
        return ses_fail(e, SES_EARG, "max_length, stride and pad_to must not be negative");
    if (o->has_pad_id && (o->pad_id < 0 || o->pad_id >= ses_tokenizer_vocab_size(k->t)))
        return ses_fail(e, SES_EARG, "padding token %d: expected an id below %lld", (int)o->pad_id,
                        (long long)ses_tokenizer_vocab_size(k->t));
    if (!set_source(k, &k->source[0], in->text, in->words, in->n_words, e)) return false;
    return !k->has_pair || set_source(k, &k->source[1], in->pair, in->pair_words, in->n_pair_words, e);
}

/* Encode both texts into k->tokens, without special tokens. */
static bool encode_sources(ses_encode_ctx *k, const ses_encode_options *o, ses_err *e)
{
    ses_token_limit limit = { (size_t)o->max_length, o->truncate_left };
    bool early = o->truncation != SES_TRUNCATE_NONE && !o->full_overflow;
    const ses_token_limit *second = early ? &limit : NULL;
    const ses_token_limit *first = o->truncation == SES_TRUNCATE_ONLY_SECOND ? NULL : second;
    /* leave space for special tokens in front of a single text, so that it is not moved later */
    size_t lead = k->has_pair || !k->add_special ? 0 : count_leading_special(&k->post_template);
    k->tokens.n = 0;
    if (!ses_token_buf_reserve(&k->tokens, lead + 1, e)) return false;
    k->tokens.n = lead;
    if (!encode_source(k, 0, first, e)) return k->has_pair ? ses_wrap(e, "first text") : false;
    return !k->has_pair || encode_source(k, 1, second, e) || ses_wrap(e, "second text");
}

bool ses_encode(ses_encode_ctx *k, const ses_input *in, const ses_encode_options *options, ses_err *e)
{
    ses_encode_options o = resolve_options(k->t, options);
    bool own_limits = options && options->truncation != SES_TRUNCATE_NONE;
    k->pad_stored = o.use_stored_limits && k->t->stored.pad && !(options && options->pad_to);
    return set_input(k, in, &o, e) && encode_sources(k, &o, e) &&
           ses_result_truncate(k, &o, !own_limits, e) && ses_result_build(k, e);
}

bool ses_encode_ids(ses_encode_ctx *k, const char *text, size_t n, bool special, const int32_t **id,
                    size_t *n_ids, ses_err *e)
{
    ses_encode_options o = { .no_special = !special };
    if (!ses_encode(k, &(ses_input){ .text = { text, n } }, &o, e)) return false;
    *id = k->result.encoding.id;
    *n_ids = k->result.encoding.n;
    return true;
}
