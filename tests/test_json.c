#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "check.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

/* want: NULL if accepted, else the message. n 0: the text up to its NUL. */
typedef struct text_case {
    const char *text, *want;
    size_t n;
} text_case;

#define AT(line, column, byte, what) "line " #line ", column " #column " (byte " #byte "): " what

static const text_case texts[] = {
    /* accepted */
    { "null", NULL, 0 },
    { "true", NULL, 0 },
    { "false", NULL, 0 },
    { "0", NULL, 0 },
    { "-0", NULL, 0 },
    { "-1", NULL, 0 },
    { "10", NULL, 0 },
    { "0.5", NULL, 0 },
    { "1e5", NULL, 0 },
    { "1E+5", NULL, 0 },
    { "1.25e-5", NULL, 0 },
    { "123456789012345678901234567890", NULL, 0 },
    { "1e-400", NULL, 0 },
    { "\"\"", NULL, 0 },
    { "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041z\"", NULL, 0 },
    { "\"\\u0000\"", NULL, 0 },
    { "\"\\uD834\\uDd1e\"", NULL, 0 },
    { "\"\\uFFFF\\ue000\"", NULL, 0 },
    { "\"\x7f\"", NULL, 0 },
    { "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\"", NULL, 0 },
    { "[]", NULL, 0 },
    { "[ ]", NULL, 0 },
    { "{}", NULL, 0 },
    { "{ }", NULL, 0 },
    { "[[],[[]],{}]", NULL, 0 },
    { " \t\r\n[ 1 , 2 ] \n", NULL, 0 },
    { "{\"\":0,\"a\":{\"a\":1}}", NULL, 0 },
    { "{\"a\":1,\"A\":2,\"a \":3,\"\\u0061a\":4}", NULL, 0 },
    { "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]", NULL, 0 },
    /* refused: no value, or several */
    { "", AT(1, 1, 0, "a value expected, not the end of the text"), 0 },
    { "  \n ", AT(2, 2, 4, "a value expected, not the end of the text"), 0 },
    { "\xef\xbb\xbf{}", AT(1, 1, 0, "byte order mark at the start"), 0 },
    { "[1] x", AT(1, 5, 4, "nothing expected after the value, not 'x'"), 0 },
    { "1 2", AT(1, 3, 2, "nothing expected after the value, not '2'"), 0 },
    { "{}}", AT(1, 3, 2, "nothing expected after the value, not '}'"), 0 },
    { "1\0", AT(1, 2, 1, "nothing expected after the value, not byte 0x00"), 2 },
    { "\0", AT(1, 1, 0, "a value expected, not byte 0x00"), 1 },
    { "\v1", AT(1, 1, 0, "a value expected, not byte 0x0b"), 0 },
    { "1 // one", AT(1, 3, 2, "nothing expected after the value, not '/'"), 0 },
    { "/* */ 1", AT(1, 1, 0, "a value expected, not '/'"), 0 },
    /* words */
    { "nul", AT(1, 1, 0, "a value expected, not 'n'"), 0 },
    { "True", AT(1, 1, 0, "a value expected, not 'T'"), 0 },
    { "nullx", AT(1, 5, 4, "nothing expected after the value, not 'x'"), 0 },
    { "NaN", AT(1, 1, 0, "a value expected, not 'N'"), 0 },
    { "Infinity", AT(1, 1, 0, "a value expected, not 'I'"), 0 },
    { "-Infinity", AT(1, 2, 1, "a digit expected after '-', not 'I'"), 0 },
    { "'a'", AT(1, 1, 0, "a value expected, not '''"), 0 },
    /* numbers */
    { "01", AT(1, 1, 0, "number with a leading zero"), 0 },
    { "[-012]", AT(1, 2, 1, "number with a leading zero"), 0 },
    { "+1", AT(1, 1, 0, "a value expected, not '+'"), 0 },
    { ".5", AT(1, 1, 0, "a value expected, not '.'"), 0 },
    { "1.", AT(1, 3, 2, "a digit expected after '.', not the end of the text"), 0 },
    { "1.e5", AT(1, 3, 2, "a digit expected after '.', not 'e'"), 0 },
    { "1e", AT(1, 3, 2, "a digit expected in the exponent, not the end of the text"), 0 },
    { "1e+", AT(1, 4, 3, "a digit expected in the exponent, not the end of the text"), 0 },
    { "-", AT(1, 2, 1, "a digit expected after '-', not the end of the text"), 0 },
    { "--1", AT(1, 2, 1, "a digit expected after '-', not '-'"), 0 },
    { "0x10", AT(1, 2, 1, "nothing expected after the value, not 'x'"), 0 },
    { "1_000", AT(1, 2, 1, "nothing expected after the value, not '_'"), 0 },
    { "[1,1e309]", AT(1, 4, 3, "number out of range"), 0 },
    { "-1e999999999999999999999", AT(1, 1, 0, "number out of range"), 0 },
    /* strings */
    { "\"a", AT(1, 1, 0, "string without its closing quote"), 0 },
    { "[\"a]", AT(1, 2, 1, "string without its closing quote"), 0 },
    { "\"\\\"", AT(1, 1, 0, "string without its closing quote"), 0 },
    { "\"a\nb\"", AT(1, 3, 2, "control character in a string: byte 0x0a"), 0 },
    { "\"\t\"", AT(1, 2, 1, "control character in a string: byte 0x09"), 0 },
    { "\"abcdefgh\x1f\"", AT(1, 10, 9, "control character in a string: byte 0x1f"), 0 },
    { "\"a\0\"", AT(1, 3, 2, "control character in a string: byte 0x00"), 4 },
    { "\"\\x41\"", AT(1, 2, 1, "invalid escape in a string: 'x' after the backslash"), 0 },
    { "\"\\", AT(1, 2, 1, "invalid escape in a string: the end of the text after the backslash"), 0 },
    { "\"\\\0\"", AT(1, 2, 1, "invalid escape in a string: byte 0x00 after the backslash"), 4 },
    { "\"\\u12\"", AT(1, 2, 1, "\\u needs four hexadecimal digits"), 0 },
    { "\"\\u12g4\"", AT(1, 2, 1, "\\u needs four hexadecimal digits"), 0 },
    { "\"\\u", AT(1, 2, 1, "\\u needs four hexadecimal digits"), 0 },
    { "\"\\ud800\"", AT(1, 2, 1, "\\ud800: high surrogate without a low surrogate after it"), 0 },
    { "\"\\ud800x\"", AT(1, 2, 1, "\\ud800: high surrogate without a low surrogate after it"), 0 },
    { "\"\\ud800\\u0041\"", AT(1, 2, 1, "\\ud800: high surrogate without a low surrogate after it"), 0 },
    { "\"\\uDBFF\\uDBFF\"", AT(1, 2, 1, "\\udbff: high surrogate without a low surrogate after it"), 0 },
    { "\"\\ud800\\n\"", AT(1, 2, 1, "\\ud800: high surrogate without a low surrogate after it"), 0 },
    { "\"x\\udc00\"", AT(1, 3, 2, "\\udc00: low surrogate without a high surrogate before it"), 0 },
    /* UTF-8 */
    { "\"\xc0\x80\"", AT(1, 2, 1, "invalid UTF-8: byte 0xc0"), 0 },
    { "\"ab\xe0\x80\x80\"", AT(1, 4, 3, "invalid UTF-8: byte 0xe0"), 0 },
    { "\"\xed\xa0\x80\"", AT(1, 2, 1, "invalid UTF-8: byte 0xed"), 0 },
    { "\"\xf4\x90\x80\x80\"", AT(1, 2, 1, "invalid UTF-8: byte 0xf4"), 0 },
    { "\"\xf0\x8f\xbf\xbf\"", AT(1, 2, 1, "invalid UTF-8: byte 0xf0"), 0 },
    { "\"\xe2\x82\"", AT(1, 2, 1, "invalid UTF-8: byte 0xe2"), 0 },
    { "\"\xe2\\u0082\"", AT(1, 2, 1, "invalid UTF-8: byte 0xe2"), 0 },
    { "\"a\x80\"", AT(1, 3, 2, "invalid UTF-8: byte 0x80"), 0 },
    { "\"\xff\"", AT(1, 2, 1, "invalid UTF-8: byte 0xff"), 0 },
    { "\xc3\xa9", AT(1, 1, 0, "a value expected, not byte 0xc3"), 0 },
    /* arrays and objects */
    { "[", AT(1, 2, 1, "a value expected, not the end of the text"), 0 },
    { "]", AT(1, 1, 0, "a value expected, not ']'"), 0 },
    { "[1", AT(1, 3, 2, "',' or ']' expected, not the end of the text"), 0 },
    { "[1,", AT(1, 4, 3, "a value expected, not the end of the text"), 0 },
    { "[1,]", AT(1, 4, 3, "a value expected, not ']'"), 0 },
    { "[,1]", AT(1, 2, 1, "a value expected, not ','"), 0 },
    { "[1 2]", AT(1, 4, 3, "',' or ']' expected, not '2'"), 0 },
    { "[1}", AT(1, 3, 2, "',' or ']' expected, not '}'"), 0 },
    { "[1:2]", AT(1, 3, 2, "',' or ']' expected, not ':'"), 0 },
    { "{", AT(1, 2, 1, "a key expected, not the end of the text"), 0 },
    { "{\"a\":1,}", AT(1, 8, 7, "a key expected, not '}'"), 0 },
    { "{,}", AT(1, 2, 1, "a key expected, not ','"), 0 },
    { "{a:1}", AT(1, 2, 1, "a key expected, not 'a'"), 0 },
    { "{1:1}", AT(1, 2, 1, "a key expected, not '1'"), 0 },
    { "{\"a\"}", AT(1, 5, 4, "':' expected after a key, not '}'"), 0 },
    { "{\"a\" 1}", AT(1, 6, 5, "':' expected after a key, not '1'"), 0 },
    { "{\"a\":}", AT(1, 6, 5, "a value expected, not '}'"), 0 },
    { "{\"a\":1", AT(1, 7, 6, "',' or '}' expected, not the end of the text"), 0 },
    { "{\"a\":1]", AT(1, 7, 6, "',' or '}' expected, not ']'"), 0 },
    { "{\"a\":1 \"b\":2}", AT(1, 8, 7, "',' or '}' expected, not '\"'"), 0 },
    /* duplicates */
    { "{\"a\":1,\n \"a\":2}", AT(2, 2, 9, "key \"a\" appears twice"), 0 },
    { "{\"a\":1,\"b\":[],\"\\u0061\":2}", AT(1, 15, 14, "key \"a\" appears twice"), 0 },
    { "[{\"\":1,\"\":1}]", AT(1, 8, 7, "key \"\" appears twice"), 0 },
    { "{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1,\"0\":1,\"7\":1}",
      AT(1, 62, 61, "key \"7\" appears twice"), 0 },
    { "{\"\\u001b[2J\":1,\"\\u001b[2J\":1}", AT(1, 16, 15, "key \"\\x1b[2J\" appears twice"), 0 },
};

