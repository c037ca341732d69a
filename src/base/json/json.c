/* JSON parser: one pass over the text, without recursion. */
#include "json_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#include <assert.h>
#include <stdio.h>

typedef struct frame {
    ses_json *first; /* child on the stack */
    uint32_t pos;
    bool object;
} frame;

typedef struct parser {
    const char *text;
    size_t n, at;
    ses_json_doc *d;
    ses_json *top;  /* next free slot of the stack */
    ses_json *done; /* lowest final node */
    char *str;      /* next free byte of d->str */
    ses_hash_key key;
    int depth;
    frame frame[SES_JSON_MAX_DEPTH];
    ses_err *e;
} parser;

SES_PRINTF(3, 4) static bool refuse(parser *p, size_t at, const char *fmt, ...)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at && i < p->n; i++)
        if (p->text[i] == '\n') line++, start = i + 1;
    char what[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return ses_fail(p->e, SES_EFORMAT, "line %zu, column %zu (byte %zu): %s", line, at - start + 1, at, what);
}

/* The character at `at`, for messages: "'x'", "byte 0x01" or "the end of the text". */
typedef struct found {
    char s[24];
} found;

static found char_at(const parser *p, size_t at)
{
    found out = { "the end of the text" };
    if (at >= p->n) return out;
    unsigned char c = (unsigned char)p->text[at];
    if (c > 0x20 && c < 0x7F)
        snprintf(out.s, sizeof out.s, "'%c'", c);
    else
        snprintf(out.s, sizeof out.s, "byte 0x%02x", c);
    return out;
}

static ses_json *push(parser *p, ses_json_type type, size_t pos)
{
    assert(p->top < p->done);
    ses_json *v = p->top++;
    v->u = 0;
    v->pos = (uint32_t)pos;
    v->type = type;
    v->len = 0;
    return v;
}

static inline char peek(const parser *p) { return p->at < p->n ? p->text[p->at] : 0; }

static inline void skip_space(parser *p)
{
    while (p->at < p->n) {
        char c = p->text[p->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') break;
        p->at++;
    }
}

/* ---- strings ---- */

/* The four digits after \u at `at`, or -1. */
static int32_t hex4(const parser *p, size_t at)
{
    int32_t x = 0;
    for (size_t i = at; i < at + 4; i++) {
        int digit = i < p->n ? ses_hex_digit(p->text[i]) : -1;
        if (digit < 0) return -1;
        x = x << 4 | digit;
    }
    return x;
}

static bool unicode_escape(parser *p)
{
    size_t start = p->at;
    int32_t x = hex4(p, start + 2);
    if (x < 0) return refuse(p, start, "\\u needs four hexadecimal digits");
    p->at += 6;
    if (x >= 0xDC00 && x <= 0xDFFF)
        return refuse(p, start, "\\u%04x: low surrogate without a high surrogate before it", (unsigned)x);
    if (x >= 0xD800 && x <= 0xDBFF) {
        int32_t y =
            p->at + 1 < p->n && p->text[p->at] == '\\' && p->text[p->at + 1] == 'u' ? hex4(p, p->at + 2) : -1;
        if (y < 0xDC00 || y > 0xDFFF)
            return refuse(p, start, "\\u%04x: high surrogate without a low surrogate after it", (unsigned)x);
        p->at += 6;
        x = 0x10000 + ((x & 0x3FF) << 10 | (y & 0x3FF));
    }
    p->str += ses_utf8_encode((uint32_t)x, p->str); /* at most 4 bytes for 12, or 3 for 6 */
    return true;
}

static bool escape(parser *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = p->at + 1 < p->n ? p->text[p->at + 1] : 0;
    if (c == 'u') return unicode_escape(p);
    const char *at = c ? strchr(from, c) : NULL;
    if (!at)
        return refuse(p, p->at, "invalid escape in a string: %s after the backslash",
                      char_at(p, p->at + 1).s);
    *p->str++ = to[at - from];
    p->at += 2;
    return true;
}

/* Index of the first byte in memory whose top bit is set in mask (not 0); *before: the bytes of x before
 * it. */
static inline size_t first_byte(uint64_t mask, uint64_t x, uint64_t *before)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    size_t i = (size_t)__builtin_ctzll(mask) / 8;
    *before = i ? x & (~(uint64_t)0 >> (64 - 8 * i)) : 0;
    return i;
#else
    (void)mask, (void)x;
    *before = 0;
    return 0; /* the caller checks byte by byte */
#endif
}

/* Advances p->at to the next quote, backslash, control character or the end; *high: it skipped bytes above
 * 0x7F. */
