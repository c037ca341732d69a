/* Builds encodings from tokens: truncation, special tokens, padding, overflowing parts. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "tokenizer_impl.h"

#include <string.h>

/* ---- truncation ---- */

static bool truncate_to(ses_truncation_plan *c, size_t max, const ses_encode_options *o, ses_err *e)
{
    size_t n = c->end - c->begin, stride = (size_t)o->stride;
    if (max >= n) return true;
    if (!max) {
        c->first_is_empty = true;
        c->parts = 2;
        return true;
    }
    if (stride >= max)
        return ses_fail(
            e, SES_EARG,
            "stride %zu must be less than %zu, the tokens of max_length %lld left for this text after "
            "special tokens and the other text",
            stride, max, (long long)o->max_length);
    c->max = max;
    c->step = max - stride;
    c->left = o->truncate_left;
    c->parts = 1 + (n - max + c->step - 1) / c->step;
    return true;
}

static bool truncate_longest_first(ses_encode_ctx *k, size_t available, const ses_encode_options *o,
                                   ses_err *e)
{
    if (!k->has_pair) return truncate_to(&k->truncation[0], available, o, e);
    size_t n[2] = { k->truncation[0].end - k->truncation[0].begin,
                    k->truncation[1].end - k->truncation[1].begin };
    int small = n[0] > n[1];
    size_t a = n[small], b = a > available ? a : available - a > a ? available - a : a;
    if (a + b > available) {
        a = available / 2;
        b = a + available % 2;
    }
    n[small] = a;
    n[!small] = b;
    return truncate_to(&k->truncation[0], n[0], o, e) && truncate_to(&k->truncation[1], n[1], o, e);
}

static size_t count_special(const ses_post_template *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) n += s->item[i].kind == SES_TEMPLATE_SPECIAL;
    return n;
}

/* HF Tokenizers checks a caller's stride against max_length even if nothing is truncated. A stride stored
 * in the file is checked only if a text is truncated. */
bool ses_result_truncate(ses_encode_ctx *k, const ses_encode_options *o, bool stored, ses_err *e)
{
    size_t max = (size_t)o->max_length, added = k->add_special ? count_special(&k->post_template) : 0;
    if (o->truncation == SES_TRUNCATE_NONE) return true;
    if (max < added)
        return ses_fail(e, SES_EARG, "max_length %zu is less than the %zu special tokens", max, added);
    size_t one = count_special(&k->t->post_template[0]);
    if (!stored && (max < (size_t)o->stride || (max >= one && max - one < (size_t)o->stride)))
        return ses_fail(e, SES_EARG, "stride %lld must be less than max_length %zu minus %zu special tokens",
                        (long long)o->stride, max, one);
    size_t available = max - added, total = k->truncation[0].end - k->truncation[0].begin;
    if (k->has_pair) total += k->truncation[1].end - k->truncation[1].begin;
    if (!available)
        return truncate_to(&k->truncation[0], 0, o, e) &&
               (!k->has_pair || truncate_to(&k->truncation[1], 0, o, e));
    if (total <= available) return true;
    if (o->truncation == SES_TRUNCATE_LONGEST_FIRST) return truncate_longest_first(k, available, o, e);
    bool second = o->truncation == SES_TRUNCATE_ONLY_SECOND;
    if (second && !k->has_pair) return ses_fail(e, SES_EARG, "truncation only_second requires a second text");
    ses_truncation_plan *c = &k->truncation[second];
    size_t n = c->end - c->begin;
    if (n <= total - available)
        return ses_fail(e, SES_EARG, "truncating the %s text (%zu tokens) cannot reach max_length %zu",
                        second ? "second" : "first", n, max);
    return truncate_to(c, n - (total - available), o, e);
}

/* Token range [*begin, *end) of part i of a text. */
static void part_range(const ses_truncation_plan *c, size_t i, size_t *begin, size_t *end)
{
    *begin = c->begin;
    *end = c->end;
    if (c->first_is_empty && !i) *end = *begin;
    if (c->first_is_empty || c->parts == 1) return;
    size_t n = c->end - c->begin, skip = i * c->step;
    if (c->left) {
        *end = c->end - skip;
        *begin = n - skip > c->max ? *end - c->max : c->begin;
    } else {
        *begin = c->begin + skip;
        *end = n - skip > c->max ? *begin + c->max : c->end;
    }
}

/* ---- token strings and offset trimming ---- */

static const char *token_string(const ses_encode_ctx *k, size_t index, size_t *n)
{
    const ses_stage_instance *model = &k->t->model;
    const ses_token_override *o = ses_token_override_find(k, index);
    if (!o) return model->stage->token(model->self, k->tokens.id[index], n);
    if (o->n == SES_STRING_OF_ID) {
        const ses_added_token *a = ses_added_by_id(&k->t->added, k->tokens.id[index]);
        *n = a->content.n;
        return a->content.p;
    }
    *n = o->n;
    return k->override_text.data + o->begin;
}