static void check_texts(void)
{
    for (size_t i = 0; i < SES_LEN(texts); i++) {
        ses_err e = { 0 };
        size_t n = texts[i].n ? texts[i].n : strlen(texts[i].text);
        char *exact = malloc(n ? n : 1); /* so that a read past the end is detected */
        memcpy(exact, texts[i].text, n);
        ses_json_doc *d = ses_json_parse(exact, n, &e);
        if (texts[i].want) {
            CHECK_STR(d ? "accepted" : e.msg, texts[i].want);
            CHECK(d || e.code == SES_EFORMAT);
        } else {
            CHECK_MSG(d, "%s: %s", texts[i].text, e.msg);
        }
        free(exact);
        ses_json_free(d);
    }
}

static void check_values(void)
{
    static const char text[] =
        "{\"i\": -9223372036854775808, \"max\": 9223372036854775807, \"u\": 18446744073709551615,"
        " \"big\": 18446744073709551616, \"low\": -9223372036854775809, \"r\": 1.0, \"t\": true, \"s\": "
        "\"a\\u0000b\","
        " \"l\": [1, [2], {\"k\": 3}], \"n\": null, \"e\": \"\\ud83d\\ude00\"}";
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_parse(text, sizeof text - 1, &e);
    CHECK_MSG(d, "%s", e.msg);
    const ses_json *o = ses_json_root(d);
    int64_t i = 0;
    uint64_t u = 0;
    double r = 0;
    bool t = false;
    size_t len = 0;
    CHECK(ses_json_int(ses_json_get(o, "i"), &i) && i == INT64_MIN);
    CHECK(!ses_json_uint(ses_json_get(o, "i"), &u));
    CHECK(ses_json_int(ses_json_get(o, "max"), &i) && i == INT64_MAX);
    CHECK(ses_json_uint(ses_json_get(o, "max"), &u) && u == INT64_MAX);
    CHECK(ses_json_type_of(ses_json_get(o, "u")) == SES_JSON_UINT && !ses_json_int(ses_json_get(o, "u"), &i));
    CHECK(ses_json_uint(ses_json_get(o, "u"), &u) && u == UINT64_MAX);
    CHECK(ses_json_real(ses_json_get(o, "u"), &r) && r == 18446744073709551615.0);
    CHECK(ses_json_type_of(ses_json_get(o, "big")) == SES_JSON_REAL);
    CHECK(ses_json_real(ses_json_get(o, "big"), &r) && r == 18446744073709551616.0);
    CHECK(ses_json_real(ses_json_get(o, "low"), &r) && r == -9223372036854775808.0);
    CHECK(!ses_json_int(ses_json_get(o, "low"), &i));
    CHECK(!ses_json_int(ses_json_get(o, "r"), &i) && ses_json_real(ses_json_get(o, "r"), &r) && r == 1);
    CHECK(ses_json_bool(ses_json_get(o, "t"), &t) && t && !ses_json_bool(ses_json_get(o, "i"), &t));
    const char *s = ses_json_string(ses_json_get(o, "s"), &len);
    CHECK(s && len == 3 && memcmp(s, "a\0b", 4) == 0);
    CHECK_STR(ses_json_string(ses_json_get(o, "e"), NULL), "\xf0\x9f\x98\x80");
    const ses_json *l = ses_json_get(o, "l");
    CHECK(ses_json_len(l) == 3 && ses_json_int(ses_json_at(l, 0), &i) && i == 1);
    CHECK(ses_json_int(ses_json_get(ses_json_at(l, 2), "k"), &i) && i == 3);
    CHECK(ses_json_at(l, 3) == NULL && ses_json_get(l, "x") == NULL && ses_json_get(o, "x") == NULL);
    CHECK_STR(ses_json_key(o, 7, &len), "s");
    CHECK(ses_json_key(o, 11, &len) == NULL && ses_json_key(l, 0, &len) == NULL);
    CHECK(text[ses_json_pos(l)] == '[' && ses_json_pos(l) == (size_t)(strchr(text, '[') - text));
    CHECK(ses_json_len(ses_json_get(o, "s")) == 0 && ses_json_at(ses_json_get(o, "s"), 0) == NULL);
    CHECK(ses_json_type_of(ses_json_get(o, "n")) == SES_JSON_NULL && ses_json_get(o, "n") != NULL);
    CHECK(!ses_json_real(NULL, &r) && !ses_json_string(NULL, NULL) && !ses_json_len(NULL) &&
          !ses_json_get(NULL, "a"));
    static const char *const names[] = { "null",     "a boolean", "an integer", "an integer",
                                         "a number", "a string",  "an array",   "an object" };
    for (int k = 0; k < (int)SES_LEN(names); k++) CHECK_STR(ses_json_type_name((ses_json_type)k), names[k]);
    ses_json_free(d);
    ses_json_free(NULL);
    CHECK(ses_json_root(NULL) == NULL);
}

