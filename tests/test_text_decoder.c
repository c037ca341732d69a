/* Check of texts and conversion of their encodings: bytes and code points as iconv converts them, whole and
 * in pieces; errors with line and byte. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/unicode/utf8.h"
#include "io/text_decoder.h"

#include <iconv.h>

static const struct {
    ses_text_encoding encoding;
    const char *iconv;
} encodings[] = {
    { SES_ENCODING_LATIN1, "ISO-8859-1" },   { SES_ENCODING_LATIN9, "ISO-8859-15" },
    { SES_ENCODING_WINDOWS_1250, "CP1250" }, { SES_ENCODING_WINDOWS_1251, "CP1251" },
    { SES_ENCODING_WINDOWS_1252, "CP1252" }, { SES_ENCODING_KOI8_R, "KOI8-R" },
    { SES_ENCODING_UTF16LE, "UTF-16LE" },    { SES_ENCODING_UTF16BE, "UTF-16BE" },
};

/* The text in pieces of `step` bytes; NULL: the error is in e. Borrowed until the next call. */
static const char *decode(ses_text_encoding encoding, const char *s, size_t n, size_t step, ses_err *e)
{
    static ses_buf out;
    ses_text_decoder d = { .encoding = encoding };
    bool ok = true;
    ses_buf_free(&out);
    ses_buf_puts(&out, "");
    for (size_t i = 0; ok && i < n; i += step) {
        size_t k = n - i < step ? n - i : step;
        ok = ses_text_decode(&d, (const unsigned char *)s + i, k, false, &out, e);
    }
    ok = ok && ses_text_decode(&d, (const unsigned char *)s, 0, true, &out, e);
    return ok ? out.data : NULL;
}

/* The output of iconv; *ok false: it refuses. */
static size_t by_iconv(const char *from, const char *to, const char *s, size_t n, char *out, size_t size,
                       bool *ok)
{
    iconv_t c = iconv_open(to, from);
    char *in = (char *)s, *at = out;
    *ok = c != (iconv_t)-1 && iconv(c, &in, &n, &at, &size) != (size_t)-1;
    if (c != (iconv_t)-1) iconv_close(c);
    *at = 0;
    return (size_t)(at - out);
}

static void single_bytes(void)
{
    for (size_t i = 0; i < 6; i++) {
        iconv_t c = iconv_open("UTF-8", encodings[i].iconv);
        if (c == (iconv_t)-1) {
            SKIP("iconv has no such encoding");
            continue;
        }
        iconv_close(c);
        for (int byte = 1; byte < 256; byte++) {
            char s[2] = { (char)byte, 0 }, want[16];
            ses_err e = { 0 };
            bool known;
            by_iconv(encodings[i].iconv, "UTF-8", s, 1, want, sizeof want - 1, &known);
            const char *got = decode(encodings[i].encoding, s, 1, 1, &e);
            CHECK_MSG(known == (got != NULL), "%s: byte %d", encodings[i].iconv, byte);
            if (known && got) CHECK_STR(got, want);
        }
    }
}

static void code_points(void)
{
    static const uint32_t some[] = { 1,      'a',    0x7F,   0x80,   0xE9,    0x7FF,   0x800,
                                     0x20AC, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x1F600, 0x10FFFF };
    char text[100], coded[200];
    size_t n = 0;
    bool ok;
    for (size_t i = 0; i < SES_LEN(some); i++) n += ses_utf8_encode(some[i], text + n);
    text[n] = 0;
    for (size_t i = 6; i < SES_LEN(encodings); i++) {
        size_t k = by_iconv("UTF-8", encodings[i].iconv, text, n, coded, sizeof coded - 1, &ok);
        if (!ok) {
            SKIP("iconv has no UTF-16");
            continue;
        }
        for (size_t step = 1; step < 6; step++) {
            ses_err e = { 0 };
            CHECK_STR(decode(encodings[i].encoding, coded, k, step, &e), text);
        }
    }
}

static void marks_and_errors(void)
{
    for (size_t step = 1; step < 5; step++) {
        ses_err e = { 0 };
        CHECK_STR(decode(SES_ENCODING_UTF16,
                         "\xff\xfe"
                         "a\0\xe9\0",
                         6, step, &e),
                  "a\xc3\xa9");
        CHECK_STR(decode(SES_ENCODING_UTF16, "\xfe\xff\0a\0\xe9", 6, step, &e), "a\xc3\xa9");
        CHECK_STR(decode(SES_ENCODING_UTF16, "a\0b\0", 4, step, &e), "ab");
        CHECK_STR(decode(SES_ENCODING_UTF8_REPLACE,
                         "a\xff"
                         "b\xe2\x82z\0c\xe2\x82\xac\xf0\x9f",
                         13, step, &e),
                  "a\xef\xbf\xbd"
                  "b\xef\xbf\xbdz\xef\xbf\xbd"
                  "c\xe2\x82\xac\xef\xbf\xbd");
        CHECK(!decode(SES_ENCODING_UTF16LE, "a\0\n\0b\0\0\xd8x\0", 10, step, &e));
        CHECK_STR(e.msg, "line 2: byte 3: not UTF-16: the first half of a pair without the second");
        e = (ses_err){ 0 };
        CHECK(!decode(SES_ENCODING_UTF16LE, "a\0b", 3, step, &e));
        CHECK_STR(e.msg, "line 1: byte 3: UTF-16 ends within a character");
        e = (ses_err){ 0 };
        CHECK(!decode(SES_ENCODING_WINDOWS_1252, "a\nb\x81", 4, step, &e));
        CHECK_STR(e.msg, "line 2: byte 2: a byte that this encoding does not use");
        e = (ses_err){ 0 };
        CHECK(!decode(SES_ENCODING_LATIN1, "ab\0", 3, step, &e));
        CHECK_STR(e.msg, "line 1: byte 3: NUL: not text");
    }
}

static void check(void)
{
    static const struct {
        const char *s;
        size_t n;
        const char *want;
    } cases[] = {
        { "", 0, "" },
        { "a\ncaf\xc3\xa9", 7, "" },
        { "a\n\ncaf\xe9 b", 9, "line 5: byte 4: invalid UTF-8" },
        { "a\0b", 3, "line 3: byte 2: NUL" },
        { "\xc3", 1, "line 3: byte 1: invalid UTF-8" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        ses_err e = { 0 };
        bool ok = ses_text_check_lines(cases[i].s, cases[i].n, 3, &e);
        CHECK(ok == !*cases[i].want);
        CHECK_MSG(!strncmp(e.msg, cases[i].want, strlen(cases[i].want)), "%s", e.msg);
    }
}

int main(void)
{
    single_bytes();
    code_points();
    marks_and_errors();
    check();
    return check_report();
}
