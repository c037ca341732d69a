/* Growing byte buffer; lists separated by '|'; escaping for messages. */
#include "str.h"

#include "alloc.h"
#include "base/unicode/utf8.h"

#include <stdio.h>
#include <string.h>

enum { MIN_CAPACITY = 64 };

bool ses_buf_reserve(ses_buf *b, size_t more)
{
    if (b->wanted) return false;
    if (b->data && more <= b->cap - b->len) return true;
    size_t need, cap;
    if (!ses_add_size(b->len, more, &need) || !ses_add_size(need, need / 2, &cap) || cap == SIZE_MAX)
        return b->wanted = SIZE_MAX, false;
    if (cap < MIN_CAPACITY) cap = MIN_CAPACITY;
    if (b->limit && need > b->limit) return b->wanted = need, false;
    if (b->limit && cap > b->limit) cap = b->limit;
    char *data = ses_realloc_array(b->data, cap + 1, 1, NULL);
    if (!data) return b->wanted = cap + 1, false;
    if (!b->data) data[0] = 0;
    b->data = data;
    b->cap = cap;
    return true;
}

bool ses_buf_append(ses_buf *b, const void *p, size_t n)
{
    if (!ses_buf_reserve(b, n)) return false;
    if (n) memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = 0;
    return true;
}

bool ses_buf_put(ses_buf *b, char c) { return ses_buf_append(b, &c, 1); }
bool ses_buf_puts(ses_buf *b, const char *s) { return ses_buf_append(b, s, strlen(s)); }

bool ses_buf_vappendf(ses_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) return b->wanted = SIZE_MAX, false;
    if (!ses_buf_reserve(b, (size_t)n)) return false;
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return true;
}

bool ses_buf_appendf(ses_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool ok = ses_buf_vappendf(b, fmt, ap);
    va_end(ap);
    return ok;
}

bool ses_buf_ok(const ses_buf *b, ses_err *e)
{
    if (!b->wanted) return true;
    if (b->limit && b->wanted > b->limit)
        return ses_fail(e, SES_ENOMEM, "buffer limit of %zu bytes reached (%zu requested)", b->limit,
                        b->wanted);
    return ses_fail(e, SES_ENOMEM, "out of memory (%zu bytes requested)", b->wanted);
}

void ses_buf_free(ses_buf *b)
{
    ses_free(b->data);
    *b = (ses_buf){ 0 };
}

bool ses_equal(const char *s, size_t n, const char *word) { return strlen(word) == n && !memcmp(s, word, n); }

bool ses_list_at(const char *list, size_t i, const char **item, size_t *len)
{
    for (; i && list; i--) {
        list = strchr(list, '|');
        if (list) list++;
    }
    if (!list) return false;
    *item = list;
    *len = strcspn(list, "|");
    return true;
}

bool ses_list_has(const char *list, const char *word)
{
    const char *item;
    size_t len;
    for (size_t i = 0; ses_list_at(list, i, &item, &len); i++)
        if (ses_equal(item, len, word)) return true;
    return false;
}

bool ses_comma_item(const char *list, size_t i, ses_string *out)
{
    for (; list && i; i--) list = list[strcspn(list, ",")] ? list + strcspn(list, ",") + 1 : NULL;
    if (list) *out = (ses_string){ list, strcspn(list, ",") };
    return list != NULL;
}

size_t ses_list_len(const char *list)
{
    const char *item;
    size_t len, n = 0;
    while (ses_list_at(list, n, &item, &len)) n++;
    return n;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

ses_string ses_trim(ses_string s)
{
    while (s.n && is_space(*s.p)) s.p++, s.n--;
    while (s.n && is_space(s.p[s.n - 1])) s.n--;
    return s;
}

int ses_hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *ses_quote(char *out, size_t size, const char *s, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    size_t used = 0, keep = 0; /* keep: bytes to keep if "..." must follow */
    if (!size) return out;
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t k = ses_utf8_decode(s + i, n - i, &cp);
        bool plain = k && cp >= 0x20 && !(cp >= 0x7F && cp < 0xA0);
        size_t take = k ? k : 1, need = plain ? take : 4 * take;
        if (used + 4 <= size) keep = used;
        if (used + need + 1 > size) {
            memcpy(out + keep, "...", size < 4 ? size - 1 : 3);
            used = size < 4 ? size - 1 : keep + 3;
            break;
        }
        for (size_t j = 0; j < take; j++) {
            unsigned char c = (unsigned char)s[i + j];
            if (plain) {
                out[used++] = (char)c;
            } else {
                out[used++] = '\\', out[used++] = 'x';
                out[used++] = hex[c >> 4], out[used++] = hex[c & 15];
            }
        }
        i += take;
    }
    out[used] = 0;
    return out;
}

ses_quoted ses_quoted_of(const char *s, size_t n)
{
    ses_quoted q;
    ses_quote(q.s, sizeof q.s, s, n);
    return q;
}