static void check_depth(void)
{
    char text[800];
    for (int object = 0; object < 2; object++)
        for (int depth = SES_JSON_MAX_DEPTH; depth <= SES_JSON_MAX_DEPTH + 1; depth++) {
            size_t n = 0;
            for (int i = 0; i < depth; i++)
                n += (size_t)snprintf(text + n, 5, "%s", object && i + 1 < depth ? "{\"\":" : "[");
            for (int i = depth; i-- > 0;) text[n++] = object && i + 1 < depth ? '}' : ']';
            ses_err e = { 0 };
            ses_json_doc *d = ses_json_parse(text, n, &e);
            CHECK(!d == (depth > SES_JSON_MAX_DEPTH));
            if (!d) CHECK(strstr(e.msg, "nested deeper than 128 levels") != NULL);
            ses_json_free(d);
        }
    char *deep = malloc(10000000);
    memset(deep, '[', 10000000);
    ses_err e = { 0 };
    CHECK(!ses_json_parse(deep, 10000000, &e));
    CHECK_STR(e.msg, "line 1, column 129 (byte 128): nested deeper than 128 levels");
    ses_err_clear(&e);
    CHECK(!ses_json_parse_line("[1,x]", 5, &e));
    CHECK_STR(e.msg, "column 4 (byte 3): a value expected, not 'x'");
    free(deep);
}

