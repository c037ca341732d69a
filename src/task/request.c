/* A request: a queued item with its token sequences and the rows of its result. */
#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "base/unicode/utf8_replace.h"
#include "pipeline_impl.h"

#include <stdio.h>

/* ---- memory ---- */

ses_string ses_request_copy_string(ses_request *r, const char *s, size_t n, ses_err *e)
{
    char *copy = ses_arena_strndup(&r->mem, s ? s : "", s ? n : 0, e);
    return (ses_string){ copy, copy && s ? n : 0 };
}

/* Room for element n of an array in the request's arena, which frees the old copies, too. */
static void *grow(ses_request *r, void *at, size_t n, size_t *cap, size_t size, ses_err *e)
{
    if (n < *cap) return at;
    size_t more = *cap ? 2 * *cap : 4;
    void *to = ses_arena_array(&r->mem, more, size, e);
    if (to && n) memcpy(to, at, n * size);
    if (to) *cap = more;
    return to;
}

ses_result_row *ses_request_add_row(ses_request *r, ses_err *e)
{
    ses_result_row *row = grow(r, r->row, r->n_rows, &r->cap_rows, sizeof *row, e);
    if (!row) return NULL;
    r->row = row;
    return &row[r->n_rows++];
}

/* ---- sequences ---- */