static void plain_run(parser *p, bool *high)
{
    const uint64_t one = 0x0101010101010101u, top = 0x8080808080808080u;
    const char *s = p->text;
    size_t i = p->at, n = p->n;
    uint64_t all_bits = 0;
    for (uint64_t x; n - i >= sizeof x; i += sizeof x) {
        memcpy(&x, s + i, sizeof x);
        uint64_t quote = x ^ one * '"', slash = x ^ one * '\\';
        /* Sets the top bit of bytes below 0x20 or zero after the xor. A borrow may set further bits, but only
         * after a correct one. */
        uint64_t stop = ((x - one * 0x20) & ~x) | ((quote - one) & ~quote) | ((slash - one) & ~slash);
        if (stop & top) {
            uint64_t before;
            i += first_byte(stop & top, x, &before);
            all_bits |= before;
            break;
        }
        all_bits |= x;
    }
    for (; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\' || c < 0x20) break;
        all_bits |= c;
    }
    *high = (all_bits & top) != 0;
    p->at = i;
}

/* Pushes the string whose opening quote is at p->at. */
static bool read_string(parser *p)
{
    size_t start = p->at++;
    ses_json *v = push(p, SES_JSON_STRING, start);
    v->str = p->str;
    for (;;) {
        size_t run = p->at;
        bool high;
        plain_run(p, &high);
        size_t len = p->at - run, good = high ? ses_utf8_valid(p->text + run, len) : len;
        if (good < len) return refuse(p, run + good, "invalid UTF-8: %s", char_at(p, run + good).s);
        memcpy(p->str, p->text + run, len);
        p->str += len;
        if (p->at == p->n) return refuse(p, start, "string without its closing quote");
        char c = p->text[p->at];
        if (c == '"') break;
        if (c != '\\') return refuse(p, p->at, "control character in a string: %s", char_at(p, p->at).s);
        if (!escape(p)) return false;
    }
    p->at++;
    v->len = (uint32_t)(p->str - v->str) & SES_JSON_MAX_BYTES;
    *p->str++ = 0;
    return true;
}

/* ---- numbers and words ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_digits(parser *p)
{
    while (is_digit(peek(p))) p->at++;
}

/* Reads -?(0|[1-9][0-9]*) into v; *exact: it fits 64 bits. */
static bool read_integer(parser *p, ses_json *v, bool *exact)
{
    const char *s = p->text + p->at, *end = p->text + p->n;
    bool negative = *s == '-', fits = true;
    s += negative;
    const char *first = s;
    uint64_t u = 0;
    for (; s < end && is_digit(*s); s++) {
        uint64_t digit = (uint64_t)(*s - '0');
        if (s - first < 19) /* cannot overflow yet */
            u = 10 * u + digit;
        else
            fits =
                fits && !__builtin_mul_overflow(u, (uint64_t)10, &u) && !__builtin_add_overflow(u, digit, &u);
    }
    size_t start = p->at;
    p->at = (size_t)(s - p->text);
    if (s == first) return refuse(p, p->at, "a digit expected after '-', not %s", char_at(p, p->at).s);
    if (*first == '0' && s - first > 1) return refuse(p, start, "number with a leading zero");
    *exact = fits && !(negative && u > (uint64_t)INT64_MAX + 1);
    v->type = !negative && u > INT64_MAX ? SES_JSON_UINT : SES_JSON_INT;
    v->u = negative ? 0 - u : u;
    return true;
}

static bool read_number(parser *p)
{
    size_t start = p->at;
    ses_json *v = push(p, SES_JSON_INT, start);
    bool exact = false;
    if (!read_integer(p, v, &exact)) return false;
    char c = peek(p);
    bool integer = c != '.' && c != 'e' && c != 'E';
    if (exact && integer) return true;
    if (c == '.') {
        p->at++;
        if (!is_digit(peek(p)))
            return refuse(p, p->at, "a digit expected after '.', not %s", char_at(p, p->at).s);
        skip_digits(p);
        c = peek(p);
    }
    if (c == 'e' || c == 'E') {
        p->at++;
        if (peek(p) == '+' || peek(p) == '-') p->at++;
        if (!is_digit(peek(p)))
            return refuse(p, p->at, "a digit expected in the exponent, not %s", char_at(p, p->at).s);
        skip_digits(p);
    }
    v->type = SES_JSON_REAL;
    v->len = integer ? SES_JSON_WAS_INTEGER : 0;
    if (!ses_parse_double(p->text + start, p->at - start, &v->d))
        return refuse(p, start, "number out of range");
    return true;
}