/* An object of n members: all are found; a duplicate key is refused. Returns CPU seconds. */
static double many_keys(size_t n, bool twice)
{
    char *text = malloc(n * 24 + 64), *p = text;
    *p++ = '{';
    for (size_t i = 0; i < n; i++) p += snprintf(p, 32, "%s\"k%zu\":%zu", i ? "," : "", i, i);
    if (twice) p += snprintf(p, 32, ",\"k%zu\":0", n / 2);
    *p++ = '}';
    ses_err e = { 0 };
    clock_t start = clock();
    ses_json_doc *d = ses_json_parse(text, (size_t)(p - text), &e);
    double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(!d == twice && (!twice || strstr(e.msg, "appears twice")));
    bool all = true;
    for (size_t i = 0; i < n && d; i += 997) {
        char key[32];
        int64_t x = -1;
        snprintf(key, sizeof key, "k%zu", i);
        all = all && ses_json_int(ses_json_get(ses_json_root(d), key), &x) && x == (int64_t)i;
    }
    CHECK(all && ses_json_get(ses_json_root(d), "k") == NULL);
    ses_json_free(d);
    free(text);
    return took;
}

static void check_many(void)
{
    double took = many_keys(1000000, false);
    CHECK_MSG(took < 5, "%.2f s", took); /* 0.2 s; pairwise comparison would take an hour */
    many_keys(1000000, true);
}

