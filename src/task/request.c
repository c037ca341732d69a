/* An item at work: its sequences, and what tasks put into its answer. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "task.h"
#include "base/unicode/utf8_replace.h"

#include <stdio.h>

/* ---- memory ---- */

ses_string ses_request_copy_string(ses_request *j, const char *s, size_t n, ses_err *e)
{
    char *copy = ses_arena_strndup(&j->mem, s ? s : "", s ? n : 0, e);
    return (ses_string){ copy, copy && s ? n : 0 };
}

/* The next of a growing array on the job; the old place is given up with the job. */
static void *grow(ses_request *j, void *at, size_t n, size_t *cap, size_t size, ses_err *e)
{
    if (n < *cap) return at;
    size_t more = *cap ? 2 * *cap : 4;
    void *to = ses_arena_array(&j->mem, more, size, e);
    if (to && n) memcpy(to, at, n * size);
    if (to) *cap = more;
    return to;
}

ses_result_row *ses_request_add_row(ses_request *j, ses_err *e)
{
    ses_result_row *row = grow(j, j->row, j->n_rows, &j->cap_rows, sizeof *row, e);
    if (!row) return NULL;
    j->row = row;
    return &row[j->n_rows++];
}

/* ---- sequences ---- */

static void *copy(ses_request *j, const void *from, size_t n, size_t size, ses_err *e)
{
    void *to = ses_arena_array(&j->mem, n + 1, size, e);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

ses_seq *ses_request_add_sequence(ses_pipeline *p, ses_request *j, const ses_encoding *from, ses_err *e)
{
    (void)p;
    ses_seq *seq = grow(j, j->seq, j->n_seqs, &j->cap_seqs, sizeof *seq, e);
    if (!seq) return NULL;
    j->seq = seq;
    ses_seq *q = &seq[j->n_seqs];
    size_t n = from->n;
    if (!n) {
        ses_fail(e, SES_EARG, "nothing to read: the text gives no token");
        return NULL;
    }
    *q = (ses_seq){ .n = n };
    q->id = copy(j, from->id, n, sizeof *q->id, e);
    q->type = ses_arena_array(&j->mem, n + 1, sizeof *q->type, e);
    q->point = copy(j, from->char_offset, n, sizeof *q->point, e);
    q->byte = copy(j, from->byte_offset, n, sizeof *q->byte, e);
    q->word = copy(j, from->word_id, n, sizeof *q->word, e);
    q->sequence = copy(j, from->sequence_id, n, sizeof *q->sequence, e);
    q->special = copy(j, from->special_mask, n, sizeof *q->special, e);
    if (!q->id || !q->type || !q->point || !q->byte || !q->word || !q->sequence || !q->special) return NULL;
    for (size_t i = 0; i < n; i++) q->type[i] = from->type_id[i];
    j->tokens += (int64_t)n;
    j->n_seqs++;
    return q;
}

static ses_encode_options cutting(const ses_pipeline *p, ses_truncation how, int64_t stride)
{
    return (ses_encode_options){ .truncation = how,
                                 .max_length = p->limit,
                                 .stride = stride,
                                 .full_overflow = true,
                                 .truncate_left = p->facts.truncate_left };
}

ses_seq *ses_request_encode(ses_pipeline *p, ses_request *j, const ses_input *in, ses_truncation how,
                            ses_err *e)
{
    if (!ses_encode(p->tokens, in, NULL, e)) return NULL;
    int64_t n = (int64_t)ses_tokens_result(p->tokens)->n;
    if (n > p->limit) {
        ses_encode_options o = cutting(p, how, 0);
        if (!ses_encode(p->tokens, in, &o, e)) return NULL;
        j->cut += n - (int64_t)ses_tokens_result(p->tokens)->n;
    }
    return ses_request_add_sequence(p, j, ses_tokens_result(p->tokens), e);
}

bool ses_request_encode_windows(ses_pipeline *p, ses_request *j, const ses_input *in, ses_truncation how,
                                int64_t stride, ses_err *e)
{
    if (!ses_encode(p->tokens, in, NULL, e)) return false;
    if ((int64_t)ses_tokens_result(p->tokens)->n <= p->limit)
        return ses_request_add_sequence(p, j, ses_tokens_result(p->tokens), e) != NULL;
    ses_encode_options o = cutting(p, how, stride);
    if (!ses_encode(p->tokens, in, &o, e)) return false;
    ses_seq *q = ses_request_add_sequence(p, j, ses_tokens_result(p->tokens), e);
    for (size_t i = 0; q && i < ses_tokens_overflow_count(p->tokens); i++) {
        const ses_encoding *part = ses_tokens_overflow(p->tokens, i, e);
        if (part && (int64_t)part->n > p->limit)
            return ses_fail(e, SES_EARG, "windows of %lld tokens have no room for the text",
                            (long long)p->limit);
        q = part ? ses_request_add_sequence(p, j, part, e) : NULL;
        if (q) q->mark = (int64_t)i + 1;
    }
    return q != NULL;
}

/* ---- texts ---- */

ses_string ses_request_decode(ses_pipeline *p, ses_request *j, const int32_t *id, size_t n, bool keep_special,
                              ses_err *e)
{
    const char *text = NULL;
    size_t len = 0;
    if (!ses_decode(p->tokens, id, n, keep_special, &text, &len, e)) return (ses_string){ 0 };
    ses_string s = ses_request_copy_string(j, text, len, e);
    if (s.p && p->facts.clean_up_spaces) {
        s.n = ses_clean_up_tokenization((char *)(uintptr_t)s.p, s.n);
        ((char *)(uintptr_t)s.p)[s.n] = 0;
    }
    return s;
}

ses_string ses_request_lowercase(ses_request *j, ses_string s, ses_err *e)
{
    ses_buf b = { 0 };
    ses_lower_append(&b, s.p, s.n);
    ses_string to =
        ses_buf_ok(&b, e) ? ses_request_copy_string(j, b.data ? b.data : "", b.len, e) : (ses_string){ 0 };
    ses_buf_free(&b);
    return to;
}

ses_string ses_request_label(ses_pipeline *p, ses_request *j, int64_t i, ses_err *e)
{
    const char *name = ses_model_label_name(p->model, i);
    char number[32];
    if (name) return ses_request_copy_string(j, name, strlen(name), e);
    int n = snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
    return ses_request_copy_string(j, number, (size_t)n, e);
}

static ses_string trimmed(ses_string s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t')) s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) s.n--;
    return s;
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
            if (trim) s = trimmed(s);
            s.p = ses_arena_strndup(&p->mem, s.p, s.n, e);
            if (!s.p) return false;
            if (s.n) (*out)[(*n)++] = s;
            at += len;
            if (!*at) break;
        }
    return true;
}

/* ---- an item's own copy ---- */

static bool take_string(ses_request *j, ses_string *s, ses_err *e)
{
    if (!s->p) return true;
    if (ses_utf8_valid(s->p, s->n) == s->n) {
        *s = ses_request_copy_string(j, s->p, s->n, e);
        return s->p != NULL;
    }
    ses_buf b = { 0 };
    ses_utf8_replace_invalid(&b, s->p, s->n);
    bool ok = ses_buf_ok(&b, e);
    if (ok) *s = ses_request_copy_string(j, b.data, b.len, e);
    ses_buf_free(&b);
    return ok && s->p;
}

bool ses_request_copy_item(ses_request *j, const ses_item *item, ses_err *e)
{
    j->item = *item;
    if (!take_string(j, &j->item.text, e) || !take_string(j, &j->item.pair, e)) return false;
    if (!item->list) return true;
    ses_string *list = copy(j, item->list, item->n_list, sizeof *list, e);
    j->item.list = list;
    for (size_t i = 0; list && i < item->n_list; i++)
        if (!take_string(j, &list[i], e)) return false;
    return list != NULL;
}