const char *ses_encode_ctx_string(const ses_encode_ctx *k, const ses_encoding *of, size_t i, size_t *n)
{
    const ses_encoding_buf *o = of == &k->overflow.encoding ? &k->overflow : &k->result;
    size_t at = o->encoding.id == k->tokens.id ? i : o->token_index[i];
    if (at >= k->truncation[0].begin && at < k->truncation[k->has_pair].end) return token_string(k, at, n);
    for (size_t j = 0; of->attention_mask[i] && j < k->post_template.n; j++)
        if (k->post_template.item[j].kind == SES_TEMPLATE_SPECIAL &&
            k->post_template.item[j].id == of->id[i]) {
            *n = k->post_template.item[j].name.n;
            return k->post_template.item[j].name.p;
        }
    if (of->attention_mask[i] || !k->t->stored.pad || k->pad_id >= 0)
        return ses_tokenizer_id_to_token(k->t, of->id[i], n);
    *n = k->t->stored.pad_token.n;
    return k->t->stored.pad_token.p;
}

static size_t advance_chars(const char *p, size_t n, size_t at, int64_t chars)
{
    while (chars > 0 && at < n) {
        at++;
        while (at < n && ses_utf8_continues(p[at])) at++;
        chars--;
    }
    while (chars < 0 && at) {
        at--;
        while (at && ses_utf8_continues(p[at])) at--;
        chars++;
    }
    return at;
}

/* Adjust byte offsets to code point offsets that changed from `was`. */
static void shift_byte_offsets(const ses_encode_ctx *k, size_t at, bool second, ses_offset was,
                               ses_offset *byte, const ses_offset *point)
{
    const ses_input_text *s = &k->source[second];
    size_t word = s->words ? (size_t)k->tokens.word_id[at] : 0;
    if (s->original[word]) return; /* offsets of a text with replaced bytes stay */
    ses_string text = s->words ? s->words[word] : s->text;
    byte->begin = (uint32_t)advance_chars(text.p, text.n, byte->begin, (int64_t)point->begin - was.begin);
    byte->end = (uint32_t)advance_chars(text.p, text.n, byte->end, (int64_t)point->end - was.end);
}

static void trim_token(const ses_encode_ctx *k, size_t at, bool second, bool first, ses_space_margins b,
                       ses_offset *byte, ses_offset *point)
{
    const ses_tokenizer *t = k->t;
    ses_offset was = *point;
    for (size_t j = 0; j < t->n_trims; j++) ses_trim_offsets(t->trim_prefix[j], first, b, point);
    if (byte == point || (was.begin == point->begin && was.end == point->end)) return;
    if (k->is_ascii)
        *byte = *point;
    else
        shift_byte_offsets(k, at, second, was, byte, point);
}

/* Apply the offset trimming of the post-processors to n tokens, starting at token `at`. Tokens with spaces
 * are collected first, without a branch: it would be unpredictable. */
static void trim_part(const ses_encode_ctx *k, size_t at, size_t n, bool second, ses_offset *byte,
                      ses_offset *point)
{
    enum { LIST = 256 };
    const ses_tokenizer *t = k->t;
    uint32_t list[LIST];
    for (size_t i = 0; k->n_overrides && i < n; i++) { /* some token strings differ from their id's string */
        size_t len = 0;
        const char *name = token_string(k, at + i, &len);
        ses_space_margins b = ses_space_margins_of(name, len);
        if (b.front | b.back) trim_token(k, at + i, second, !i, b, &byte[i], &point[i]);
    }
    for (size_t from = 0; !k->n_overrides && from < n; from += LIST) {
        size_t count = 0, to = n - from < LIST ? n : from + LIST;
        for (size_t i = from; i < to; i++) {
            ses_space_margins b = t->margins[k->tokens.id[at + i]];
            list[count] = (uint32_t)i;
            count += (b.front | b.back) != 0;
        }
        for (size_t j = 0; j < count; j++) {
            size_t i = list[j];
            trim_token(k, at + i, second, !i, t->margins[k->tokens.id[at + i]], &byte[i], &point[i]);
        }
    }
}

/* ---- assembly ---- */

static bool grow(void *array, size_t size, size_t n, ses_err *e)
{
    void *old, *p;
    memcpy(&old, array, sizeof old);
    p = ses_realloc_array(old, n, size, e);
    if (p) memcpy(array, &p, sizeof p);
    return p != NULL;
}