/* ---- writer ---- */

static void build(ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_put_key(w, "a");
    ses_json_begin_array(w);
    ses_json_put_int(w, INT64_MIN);
    ses_json_put_uint(w, UINT64_MAX);
    ses_json_put_real(w, 1e-12);
    ses_json_put_float(w, 0.1f);
    ses_json_put_real(w, NAN);
    ses_json_put_float(w, -INFINITY);
    ses_json_end_array(w);
    ses_json_put_key(w, "e");
    ses_json_begin_array(w);
    ses_json_end_array(w);
    ses_json_put_key(w, "o");
    ses_json_begin_object(w);
    ses_json_end_object(w);
    ses_json_put_keyn(w, "k\0", 2);
    ses_json_put_stringn(w, "q\"\\\b\f\n\r\t\x01\x7f\0\xc3\xa9\xf0\x9f\x98\x80", 17);
    ses_json_put_key(w, "t");
    ses_json_put_bool(w, true);
    ses_json_put_key(w, "n");
    ses_json_put_null(w);
    ses_json_put_key(w, "s");
    ses_json_put_string(w, NULL);
    ses_json_end_object(w);
}

/* The same text as Python's json.dumps, except that NaN becomes null. */
static const char *const built[] = {
    "{\"a\":[-9223372036854775808,18446744073709551615,1e-12,0.1,null,null],\"e\":[],\"o\":{},\"k\\u0000\":"
    "\"q\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\\u0000\xc3\xa9\xf0\x9f\x98\x80\",\"t\":true,\"n\":null,\"s\":"
    "null}",
    "{\"a\": [-9223372036854775808, 18446744073709551615, 1e-12, 0.1, null, null], \"e\": [], \"o\": {}, "
    "\"k\\u0000\": "
    "\"q\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u007f\\u0000\\u00e9\\ud83d\\ude00\", \"t\": true, \"n\": null, "
    "\"s\": "
    "null}",
    "{\n  \"a\": [\n    -9223372036854775808,\n    18446744073709551615,\n    1e-12,\n    0.1,\n    null,\n  "
    "  null\n  ],\n"
    "  \"e\": [],\n  \"o\": {},\n  \"k\\u0000\": "
    "\"q\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\\u0000\xc3\xa9\xf0\x9f\x98\x80\",\n"
    "  \"t\": true,\n  \"n\": null,\n  \"s\": null\n}",
};

