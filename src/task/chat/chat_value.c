/* Values of chat templates. */
#include "chat_value.h"

#include "base/unicode/utf8.h"

#include <string.h>

ses_chat_value ses_chat_string(ses_string s) { return (ses_chat_value){ .kind = SES_CHAT_STRING, .s = s }; }
ses_chat_value ses_chat_bool(bool x) { return (ses_chat_value){ .kind = SES_CHAT_BOOL, .number = x }; }
ses_chat_value ses_chat_int(int64_t x) { return (ses_chat_value){ .kind = SES_CHAT_INT, .number = x }; }

bool ses_chat_from_json(ses_arena *mem, const ses_json *v, ses_chat_value *out, ses_err *e)
{
    bool flag = false;
    *out = (ses_chat_value){ 0 };
    switch (ses_json_type_of(v)) {
    case SES_JSON_NULL: out->kind = v ? SES_CHAT_NONE : SES_CHAT_UNDEFINED; return true;
    case SES_JSON_BOOL:
        ses_json_bool(v, &flag);
        *out = ses_chat_bool(flag);
        return true;
    case SES_JSON_STRING:
        out->kind = SES_CHAT_STRING;
        out->s.p = ses_json_string(v, &out->s.n);
        return true;
    case SES_JSON_OBJECT:
        out->kind = SES_CHAT_OBJECT;
        out->object = v;
        return true;
    case SES_JSON_ARRAY: break;
    default:
        out->kind = SES_CHAT_INT;
        return (ses_json_int(v, &out->number) && out->number >= -SES_CHAT_MAX_INT &&
                out->number <= SES_CHAT_MAX_INT) ||
               ses_fail(e, SES_EUNSUPPORTED, "a number of the variables is not an integer, or too large");
    }
    out->kind = SES_CHAT_LIST, out->n = ses_json_len(v);
    ses_chat_value *list = ses_arena_array(mem, out->n + 1, sizeof *list, e);
    for (size_t i = 0; list && i < out->n; i++)
        if (!ses_chat_from_json(mem, ses_json_at(v, i), &list[i], e)) return false;
    out->item = list;
    return list != NULL;
}

bool ses_chat_is_true(const ses_chat_value *v)
{
    switch (v->kind) {
    case SES_CHAT_UNDEFINED:
    case SES_CHAT_NONE: return false;
    case SES_CHAT_BOOL:
    case SES_CHAT_INT: return v->number != 0;
    case SES_CHAT_STRING: return v->s.n != 0;
    case SES_CHAT_LIST: return v->n != 0;
    case SES_CHAT_OBJECT: return ses_json_len(v->object) != 0;
    default: return true;
    }
}

static bool is_number(const ses_chat_value *v) { return v->kind == SES_CHAT_INT || v->kind == SES_CHAT_BOOL; }

bool ses_chat_equal(const ses_chat_value *a, const ses_chat_value *b)
{
    if (is_number(a) && is_number(b)) return a->number == b->number;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case SES_CHAT_STRING: return a->s.n == b->s.n && (!a->s.n || !memcmp(a->s.p, b->s.p, a->s.n));
    case SES_CHAT_LIST:
        for (size_t i = 0; i < a->n && a->n == b->n; i++)
            if (!ses_chat_equal(&a->item[i], &b->item[i])) return false;
        return a->n == b->n;
    case SES_CHAT_OBJECT: return a->object == b->object;
    default: return true;
    }
}

const char *ses_chat_kind_name(const ses_chat_value *v)
{
    static const char *const names[] = { "undefined", "none",      "a bool", "an integer", "a text",
                                         "a list",    "an object", "a loop", "a namespace" };
    return names[v->kind];
}

bool ses_chat_write(const ses_chat_value *v, ses_buf *out, ses_err *e)
{
    switch (v->kind) {
    case SES_CHAT_UNDEFINED: return true;
    case SES_CHAT_NONE: ses_buf_puts(out, "None"); break;
    case SES_CHAT_BOOL: ses_buf_puts(out, v->number ? "True" : "False"); break;
    case SES_CHAT_INT: ses_buf_appendf(out, "%lld", (long long)v->number); break;
    case SES_CHAT_STRING: ses_buf_append(out, v->s.n ? v->s.p : "", v->s.n); break;
    default:
        return ses_fail(e, SES_EUNSUPPORTED, "the chat template writes %s, which is not supported",
                        ses_chat_kind_name(v));
    }
    return ses_buf_ok(out, e);
}