static bool reserve_flags(ses_encoding_buf *o, size_t n, ses_err *e)
{
    if (n <= o->cap_flags) return true;
    n += n / 2;
    if (!grow(&o->sequence_id, 1, n, e) || !grow(&o->type_id, 1, n, e) || !grow(&o->special_mask, 1, n, e) ||
        !grow(&o->attention_mask, 1, n, e))
        return false;
    o->cap_flags = n;
    return true;
}

static bool reserve_encoding(ses_encoding_buf *o, size_t n, ses_err *e)
{
    if (!reserve_flags(o, n, e)) return false;
    if (n <= o->cap) return true;
    n += n / 2;
    if (!grow(&o->id, sizeof *o->id, n, e) || !grow(&o->word_id, sizeof *o->word_id, n, e) ||
        !grow(&o->byte_offset, sizeof *o->byte_offset, n, e) ||
        !grow(&o->char_offset, sizeof *o->char_offset, n, e) ||
        !grow(&o->token_index, sizeof *o->token_index, n, e))
        return false;
    o->cap = n;
    return true;
}

static void put_flags(ses_encoding_buf *o, size_t at, size_t n, int sequence, uint8_t type, bool special,
                      bool attention)
{
    if (!n) return;
    memset(o->sequence_id + at, sequence, n);
    memset(o->type_id + at, type, n);
    memset(o->special_mask + at, special, n);
    memset(o->attention_mask + at, attention, n);
}

static void put_special(ses_encoding_buf *o, size_t at, int32_t id)
{
    o->id[at] = id;
    o->word_id[at] = -1;
    o->byte_offset[at] = o->char_offset[at] = (ses_offset){ 0, 0 };
    o->token_index[at] = SIZE_MAX;
}

static void put_part(ses_encode_ctx *k, ses_encoding_buf *o, size_t at, size_t begin, size_t end, bool second)
{
    size_t n = end - begin;
    if (!n) return;
    memcpy(o->id + at, k->tokens.id + begin, n * sizeof *o->id);
    memcpy(o->word_id + at, k->tokens.word_id + begin, n * sizeof *o->word_id);
    memcpy(o->byte_offset + at, k->tokens.byte_offset + begin, n * sizeof *o->byte_offset);
    memcpy(o->char_offset + at, (k->is_ascii ? k->tokens.byte_offset : k->char_offset) + begin,
           n * sizeof *o->char_offset);
    for (size_t i = 0; i < n; i++) o->token_index[at + i] = begin + i;
    if (k->t->n_trims) trim_part(k, begin, n, second, o->byte_offset + at, o->char_offset + at);
}

static void pad(const ses_encode_ctx *k, ses_encoding_buf *o, size_t at, size_t n)
{
    const ses_stored_limits *s = &k->t->stored;
    int32_t id = k->pad_id >= 0 ? k->pad_id : (int32_t)s->pad_id;
    for (size_t i = 0; i < n; i++) put_special(o, at + i, id);
    put_flags(o, at, n, -1, (uint8_t)s->pad_type, true, false);
}

static size_t padded_length(const ses_encode_ctx *k, size_t n)
{
    return k->pad_to > 0 && (size_t)k->pad_to > n ? (size_t)k->pad_to : n;
}

static void set_encoding(ses_encoding_buf *o, size_t n)
{
    o->encoding = (ses_encoding){
        n,          o->id,           o->byte_offset,   o->char_offset, o->word_id, o->sequence_id,
        o->type_id, o->special_mask, o->attention_mask
    };
}

static size_t encoding_length(const ses_encode_ctx *k, size_t a, size_t b)
{
    size_t begin, end, n = 0;
    for (size_t i = 0; i < k->post_template.n; i++) {
        ses_template_item_kind kind = k->post_template.item[i].kind;
        if (kind == SES_TEMPLATE_SPECIAL) {
            n += k->add_special;
        } else {
            part_range(&k->truncation[kind], kind == SES_TEMPLATE_A ? a : b, &begin, &end);
            n += end - begin;
        }
    }
    return n;
}

/* Build the encoding of part a of the first text and part b of the second, as the template prescribes. */
static bool assemble(ses_encode_ctx *k, ses_encoding_buf *o, size_t a, size_t b, ses_err *e)
{
    size_t begin[2], end[2], part[2] = { a, b }, n = encoding_length(k, a, b);
    for (int i = 0; i <= k->has_pair; i++) part_range(&k->truncation[i], part[i], &begin[i], &end[i]);
    size_t total = padded_length(k, n), at = k->pad_left ? total - n : 0;
    if (!reserve_encoding(o, total, e)) return false;
    pad(k, o, k->pad_left ? 0 : n, total - n);
    for (size_t i = 0; i < k->post_template.n; i++) {
        const ses_template_item *s = &k->post_template.item[i];
        if (s->kind == SES_TEMPLATE_SPECIAL) {
            if (!k->add_special) continue;
            put_special(o, at, s->id);
            put_flags(o, at++, 1, -1, s->type_id, true, true);
            continue;
        }
        size_t len = end[s->kind] - begin[s->kind];
        bool whole = !part[s->kind] || (k->post_template.types_in_overflow && k->add_special);
        put_part(k, o, at, begin[s->kind], end[s->kind], s->kind == SES_TEMPLATE_B);
        put_flags(o, at, len, (int)s->kind, whole ? s->type_id : (uint8_t)s->kind, false, true);
        at += len;
    }
    set_encoding(o, total);
    return true;
}