static void check_writer(void)
{
    static const int indent[] = { -1, 0, 2 };
    for (size_t i = 0; i < SES_LEN(indent); i++) {
        ses_err e = { 0 };
        ses_json_writer *w = ses_json_writer_new(indent[i], &e), *again = ses_json_writer_new(indent[i], &e);
        ses_json_writer_set_ascii(w, indent[i] == 0);
        ses_json_writer_set_ascii(again, indent[i] == 0);
        build(w);
        size_t n = 0, m = 0;
        const char *text = ses_json_writer_text(w, &n, &e);
        CHECK_STR(text, built[i]);
        CHECK(text && n == strlen(text));
        ses_json_doc *d = ses_json_parse(text, n, &e);
        CHECK_MSG(d, "%s", e.msg);
        ses_json_put_value(again, ses_json_root(d));
        CHECK_STR(ses_json_writer_text(again, &m, &e), text);
        CHECK(m == n);
        ses_json_free(d);
        ses_json_writer_free(w);
        ses_json_writer_free(again);
    }
    ses_json_writer_free(NULL);
    ses_json_writer_set_ascii(NULL, true); /* as after a failed allocation: nothing is written */
    build(NULL);
    ses_json_put_floats(NULL, &(float){ 1 }, 1);
    CHECK(!ses_json_writer_text(NULL, NULL, NULL) && !ses_json_writer_take(NULL, NULL, NULL));
}

/* An array of floats is the same text as its elements one by one; the text outlives its writer. */
static void check_floats(void)
{
    static const float x[] = { 0.1f, -0.f, 1e-5f, NAN, 16777216.f, 3.4028235e38f, -1e-45f, 0.00012345678f };
    ses_err e = { 0 };
    for (int indent = -1; indent < 3; indent++)
        for (size_t n = 0; n <= SES_LEN(x); n++) {
            ses_json_writer *w = ses_json_writer_new(indent, &e), *one = ses_json_writer_new(indent, &e);
            ses_json_begin_array(w);
            ses_json_put_floats(w, x, (int64_t)n);
            ses_json_put_floats(w, x, 1);
            ses_json_end_array(w);
            ses_json_begin_array(one);
            ses_json_begin_array(one);
            for (size_t i = 0; i < n; i++) ses_json_put_float(one, x[i]);
            ses_json_end_array(one);
            ses_json_begin_array(one);
            ses_json_put_float(one, x[0]);
            ses_json_end_array(one);
            ses_json_end_array(one);
            size_t len = 0;
            char *text = ses_json_writer_take(w, &len, &e);
            ses_json_writer_free(w);
            CHECK_STR(text, ses_json_writer_text(one, NULL, &e));
            CHECK(text && len == strlen(text));
            ses_free(text);
            ses_json_writer_free(one);
        }
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    ses_json_begin_object(w);
    ses_json_put_floats(w, x, 2); /* a key is missing */
    CHECK(!ses_json_writer_take(w, NULL, &e) && e.code == SES_EARG);
    ses_json_writer_free(w);
}

/* Text that is written back unchanged. */
static const char *const same[] = {
    "1000000000000000019884624838656",
    "[1, 1.0, 1e-05, 0.0001, -0.0, 1e+16, 5e-324]",
    "{\"a\": {\"b\": [[], {}, [[1]], \"\"]}, \"c\": null}",
    "18446744073709551615",
    "\"\"",
    "[]",
};

