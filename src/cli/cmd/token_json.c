/* Writes encodings as JSON directly into a buffer. */
#include "token_json.h"

#include <string.h>

enum { DIGITS = 11 }; /* maximum length of an int32_t, sign included */

static char *put_uint(char *p, uint32_t x)
{
    char text[DIGITS];
    int n = 0;
    do text[n++] = (char)('0' + x % 10);
    while (x /= 10);
    while (n) *p++ = text[--n];
    return p;
}

static char *put_int(char *p, int32_t x)
{
    if (x >= 0) return put_uint(p, (uint32_t)x);
    *p++ = '-';
    return put_uint(p, -(uint32_t)x);
}

/* Reserves space for n items of `each` bytes and returns its start. */
static char *reserve(ses_buf *out, size_t n, size_t each)
{
    return ses_buf_reserve(out, n * each + 32) ? out->data + out->len : NULL;
}

static void put_key(ses_buf *out, const char *name, bool first)
{
    ses_buf_puts(out, first ? "{\"" : ",\"");
    ses_buf_puts(out, name);
    ses_buf_puts(out, "\":");
}

static void end_array(ses_buf *out, char *p, bool any)
{
    if (any) p--; /* the last comma */
    *p++ = ']';
    out->len = (size_t)(p - out->data);
}

/* With `null`, negative values are written as null. */
static void put_ints(ses_buf *out, const char *name, const int32_t *x, size_t n, bool null, bool first)
{
    put_key(out, name, first);
    char *p = reserve(out, n, DIGITS + 1);
    if (!p) return;
    *p++ = '[';
    for (size_t i = 0; i < n; i++) {
        if (null && x[i] < 0)
            memcpy(p, "null", 4), p += 4;
        else
            p = put_int(p, x[i]);
        *p++ = ',';
    }
    end_array(out, p, n > 0);
}

static void put_bytes(ses_buf *out, const char *name, const uint8_t *x, size_t n)
{
    put_key(out, name, false);
    char *p = reserve(out, n, 4);
    if (!p) return;
    *p++ = '[';
    for (size_t i = 0; i < n; i++) {
        p = put_uint(p, x[i]);
        *p++ = ',';
    }
    end_array(out, p, n > 0);
}

static void put_offsets(ses_buf *out, const char *name, const ses_offset *x, size_t n)
{
    put_key(out, name, false);
    char *p = reserve(out, n, 2 * DIGITS + 4);
    if (!p) return;
    *p++ = '[';
    for (size_t i = 0; i < n; i++) {
        *p++ = '[';
        p = put_uint(p, x[i].begin);
        *p++ = ',';
        p = put_uint(p, x[i].end);
        *p++ = ']';
        *p++ = ',';
    }
    end_array(out, p, n > 0);
}

void ses_buf_put_json_string(ses_buf *out, const char *s, size_t n)
{
    if (!ses_buf_reserve(out, 6 * n + 2)) return;
    char *p = out->data + out->len;
    *p++ = '"';
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
            *p++ = (char)c;
        } else if (c == '"' || c == '\\') {
            *p++ = '\\';
            *p++ = (char)c;
        } else {
            static const char hex[] = "0123456789abcdef";
            memcpy(p, "\\u00", 4);
            p[4] = hex[c >> 4];
            p[5] = hex[c & 15];
            p += 6;
        }
    }
    *p++ = '"';
    out->len = (size_t)(p - out->data);
}

static void put_strings(ses_buf *out, const ses_encode_ctx *k, const ses_encoding *x)
{
    put_key(out, "tokens", false);
    ses_buf_put(out, '[');
    for (size_t i = 0; i < x->n; i++) {
        size_t n = 0;
        const char *s = ses_encode_ctx_string(k, x, i, &n);
        if (i) ses_buf_put(out, ',');
        ses_buf_put_json_string(out, s ? s : "", s ? n : 0);
    }
    ses_buf_put(out, ']');
}

static void put_encoding(ses_buf *out, const ses_encode_ctx *k, const ses_encoding *x, bool mask)
{
    put_ints(out, "ids", x->id, x->n, false, true);
    put_strings(out, k, x);
    put_offsets(out, "offsets", x->char_offset, x->n);
    put_offsets(out, "byte_offsets", x->byte_offset, x->n);
    put_ints(out, "word_ids", x->word_id, x->n, true, false);
    put_bytes(out, "type_ids", x->type_id, x->n);
    put_bytes(out, "special_tokens_mask", x->special_mask, x->n);
    if (mask) put_bytes(out, "attention_mask", x->attention_mask, x->n);
}

bool ses_token_json(ses_encode_ctx *k, bool mask, ses_buf *out, ses_err *e)
{
    size_t parts = ses_encode_ctx_overflow_count(k);
    put_encoding(out, k, ses_encode_ctx_result(k), mask);
    if (parts) put_key(out, "overflowing", false);
    for (size_t i = 0; i < parts; i++) {
        const ses_encoding *part = ses_encode_ctx_overflow(k, i, e);
        if (!part) return false;
        ses_buf_put(out, i ? ',' : '[');
        put_encoding(out, k, part, mask);
        ses_buf_put(out, '}');
    }
    ses_buf_puts(out, parts ? "]}\n" : "}\n");
    return ses_buf_ok(out, e);
}