bool ses_chat_member(ses_arena *mem, const ses_chat_value *v, ses_string name, ses_chat_value *out,
                     ses_err *e)
{
    *out = (ses_chat_value){ 0 };
    if (v->kind == SES_CHAT_OBJECT) {
        for (size_t i = 0; i < ses_json_len(v->object); i++) {
            size_t n = 0;
            const char *key = ses_json_key(v->object, i, &n);
            if (n == name.n && !memcmp(key, name.p, n))
                return ses_chat_from_json(mem, ses_json_at(v->object, i), out, e);
        }
        return true;
    }
    if (v->kind == SES_CHAT_LOOP) {
        size_t i = (size_t)v->number;
        if (ses_equal(name.p, name.n, "first"))
            *out = ses_chat_bool(!i);
        else if (ses_equal(name.p, name.n, "last"))
            *out = ses_chat_bool(i + 1 == v->n);
        else if (ses_equal(name.p, name.n, "index"))
            *out = ses_chat_int((int64_t)i + 1);
        else if (ses_equal(name.p, name.n, "index0"))
            *out = ses_chat_int((int64_t)i);
        else if (ses_equal(name.p, name.n, "length"))
            *out = ses_chat_int((int64_t)v->n);
        else if (ses_equal(name.p, name.n, "revindex"))
            *out = ses_chat_int((int64_t)(v->n - i));
        else if (ses_equal(name.p, name.n, "revindex0"))
            *out = ses_chat_int((int64_t)(v->n - i) - 1);
        else if (ses_equal(name.p, name.n, "previtem"))
            *out = i ? v->item[i - 1] : *out;
        else if (ses_equal(name.p, name.n, "nextitem"))
            *out = i + 1 < v->n ? v->item[i + 1] : *out;
        else
            return ses_fail(e, SES_EUNSUPPORTED, "the chat template uses loop.%.*s, which is not supported",
                            (int)(name.n < 64 ? name.n : 64), name.p);
        return true;
    }
    return v->kind != SES_CHAT_UNDEFINED && v->kind != SES_CHAT_NONE
               ? true
               : ses_fail(e, SES_EARG, "the chat template reads \"%.*s\" of a value that is %s",
                          (int)(name.n < 64 ? name.n : 64), name.p, ses_chat_kind_name(v));
}

/* Elements of a list, code points of a text. */
static int64_t length_of(const ses_chat_value *v)
{
    return v->kind == SES_CHAT_LIST     ? (int64_t)v->n
           : v->kind == SES_CHAT_STRING ? (int64_t)ses_utf8_count(v->s.p, v->s.n)
                                        : 0;
}

/* Byte of code point i. */
static size_t byte_of(ses_string s, int64_t i)
{
    size_t at = 0;
    for (; at < s.n && (i > 0 || ses_utf8_continues(s.p[at])); at++)
        i -= at + 1 == s.n || !ses_utf8_continues(s.p[at + 1]);
    return at;
}

static ses_string part_of(ses_string s, int64_t begin, int64_t end)
{
    size_t from = byte_of(s, begin), to = byte_of(s, end);
    return (ses_string){ s.p + from, to - from };
}

ses_chat_value ses_chat_element(const ses_chat_value *v, int64_t i)
{
    int64_t n = length_of(v);
    if (i < 0) i += n;
    if (i < 0 || i >= n) return (ses_chat_value){ 0 };
    return v->kind == SES_CHAT_LIST ? v->item[i] : ses_chat_string(part_of(v->s, i, i + 1));
}

bool ses_chat_slice(const ses_chat_value *v, int64_t begin, int64_t end, ses_chat_value *out, ses_err *e)
{
    int64_t n = length_of(v);
    if (v->kind != SES_CHAT_LIST && v->kind != SES_CHAT_STRING)
        return ses_fail(e, SES_EARG, "the chat template takes a slice of %s", ses_chat_kind_name(v));
    if (begin < 0) begin = begin + n < 0 ? 0 : begin + n;
    if (end < 0) end += n;
    if (end > n) end = n;
    if (begin > end) begin = end < 0 ? 0 : end;
    if (end < begin) end = begin;
    *out = *v;
    if (v->kind == SES_CHAT_LIST)
        out->item = v->item + begin, out->n = (size_t)(end - begin);
    else
        out->s = part_of(v->s, begin, end);
    return true;
}

/* ---- filters and methods ---- */

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_among(char c, const ses_chat_value *set)
{
    if (!set) return is_space(c);
    return set->kind == SES_CHAT_STRING && set->s.n && memchr(set->s.p, c, set->s.n);
}