static void check_same(void)
{
    for (size_t i = 0; i < SES_LEN(same); i++) {
        ses_err e = { 0 };
        ses_json_doc *d = ses_json_parse(same[i], strlen(same[i]), &e);
        ses_json_writer *w = ses_json_writer_new(0, &e);
        ses_json_put_value(w, ses_json_root(d));
        CHECK_STR(ses_json_writer_text(w, NULL, &e), same[i]);
        ses_json_writer_free(w);
        ses_json_free(d);
    }
}

/* Each letter is a call; an invalid sequence is reported once, at the end. */
static const char *const misuse[][2] = {
    { "", "JSON writer: nothing was written" },
    { "{", "JSON writer: a begin without its end" },
    { "[1", "JSON writer: a begin without its end" },
    { "}", "JSON writer: an end without its begin" },
    { "[}", "JSON writer: an end without its begin" },
    { "{]", "JSON writer: an end without its begin" },
    { "11", "JSON writer: a second value after the first" },
    { "[][", "JSON writer: a second value after the first" },
    { "{1", "JSON writer: a member without a key" },
    { "{[", "JSON writer: a member without a key" },
    { "{k1{", "JSON writer: a member without a key" },
    { "{k}", "JSON writer: a key without a value" },
    { "{kk", "JSON writer: a key outside an object, or after another key" },
    { "[k", "JSON writer: a key outside an object, or after another key" },
    { "k", "JSON writer: a key outside an object, or after another key" },
    { "[u1]", "JSON writer: invalid UTF-8 at byte 1 of a string" },
    { "{U1}", "JSON writer: invalid UTF-8 at byte 0 of a string" },
};

static void check_misuse(void)
{
    for (size_t i = 0; i < SES_LEN(misuse); i++) {
        ses_err e = { 0 };
        ses_json_writer *w = ses_json_writer_new(0, &e);
        for (const char *c = misuse[i][0]; *c; c++) switch (*c) {
            case '{': ses_json_begin_object(w); break;
            case '}': ses_json_end_object(w); break;
            case '[': ses_json_begin_array(w); break;
            case ']': ses_json_end_array(w); break;
            case 'k': ses_json_put_key(w, "k"); break;
            case 'U': ses_json_put_key(w, "\xff"); break;
            case 'u': ses_json_put_string(w, "a\xed\xa0\x80"); break;
            default: ses_json_put_int(w, 1);
            }
        CHECK(ses_json_writer_text(w, NULL, &e) == NULL);
        CHECK_STR(e.msg, misuse[i][1]);
        ses_json_writer_free(w);
    }
    ses_err e = { 0 };
    ses_json_writer *w = ses_json_writer_new(0, &e);
    for (int i = 0; i <= SES_JSON_MAX_DEPTH; i++) ses_json_begin_array(w);
    CHECK(!ses_json_writer_text(w, NULL, &e));
    CHECK_STR(e.msg, "JSON writer: nested too deep");
    ses_json_writer_free(w);
}

static void check_load(void)
{
    ses_err e = { 0 };
    CHECK(!ses_json_load("tests/no-such-file.json", 100, &e) && e.code == SES_EIO);
    CHECK_STR(e.msg, "tests/no-such-file.json: No such file or directory");
    ses_err_clear(&e);
    CHECK(!ses_json_load("tests/check.h", 100000, &e) && e.code == SES_EFORMAT);
    CHECK_STR(e.msg, "tests/check.h: line 1, column 1 (byte 0): a value expected, not '/'");
    ses_err_clear(&e);
    CHECK(!ses_json_load("CMakePresets.json", 10, &e) && strstr(e.msg, "the maximum is 10"));
    ses_err_clear(&e);
    ses_json_doc *d = ses_json_load_object("CMakePresets.json", 100000, &e);
    CHECK_MSG(ses_json_get(ses_json_root(d), "configurePresets"), "%s", e.msg);
    ses_json_free(d);
}