/* One text, neither truncated nor padded: the token buffer itself becomes the result, with special tokens
 * added around the text. */
static bool build_in_place(ses_encode_ctx *k, ses_err *e)
{
    ses_encoding_buf *o = &k->result;
    ses_token_buf *r = &k->tokens;
    size_t lead = k->truncation[0].begin, len = r->n - lead, after = 0;
    uint8_t type = 0;
    for (size_t i = 0; i < k->post_template.n; i++) {
        if (k->post_template.item[i].kind == SES_TEMPLATE_A) type = k->post_template.item[i].type_id;
        after += k->add_special && k->post_template.item[i].kind == SES_TEMPLATE_SPECIAL;
    }
    after -= lead;
    if (!ses_token_buf_reserve(r, after, e) || !reserve_flags(o, r->n + after, e)) return false;
    if (!k->is_ascii && r->cap > k->cap_char_offset) {
        if (!grow(&k->char_offset, sizeof *k->char_offset, r->cap, e)) return false;
        k->cap_char_offset = r->cap;
    }
    ses_offset *point = k->is_ascii ? r->byte_offset : k->char_offset;
    put_flags(o, lead, len, 0, type, false, true);
    if (k->t->n_trims) trim_part(k, lead, len, false, r->byte_offset + lead, point + lead);
    size_t at = 0;
    for (size_t i = 0; i < k->post_template.n; i++) {
        const ses_template_item *s = &k->post_template.item[i];
        if (s->kind != SES_TEMPLATE_SPECIAL) {
            at += len;
        } else if (k->add_special) {
            r->id[at] = s->id;
            r->word_id[at] = -1;
            r->byte_offset[at] = point[at] = (ses_offset){ 0, 0 };
            put_flags(o, at++, 1, -1, s->type_id, true, true);
        }
    }
    o->encoding =
        (ses_encoding){ at,         r->id,           r->byte_offset,   point, r->word_id, o->sequence_id,
                        o->type_id, o->special_mask, o->attention_mask };
    return true;
}

/* If padding is stored in the file, overflowing parts are padded at least to the length of the result. */
static void resolve_padding(ses_encode_ctx *k, size_t n)
{
    const ses_stored_limits *s = &k->t->stored;
    if (!k->pad_stored) return;
    if (s->pad_fixed < 0) k->pad_to = (int64_t)n;
    if (s->pad_multiple) k->pad_to = (k->pad_to + s->pad_multiple - 1) / s->pad_multiple * s->pad_multiple;
}

bool ses_result_build(ses_encode_ctx *k, ses_err *e)
{
    size_t n = encoding_length(k, 0, 0);
    resolve_padding(k, n);
    if (!k->has_pair && k->truncation[0].parts == 1 && padded_length(k, n) == n) return build_in_place(k, e);
    return assemble(k, &k->result, 0, 0, e);
}

const ses_encoding *ses_encode_ctx_result(const ses_encode_ctx *k) { return &k->result.encoding; }

/* Every part of the first text is combined with every part of the second. The combination of both first
 * parts is the result, all others are overflow. */
size_t ses_encode_ctx_overflow_count(const ses_encode_ctx *k)
{
    return k->truncation[0].parts * (k->has_pair ? k->truncation[1].parts : 1) - 1;
}

/* Same order as HF Tokenizers: later parts of the text that comes first in the template, each with all
 * parts of the other text; then the first part with the later parts of the other text. */
const ses_encoding *ses_encode_ctx_overflow(ses_encode_ctx *k, size_t i, ses_err *e)
{
    bool swapped = false;
    for (size_t j = 0;
         k->has_pair && j < k->post_template.n && k->post_template.item[j].kind != SES_TEMPLATE_A; j++)
        swapped |= k->post_template.item[j].kind == SES_TEMPLATE_B;
    size_t outer = k->truncation[swapped].parts, inner = k->has_pair ? k->truncation[!swapped].parts : 1;
    if (i >= outer * inner - 1) {
        ses_fail(e, SES_EARG, "overflowing part %zu does not exist", i);
        return NULL;
    }
    size_t a = i / inner + 1, b = i % inner;
    if (a == outer) a = 0, b++;
    return assemble(k, &k->overflow, swapped ? b : a, swapped ? a : b, e) ? &k->overflow.encoding : NULL;
}