static bool read_word(parser *p)
{
    static const struct {
        const char *word;
        ses_json_type type;
        bool b;
    } words[] = { { "null", SES_JSON_NULL, false },
                  { "true", SES_JSON_BOOL, true },
                  { "false", SES_JSON_BOOL, false } };
    for (size_t i = 0; i < SES_LEN(words); i++) {
        size_t len = strlen(words[i].word);
        if (p->n - p->at < len || memcmp(p->text + p->at, words[i].word, len) != 0) continue;
        push(p, words[i].type, p->at)->b = words[i].b;
        p->at += len;
        return true;
    }
    if (p->at == 0 && p->n >= 3 && memcmp(p->text, "\xEF\xBB\xBF", 3) == 0)
        return refuse(p, 0, "byte order mark at the start");
    return refuse(p, p->at, "a value expected, not %s", char_at(p, p->at).s);
}

/* ---- containers ---- */

static bool refuse_duplicate(parser *p, const ses_json *key)
{
    char name[80];
    return refuse(p, key->pos, "key \"%s\" appears twice", ses_quote(name, sizeof name, key->str, key->len));
}

/* Inserts the key of a member into the table; false if it exists. */
static bool claim_slot(ses_json_lookup *t, const ses_json *kid, size_t member, uint64_t hash)
{
    const ses_json *key = kid + 2 * member;
    uint32_t tag = ses_json_tag(hash);
    size_t at = hash & t->mask;
    for (uint32_t x; (x = t->slot[at]); at = (at + 1) & t->mask) {
        const ses_json *other = kid + 2 * (size_t)((x & SES_JSON_SLOT) - 1);
        if ((x & ~(uint32_t)SES_JSON_SLOT) == tag && ses_json_same(other, key->str, key->len)) return false;
    }
    t->slot[at] = tag | ((uint32_t)member + 1);
    return true;
}

/* Refuses duplicate keys. A large object gets a lookup table in the node before kid. */
static bool index_object(parser *p, const ses_json *kid, size_t members)
{
    if (members <= SES_JSON_LINEAR) {
        for (size_t i = 1; i < members; i++)
            for (size_t j = 0; j < i; j++)
                if (ses_json_same(kid + 2 * j, kid[2 * i].str, kid[2 * i].len))
                    return refuse_duplicate(p, kid + 2 * i);
        return true;
    }
    size_t slots = 32;
    while (slots < 2 * members) slots *= 2;
    ses_json_lookup *t = ses_arena_array(&p->d->arena, 1, sizeof *t + slots * sizeof *t->slot, p->e);
    if (!t) return false;
    t->key = p->key;
    t->mask = (uint32_t)slots - 1;
    uint64_t hash[16]; /* computed some keys ahead, to prefetch their slots */
    for (size_t i = 0; i < members; i += SES_LEN(hash)) {
        size_t n = members - i < SES_LEN(hash) ? members - i : SES_LEN(hash);
        for (size_t j = 0; j < n; j++) {
            const ses_json *key = kid + 2 * (i + j);
            hash[j] = ses_hash(t->key, key->str, key->len);
            __builtin_prefetch(&t->slot[hash[j] & t->mask], 1);
        }
        for (size_t j = 0; j < n; j++)
            if (!claim_slot(t, kid, i + j, hash[j])) return refuse_duplicate(p, kid + 2 * (i + j));
    }
    p->done--;
    p->done->lookup = t;
    return true;
}

static bool close(parser *p)
{
    const frame *f = &p->frame[--p->depth];
    size_t n = (size_t)(p->top - f->first);
    p->at++;
    p->done -= n;
    memmove(p->done, f->first, n * sizeof *p->top);
    p->top = f->first;
    const ses_json *kid = p->done;
    if (f->object && !index_object(p, kid, n / 2)) return false;
    ses_json *v = push(p, f->object ? SES_JSON_OBJECT : SES_JSON_ARRAY, f->pos);
    v->kid = kid;
    v->len = (uint32_t)(f->object ? n / 2 : n) & SES_JSON_MAX_BYTES;
    return true;
}

/* A key and its colon; the value follows. */
static bool read_key(parser *p)
{
    skip_space(p);
    if (peek(p) != '"') return refuse(p, p->at, "a key expected, not %s", char_at(p, p->at).s);
    if (!read_string(p)) return false;
    skip_space(p);
    if (peek(p) != ':') return refuse(p, p->at, "':' expected after a key, not %s", char_at(p, p->at).s);
    p->at++;
    return true;
}

typedef enum { FAILED, WHOLE /* a value is complete */, MORE /* a value must follow */ } step;