static void check_strings(void)
{
    static const char text[] =
        "{\"a\": [\"x\", \"\", \"y\\u0000z\"], \"none\": [], \"bad\": [\"x\", 1], \"n\": 1}";
    ses_err e = { 0 };
    size_t n = 9;
    ses_json_doc *d = ses_json_parse(text, sizeof text - 1, &e);
    const ses_json *root = ses_json_root(d);
    ses_string *list = ses_json_strings(ses_json_get(root, "a"), &n, &e);
    CHECK(list && n == 3 && list[0].n == 1 && !list[1].n && list[2].n == 3 && !memcmp(list[2].p, "y\0z", 3));
    ses_free(list);
    list = ses_json_strings(ses_json_get(root, "none"), &n, &e);
    CHECK(list && n == 0);
    ses_free(list);
    CHECK(!ses_json_strings(ses_json_get(root, "bad"), &n, &e));
    CHECK_STR(e.msg, "element 1 must be a string");
    ses_err_clear(&e);
    CHECK(!ses_json_strings(ses_json_get(root, "n"), &n, &e));
    CHECK_STR(e.msg, "must be an array of strings, not an integer");
    ses_json_free(d);
}

static void check_members(void)
{
    ses_err e = { 0 };
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "s", "x");
    ses_json_member_string(w, "null", NULL);
    ses_json_member_stringn(w, "sn", "xyz", 2);
    ses_json_member_int(w, "i", -1);
    ses_json_member_uint(w, "u", UINT64_MAX);
    ses_json_member_real(w, "r", 0.5);
    ses_json_member_bool(w, "b", true);
    ses_json_member_object(w, "o");
    ses_json_member_array(w, "a");
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_json_member_list(w, "l", "a, b");
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, &e);
    CHECK_STR(text ? text : e.msg,
              "{\"s\":\"x\",\"null\":null,\"sn\":\"xy\",\"i\":-1,\"u\":18446744073709551615,"
              "\"r\":0.5,\"b\":true,\"o\":{\"a\":[]},\"l\":[\"a\",\"b\"]}");
    ses_json_writer_free(w);
}

/* Every changed bit of a record is an error, or has no effect on its members. */
static void check_records(void)
{
    ses_err e = { 0 };
    char dir[] = "/tmp/test_json_record.XXXXXX", path[64];
    size_t n = 0;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/r.json", dir);
    ses_json_writer *w = ses_json_writer_new(0, &e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "next", 16);
    ses_json_member_real(w, "score", 0.1);
    ses_json_member_list(w, "names", "a, b\xc3\xa9");
    ses_json_end_object(w);
    CHECK_MSG(ses_json_record_save(w, 2, NULL, path, false, &e), "%s", e.msg);
    ses_json_doc *d = ses_json_record_load(path, 1000, true, &e);
    int64_t next = 0;
    CHECK_MSG(ses_json_int(ses_json_get(ses_json_root(d), "next"), &next) && next == 16, "%s", e.msg);
    ses_json_free(d);
    char *text = ses_file_read(path, 1000, &n, &e);
    for (size_t at = 0; at < n; at++)
        for (int bit = 0; bit < 8; bit++) {
            e = (ses_err){ 0 };
            text[at] ^= (char)(1 << bit);
            CHECK(ses_file_write(path, text, n, true, &e));
            d = ses_json_record_load(path, 1000, true, &e);
            bool blank = text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r';
            CHECK_MSG(d ? blank : e.code == SES_EFORMAT && strstr(e.msg, path), "byte %zu, bit %d: %s", at,
                      bit, d ? "not found" : e.msg);
            ses_json_free(d);
            text[at] ^= (char)(1 << bit);
        }
    /* A record without a checksum is of an older version. */
    CHECK(ses_file_write(path, "{\"next\": 16}", 12, true, &e));
    e = (ses_err){ 0 };
    CHECK(!ses_json_record_load(path, 1000, true, &e) && strstr(e.msg, "older version"));
    d = ses_json_record_load(path, 1000, false, NULL);
    CHECK(d);
    ses_json_free(d);
    ses_free(text);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
}

int main(void)
{
    check_records();
    check_strings();
    check_members();
    check_texts();
    check_values();
    check_depth();
    check_many();
    check_writer();
    check_floats();
    check_same();
    check_misuse();
    check_load();
    return check_report();
}