static void *copy(ses_request *r, const void *from, size_t n, size_t size, ses_err *e)
{
    void *to = ses_arena_array(&r->mem, n + 1, size, e);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

ses_seq *ses_request_add_sequence(ses_request *r, const ses_encoding *from, ses_err *e)
{
    ses_seq *seq = grow(r, r->seq, r->n_seqs, &r->cap_seqs, sizeof *seq, e);
    if (!seq) return NULL;
    r->seq = seq;
    ses_seq *q = &seq[r->n_seqs];
    size_t n = from->n;
    if (!n) {
        ses_fail(e, SES_EARG, "the text has no tokens");
        return NULL;
    }
    *q = (ses_seq){ .n = n };
    q->id = copy(r, from->id, n, sizeof *q->id, e);
    q->type_id = ses_arena_array(&r->mem, n + 1, sizeof *q->type_id, e);
    q->char_offset = copy(r, from->char_offset, n, sizeof *q->char_offset, e);
    q->byte_offset = copy(r, from->byte_offset, n, sizeof *q->byte_offset, e);
    q->word_id = copy(r, from->word_id, n, sizeof *q->word_id, e);
    q->sequence_id = copy(r, from->sequence_id, n, sizeof *q->sequence_id, e);
    q->special_mask = copy(r, from->special_mask, n, sizeof *q->special_mask, e);
    if (!q->id || !q->type_id || !q->char_offset || !q->byte_offset || !q->word_id || !q->sequence_id ||
        !q->special_mask)
        return NULL;
    for (size_t i = 0; i < n; i++) q->type_id[i] = from->type_id[i];
    r->tokens += (int64_t)n;
    r->n_seqs++;
    return q;
}

/* The string that token i came from. */
static ses_string surface(const ses_input *in, const ses_seq *q, size_t i)
{
    bool pair = q->sequence_id[i] == 1;
    const ses_string *words = pair ? in->pair_words : in->words;
    ses_string s = words ? words[q->word_id[i]] : pair ? in->pair : in->text;
    ses_offset at = q->byte_offset[i];
    return (ses_string){ s.p + at.begin, at.end - at.begin };
}

/* Models that read characters: the characters of words outside the vocabulary. */
static bool add_words(const ses_pipeline *p, ses_request *r, const ses_input *in, ses_seq *q, ses_err *e)
{
    const ses_config *c = p->model ? p->model->stack[0].c : NULL;
    int64_t per_word = c ? c->chars.per_word : 0;
    size_t unknown = 0;
    for (size_t i = 0; per_word && i < q->n; i++) {
        if (q->special_mask[i]) continue;
        unknown += q->id[i] == c->chars.unk_id;
        r->shortened_words += surface(in, q, i).n > (uint64_t)ses_word_max_bytes(per_word);
    }
    if (!unknown) return true;
    int32_t *row = ses_arena_array(&r->mem, q->n, sizeof *row, e);
    int16_t *chars = row ? ses_arena_array(&r->mem, unknown * (size_t)per_word, sizeof *chars, e) : NULL;
    if (!chars) return false;
    for (size_t i = 0; i < q->n; i++) {
        row[i] = -1;
        if (q->special_mask[i] || q->id[i] != c->chars.unk_id) continue;
        ses_string word = surface(in, q, i);
        row[i] = (int32_t)q->n_extra_words++;
        ses_word_chars(chars + row[i] * per_word, per_word, word.p, word.n);
    }
    q->extra_word = row;
    q->extra_word_chars = chars;
    return true;
}

/* Adds the encoding of an input. */
static ses_seq *add_encoding(const ses_pipeline *p, ses_request *r, const ses_input *in,
                             const ses_encoding *from, ses_err *e)
{
    ses_seq *q = ses_request_add_sequence(r, from, e);
    return q && add_words(p, r, in, q, e) ? q : NULL;
}

static ses_encode_options truncation_options(const ses_pipeline *p, ses_truncation how, int64_t stride)
{
    return (ses_encode_options){ .truncation = how,
                                 .max_length = p->settings.max_seq_len,
                                 .stride = stride,
                                 .full_overflow = true,
                                 .truncate_left = p->tokenizer_config.truncate_left };
}

ses_seq *ses_request_encode(ses_pipeline *p, ses_request *r, const ses_input *in, ses_truncation how,
                            ses_err *e)
{
    if (!ses_encode(p->tokens, in, NULL, e)) return NULL;
    int64_t n = (int64_t)ses_encode_ctx_result(p->tokens)->n;
    if (n > p->settings.max_seq_len) {
        ses_encode_options o = truncation_options(p, how, 0);
        if (!ses_encode(p->tokens, in, &o, e)) return NULL;
        r->truncated += n - (int64_t)ses_encode_ctx_result(p->tokens)->n;
    }
    return add_encoding(p, r, in, ses_encode_ctx_result(p->tokens), e);
}

/* The windows of the encoded text: a large stride makes many of them. */
static bool check_windows(const ses_pipeline *p, ses_err *e)
{
    int64_t n = (int64_t)ses_encode_ctx_overflow_count(p->tokens) + 1, max = p->settings.max_request_tokens;
    return !max || n <= max / p->settings.max_seq_len ||
           ses_fail(e, SES_EUSAGE,
                    "the text needs %lld windows of %lld tokens, expected at most %lld tokens together: send "
                    "a shorter text or a smaller stride",
                    (long long)n, (long long)p->settings.max_seq_len, (long long)max);
}

bool ses_request_encode_windows(ses_pipeline *p, ses_request *r, const ses_input *in, ses_truncation how,
                                int64_t stride, ses_err *e)
{
    if (!ses_encode(p->tokens, in, NULL, e)) return false;
    if ((int64_t)ses_encode_ctx_result(p->tokens)->n <= p->settings.max_seq_len)
        return add_encoding(p, r, in, ses_encode_ctx_result(p->tokens), e) != NULL;
    ses_encode_options o = truncation_options(p, how, stride);
    if (!ses_encode(p->tokens, in, &o, e) || !check_windows(p, e)) return false;
    ses_seq *q = add_encoding(p, r, in, ses_encode_ctx_result(p->tokens), e);
    for (size_t i = 0; q && i < ses_encode_ctx_overflow_count(p->tokens); i++) {
        const ses_encoding *part = ses_encode_ctx_overflow(p->tokens, i, e);
        if (part && (int64_t)part->n > p->settings.max_seq_len)
            return ses_fail(e, SES_EARG, "a maximum length of %lld tokens leaves no room for the text",
                            (long long)p->settings.max_seq_len);
        q = part ? add_encoding(p, r, in, part, e) : NULL;
        if (q) q->tag = (int64_t)i + 1;
    }
    return q != NULL;
}

/* ---- texts ---- */

static ses_string decode(ses_pipeline *p, ses_encode_ctx *tokens, ses_request *r, const int32_t *id, size_t n,
                         bool keep_special, ses_err *e)
{
    const char *text = NULL;
    size_t len = 0;
    if (!ses_decode(tokens, id, n, keep_special, &text, &len, e)) return (ses_string){ 0 };
    ses_string s = ses_request_copy_string(r, text, len, e);
    if (s.p && p->tokenizer_config.clean_up_spaces) {
        s.n = ses_clean_up_tokenization((char *)(uintptr_t)s.p, s.n);
        ((char *)(uintptr_t)s.p)[s.n] = 0;
    }
    return s;
}

ses_string ses_request_decode(ses_pipeline *p, ses_request *r, const int32_t *id, size_t n, bool keep_special,
                              ses_err *e)
{
    return decode(p, p->tokens, r, id, n, keep_special, e);
}

ses_string ses_request_decode_target(ses_pipeline *p, ses_request *r, const int32_t *id, size_t n, ses_err *e)
{
    return decode(p, p->target_tokens, r, id, n, false, e);
}

ses_string ses_request_join_strings(ses_request *r, ses_string a, ses_string b, ses_err *e)
{
    char *s = ses_arena_alloc(&r->mem, a.n + b.n + 1, e);
    if (!s) return (ses_string){ 0 };
    if (a.n) memcpy(s, a.p, a.n);
    if (b.n) memcpy(s + a.n, b.p, b.n);
    s[a.n + b.n] = 0;
    return (ses_string){ s, a.n + b.n };
}

ses_string ses_request_lowercase(ses_request *r, ses_string s, ses_err *e)
{
    ses_buf b = { 0 };
    ses_lower_append(&b, s.p, s.n);
    ses_string to =
        ses_buf_ok(&b, e) ? ses_request_copy_string(r, b.data ? b.data : "", b.len, e) : (ses_string){ 0 };
    ses_buf_free(&b);
    return to;
}

ses_string ses_pipeline_label(const ses_pipeline *p, ses_arena *mem, int64_t i, ses_err *e)
{
    char number[32];
    snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
    const ses_json *config = ses_json_root(p->config);
    const char *name = p->classifier
                           ? ses_json_string(ses_json_get(ses_json_get(config, "id2label"), number + 6), NULL)
                           : ses_model_label_name(p->model, i);
    if (!name) name = number;
    char *copy = ses_arena_strndup(mem, name, strlen(name), e);
    return (ses_string){ copy, copy ? strlen(copy) : 0 };
}

bool ses_pipeline_split_list(ses_pipeline *p, const ses_opt_list *l, bool trim, ses_string **out, size_t *n,
                             ses_err *e)
{
    size_t parts = 0;
    for (size_t i = 0; i < l->n; i++) {
        parts++;
        for (const char *c = l->item[i]; *c; c++) parts += *c == ',';
    }
    *n = 0;
    *out = ses_arena_array(&p->mem, parts + 1, sizeof **out, e);
    if (!*out) return false;
    for (size_t i = 0; i < l->n; i++)
        for (const char *at = l->item[i];; at++) {
            size_t len = strcspn(at, ",");
            ses_string s = { at, len };
            if (trim) s = ses_trim(s);
            s.p = ses_arena_strndup(&p->mem, s.p, s.n, e);
            if (!s.p) return false;
            if (s.n) (*out)[(*n)++] = s;
            at += len;
            if (!*at) break;
        }
    return true;
}

/* ---- copying an item ---- */

/* Replaces *s by a copy, as valid UTF-8. */
static bool copy_in_place(ses_request *r, ses_string *s, ses_err *e)
{
    if (!s->p) return true;
    if (ses_utf8_valid(s->p, s->n) == s->n) {
        *s = ses_request_copy_string(r, s->p, s->n, e);
        return s->p != NULL;
    }
    ses_buf b = { 0 };
    ses_utf8_replace_invalid(&b, s->p, s->n);
    bool ok = ses_buf_ok(&b, e);
    if (ok) *s = ses_request_copy_string(r, b.data, b.len, e);
    ses_buf_free(&b);
    return ok && s->p;
}

static const ses_setting *copy_settings(ses_request *r, const ses_setting *from, ses_err *e)
{
    size_t n = 0;
    while (from[n].name) n++;
    ses_setting *to = ses_arena_array(&r->mem, n + 1, sizeof *to, e);
    for (size_t i = 0; to && i < n; i++) {
        const char *value = from[i].value;
        to[i].name = ses_arena_strndup(&r->mem, from[i].name, strlen(from[i].name), e);
        to[i].value = value ? ses_arena_strndup(&r->mem, value, strlen(value), e) : NULL;
        if (!to[i].name || (value && !to[i].value)) return NULL;
    }
    return to;
}

bool ses_request_copy_item(ses_request *r, const ses_item *item, ses_err *e)
{
    r->item = *item;
    if (!copy_in_place(r, &r->item.text, e) || !copy_in_place(r, &r->item.pair, e)) return false;
    if (item->settings && !(r->item.settings = copy_settings(r, item->settings, e))) return false;
    if (!item->list) return true;
    ses_string *list = copy(r, item->list, item->n_list, sizeof *list, e);
    r->item.list = list;
    for (size_t i = 0; list && i < item->n_list; i++)
        if (!copy_in_place(r, &list[i], e)) return false;
    return list != NULL;
}