static ses_string stripped(ses_string s, const ses_chat_value *set, bool left, bool right)
{
    while (left && s.n && is_among(s.p[0], set)) s.p++, s.n--;
    while (right && s.n && is_among(s.p[s.n - 1], set)) s.n--;
    return s;
}

/* Letters of other scripts would need tables: only ASCII is changed, and other bytes refused. */
static bool change_case(ses_arena *mem, ses_string s, char how, ses_chat_value *out, ses_err *e)
{
    char *copy = ses_arena_strndup(mem, s.n ? s.p : "", s.n, e);
    if (!copy) return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = copy[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool begins =
            !i || !((s.p[i - 1] >= 'a' && s.p[i - 1] <= 'z') || (s.p[i - 1] >= 'A' && s.p[i - 1] <= 'Z'));
        bool upper = how == 'u' || (how == 't' && begins) || (how == 'c' && !i);
        if ((unsigned char)c >= 128)
            return ses_fail(
                e, SES_EUNSUPPORTED,
                "the chat template changes the case of letters beyond ASCII, which is not supported");
        if (letter) copy[i] = (char)(upper ? c & ~0x20 : c | 0x20);
    }
    *out = ses_chat_string((ses_string){ copy, s.n });
    return true;
}

static bool split(ses_arena *mem, ses_string s, const ses_chat_value *by, ses_chat_value *out, ses_err *e)
{
    if (!by || by->kind != SES_CHAT_STRING || !by->s.n)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the chat template uses split without a separator, which is not supported");
    size_t parts = 1;
    for (size_t i = 0; i + by->s.n <= s.n; i++)
        if (!memcmp(s.p + i, by->s.p, by->s.n)) parts++, i += by->s.n - 1;
    ses_chat_value *list = ses_arena_array(mem, parts, sizeof *list, e);
    if (!list) return false;
    size_t begin = 0, n = 0;
    for (size_t i = 0; i + by->s.n <= s.n; i++) {
        if (memcmp(s.p + i, by->s.p, by->s.n)) continue;
        list[n++] = ses_chat_string((ses_string){ s.p + begin, i - begin });
        begin = i + by->s.n, i = begin - 1;
    }
    list[n++] = ses_chat_string((ses_string){ s.p + begin, s.n - begin });
    *out = (ses_chat_value){ .kind = SES_CHAT_LIST, .item = list, .n = n };
    return true;
}

/* Joins the parts of a text or a list. */
static bool join(ses_arena *mem, const ses_chat_value *list, ses_string by, ses_chat_value *out, ses_err *e)
{
    ses_buf b = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < list->n; i++) {
        if (i) ses_buf_append(&b, by.n ? by.p : "", by.n);
        ok = ses_chat_write(&list->item[i], &b, e);
    }
    char *copy = ok && ses_buf_ok(&b, e) ? ses_arena_strndup(mem, b.data ? b.data : "", b.len, e) : NULL;
    if (copy) *out = ses_chat_string((ses_string){ copy, b.len });
    ses_buf_free(&b);
    return copy != NULL;
}

static bool apply_to_text(ses_arena *mem, ses_string name, ses_string s, const ses_chat_value *arg, size_t n,
                          ses_chat_value *out, ses_err *e, bool *known)
{
    const ses_chat_value *set = n ? arg : NULL;
    bool starts = ses_equal(name.p, name.n, "startswith"), ends = ses_equal(name.p, name.n, "endswith");
    if (ses_equal(name.p, name.n, "trim") || ses_equal(name.p, name.n, "strip"))
        *out = ses_chat_string(stripped(s, set, true, true));
    else if (ses_equal(name.p, name.n, "lstrip"))
        *out = ses_chat_string(stripped(s, set, true, false));
    else if (ses_equal(name.p, name.n, "rstrip"))
        *out = ses_chat_string(stripped(s, set, false, true));
    else if (ses_equal(name.p, name.n, "string") || ses_equal(name.p, name.n, "safe"))
        *out = ses_chat_string(s);
    else if (ses_equal(name.p, name.n, "upper"))
        return change_case(mem, s, 'u', out, e);
    else if (ses_equal(name.p, name.n, "lower"))
        return change_case(mem, s, 'l', out, e);
    else if (ses_equal(name.p, name.n, "title"))
        return change_case(mem, s, 't', out, e);
    else if (ses_equal(name.p, name.n, "capitalize"))
        return change_case(mem, s, 'c', out, e);
    else if (ses_equal(name.p, name.n, "split"))
        return split(mem, s, set, out, e);
    else if ((starts || ends) && set && set->kind == SES_CHAT_STRING) {
        bool fits = set->s.n <= s.n;
        *out = ses_chat_bool(fits &&
                             (!set->s.n || !memcmp(starts ? s.p : s.p + s.n - set->s.n, set->s.p, set->s.n)));
    } else if (ses_equal(name.p, name.n, "replace") && n == 2 && arg[1].kind == SES_CHAT_STRING) {
        ses_chat_value parts;
        return split(mem, s, arg, &parts, e) && join(mem, &parts, arg[1].s, out, e);
    } else
        *known = false;
    return true;
}