static step open(parser *p)
{
    bool object = peek(p) == '{';
    if (p->depth == SES_JSON_MAX_DEPTH)
        return refuse(p, p->at, "nested deeper than %d levels", SES_JSON_MAX_DEPTH), FAILED;
    p->frame[p->depth++] = (frame){ p->top, (uint32_t)p->at, object };
    p->at++;
    skip_space(p);
    if (peek(p) == (object ? '}' : ']')) return close(p) ? WHOLE : FAILED;
    return !object || read_key(p) ? MORE : FAILED;
}

static step read_value(parser *p)
{
    skip_space(p);
    char c = peek(p);
    if (c == '{' || c == '[') return open(p);
    bool ok = c == '"' ? read_string(p) : c == '-' || is_digit(c) ? read_number(p) : read_word(p);
    return ok ? WHOLE : FAILED;
}

static step after_value(parser *p)
{
    bool object = p->frame[p->depth - 1].object;
    skip_space(p);
    char c = peek(p);
    if (c == (object ? '}' : ']')) return close(p) ? WHOLE : FAILED;
    if (c != ',') {
        refuse(p, p->at, "',' or '%c' expected, not %s", object ? '}' : ']', char_at(p, p->at).s);
        return FAILED;
    }
    p->at++;
    return !object || read_key(p) ? MORE : FAILED;
}

static bool read_document(parser *p)
{
    for (step s = MORE; p->depth || s == MORE;) {
        s = s == MORE ? read_value(p) : after_value(p);
        if (s == FAILED) return false;
    }
    skip_space(p);
    if (p->at < p->n)
        return refuse(p, p->at, "nothing expected after the value, not %s", char_at(p, p->at).s);
    return true;
}

/* Number of bytes that can precede a value or key. */
static size_t count_structure(const char *s, size_t n)
{
    size_t total = 0;
    while (n) {
        size_t part = n < 255 ? n : 255;
        unsigned char count = 0; /* a byte, so that the loop vectorizes */
        for (size_t i = 0; i < part; i++)
            count = (unsigned char)(count + ((s[i] == ',') | (s[i] == ':') | (s[i] == '[') | (s[i] == '{')));
        total += count;
        s += part;
        n -= part;
    }
    return total;
}

ses_json_doc *ses_json_parse(const char *text, size_t n, ses_err *e)
{
    if (n > SES_JSON_MAX_BYTES) {
        ses_fail(e, SES_EFORMAT, "JSON text of %zu bytes, the maximum is %d", n, SES_JSON_MAX_BYTES);
        return NULL;
    }
    ses_json_doc *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    size_t marks = count_structure(text, n);
    size_t nodes = marks + marks / 16 + 1; /* an object with a lookup node has at least 17 marks */
    d->node = ses_realloc_array(NULL, nodes, sizeof *d->node, e);
    d->str = ses_realloc_array(NULL, n + 1, 1, e);
    if (!d->node || !d->str) goto fail;
    parser p = {
        .text = text, .n = n, .d = d, .top = d->node, .done = d->node + nodes, .str = d->str, .e = e
    };
    p.key = ses_hash_key_new();
    if (!read_document(&p)) goto fail;
    return d;
fail:
    ses_json_free(d);
    return NULL;
}

ses_json_doc *ses_json_parse_line(const char *line, size_t n, ses_err *e)
{
    static const char only[] = "line 1, ";
    ses_json_doc *d = ses_json_parse(line, n, e);
    if (!d && e && !strncmp(e->msg, only, sizeof only - 1))
        memmove(e->msg, e->msg + sizeof only - 1, strlen(e->msg) - (sizeof only - 1) + 1);
    return d;
}

ses_json_doc *ses_json_load(const char *path, size_t max_bytes, ses_err *e)
{
    size_t n;
    char *text = ses_file_read(path, max_bytes, &n, e);
    if (!text) return NULL;
    ses_json_doc *d = ses_json_parse(text, n, e);
    if (!d) ses_wrap(e, "%s", path);
    ses_free(text);
    return d;
}

ses_json_doc *ses_json_load_object(const char *path, size_t max_bytes, ses_err *e)
{
    ses_json_doc *d = ses_json_load(path, max_bytes, e);
    if (!d || ses_json_type_of(ses_json_root(d)) == SES_JSON_OBJECT) return d;
    ses_fail(e, SES_EFORMAT, "%s: an object expected, not %s", path,
             ses_json_type_name(ses_json_type_of(ses_json_root(d))));
    ses_json_free(d);
    return NULL;
}

void ses_json_free(ses_json_doc *d)
{
    if (!d) return;
    ses_arena_free(&d->arena);
    ses_free(d->node);
    ses_free(d->str);
    ses_free(d);
}