bool ses_chat_apply(ses_arena *mem, ses_string name, const ses_chat_value *v, const ses_chat_value *arg,
                    size_t n, ses_chat_value *out, ses_err *e)
{
    bool known = true, list = v->kind == SES_CHAT_LIST;
    if (ses_equal(name.p, name.n, "default")) {
        bool absent =
            v->kind == SES_CHAT_UNDEFINED || (n > 1 && ses_chat_is_true(&arg[1]) && !ses_chat_is_true(v));
        *out = !absent ? *v : n ? *arg : ses_chat_string((ses_string){ "", 0 });
        return true;
    }
    if ((ses_equal(name.p, name.n, "length") || ses_equal(name.p, name.n, "count")) && list) {
        *out = ses_chat_int((int64_t)v->n);
        return true;
    }
    if (ses_equal(name.p, name.n, "first") && list) return *out = ses_chat_element(v, 0), true;
    if (ses_equal(name.p, name.n, "last") && list) return *out = ses_chat_element(v, -1), true;
    if (ses_equal(name.p, name.n, "list") && list) return *out = *v, true;
    if (ses_equal(name.p, name.n, "join") && list && (!n || arg->kind == SES_CHAT_STRING))
        return join(mem, v, n ? arg->s : (ses_string){ "", 0 }, out, e);
    if (ses_equal(name.p, name.n, "get") && v->kind == SES_CHAT_OBJECT && n) {
        if (!ses_chat_member(mem, v, arg->s, out, e)) return false;
        if (out->kind == SES_CHAT_UNDEFINED)
            *out = n > 1 ? arg[1] : (ses_chat_value){ .kind = SES_CHAT_NONE };
        return true;
    }
    if (v->kind == SES_CHAT_STRING && !apply_to_text(mem, name, v->s, arg, n, out, e, &known)) return false;
    return (known && v->kind == SES_CHAT_STRING) ||
           ses_fail(e, SES_EUNSUPPORTED, "the chat template applies %.*s to %s, which is not supported",
                    (int)(name.n < 64 ? name.n : 64), name.p, ses_chat_kind_name(v));
}

bool ses_chat_test(ses_string name, const ses_chat_value *v, bool *out, ses_err *e)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } tests[] = { { "undefined", 1u << SES_CHAT_UNDEFINED },
                  { "none", 1u << SES_CHAT_NONE },
                  { "string", 1u << SES_CHAT_STRING },
                  { "mapping", 1u << SES_CHAT_OBJECT },
                  { "boolean", 1u << SES_CHAT_BOOL },
                  { "integer", 1u << SES_CHAT_INT },
                  { "number", 1u << SES_CHAT_INT | 1u << SES_CHAT_BOOL },
                  { "sequence", 1u << SES_CHAT_LIST | 1u << SES_CHAT_STRING | 1u << SES_CHAT_OBJECT },
                  { "iterable", 1u << SES_CHAT_LIST | 1u << SES_CHAT_STRING | 1u << SES_CHAT_OBJECT } };
    if (ses_equal(name.p, name.n, "defined")) return *out = v->kind != SES_CHAT_UNDEFINED, true;
    if (ses_equal(name.p, name.n, "true")) return *out = v->kind == SES_CHAT_BOOL && v->number, true;
    if (ses_equal(name.p, name.n, "false")) return *out = v->kind == SES_CHAT_BOOL && !v->number, true;
    for (size_t i = 0; i < SES_LEN(tests); i++)
        if (ses_equal(name.p, name.n, tests[i].name)) return *out = tests[i].kinds >> v->kind & 1, true;
    return ses_fail(e, SES_EUNSUPPORTED, "the chat template uses the test \"%.*s\", which is not supported",
                    (int)(name.n < 64 ? name.n : 64), name.p);
}
