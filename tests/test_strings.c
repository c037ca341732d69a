/* String helpers of src/base: base64, hex digits, lists, little-endian bytes, string maps, "did you mean". */
#include "base/base64.h"
#include "base/bytes.h"
#include "base/str.h"
#include "base/strmap.h"
#include "base/suggest.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

/* The vectors of RFC 4648, section 10. */
static void test_base64(void)
{
    static const char *const pair[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    for (size_t i = 0; i < SES_LEN(pair); i++) {
        char text[16] = { 0 }, bytes[16] = { 0 };
        size_t n = strlen(pair[i][0]), got = 99;
        ses_err e = { 0 };
        CHECK(ses_base64_encoded_size(n) == strlen(pair[i][1]));
        ses_base64_encode(pair[i][0], n, text);
        CHECK_STR(text, pair[i][1]);
        CHECK_MSG(ses_base64_decode(text, strlen(text), bytes, &got, &e), "%s", e.msg);
        CHECK(got == n && !memcmp(bytes, pair[i][0], n));
    }
}

/* Every digit at every position. */
static void test_base64_all(void)
{
    unsigned char in[192], out[192];
    char text[256];
    size_t got;
    for (size_t turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)(i * 7 + turn * 101);
        ses_base64_encode(in, sizeof in, text);
        CHECK(ses_base64_decode(text, sizeof text, out, &got, NULL) && got == sizeof in);
        CHECK(!memcmp(in, out, sizeof in));
    }
    for (unsigned v = 0; v < 64; v++) { /* 000000 vvvvvv ... : one digit at a time */
        const unsigned char one[3] = { (unsigned char)(v << 2), 0, (unsigned char)v };
        unsigned char back[3];
        ses_base64_encode(one, 3, text);
        CHECK(text[0] == text[3] && ses_base64_decode(text, 4, back, &got, NULL) && !memcmp(one, back, 3));
    }
}

static void test_base64_refused(void)
{
    static const char *const bad[][2] = {
        { "Zg=", "3 characters" }, { "Z", "1 characters" },        { "Zg==Zg==", "character 2" },
        { "Zm9*", "character 3" }, { "Zm9v\n123", "character 4" }, { "Zh==", "stray bits" },
        { "Zm9=", "stray bits" },  { "====", "character 0" },      { "Zm-v", "character 2" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        char out[16];
        size_t got;
        ses_err e = { 0 };
        CHECK(!ses_base64_decode(bad[i][0], strlen(bad[i][0]), out, &got, &e) && e.code == SES_EFORMAT);
        CHECK_MSG(strstr(e.msg, bad[i][1]), "%s: %s", bad[i][0], e.msg);
    }
}

static void test_hex(void)
{
    static const char digits[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    for (int i = 0; i < 16; i++) CHECK(ses_hex_digit(digits[i]) == i && ses_hex_digit(upper[i]) == i);
    for (const char *c = "/:@G`g \xFF"; *c; c++) CHECK(ses_hex_digit(*c) == -1);
}

static void test_map(void)
{
    enum { N = 3000 };
    static char key[N][16];
    ses_strmap m = { 0 };
    ses_err e = { 0 };
    int64_t value = -1;
    CHECK(!ses_strmap_find(&m, "a", 1, &value) && value == -1);
    for (int i = 0; i < N; i++) {
        bool fresh = false;
        snprintf(key[i], sizeof key[i], "k%d", i);
        int64_t *at = ses_strmap_insert(&m, key[i], strlen(key[i]), i * 3, &fresh, &e);
        CHECK(at && *at == i * 3 && fresh);
    }
    CHECK(m.count == N);
    for (int i = 0; i < N; i++) {
        bool fresh = true;
        CHECK(ses_strmap_find(&m, key[i], strlen(key[i]), &value) && value == i * 3);
        CHECK(*ses_strmap_insert(&m, key[i], strlen(key[i]), 7, &fresh, &e) == i * 3 && !fresh);
        CHECK(m.entry[i].key == key[i]); /* in insertion order */
    }
    CHECK(m.count == N);
    CHECK(!ses_strmap_find(&m, "k1", 1, &value) && !ses_strmap_find(&m, "k3000", 5, &value));
    bool fresh;
    CHECK(*ses_strmap_insert(&m, "a\0b", 3, 1, &fresh, &e) == 1 && fresh); /* bytes, not a C string */
    CHECK(*ses_strmap_insert(&m, "a\0c", 3, 2, &fresh, &e) == 2 && fresh);
    CHECK(*ses_strmap_insert(&m, "", 0, 3, &fresh, &e) == 3 && fresh);
    CHECK(ses_strmap_find(&m, "a\0b", 3, &value) && value == 1);
    ses_strmap_free(&m);
    CHECK(!m.count && !ses_strmap_find(&m, "k1", 2, &value));
}

static const char *suggested(const char *word)
{
    static const char *const known[] = { "doctor", "info", "infer", "tokenize", "detokenize" };
    static ses_err e;
    ses_suggestion s = { .word = word };
    e = (ses_err){ 0 };
    for (size_t i = 0; i < SES_LEN(known); i++) ses_suggest_offer(&s, known[i], strlen(known[i]));
    ses_fail(&e, SES_EUSAGE, "no '%s'", word);
    CHECK(!ses_suggest_add(&s, "--", &e));
    return e.msg;
}

static void test_suggest(void)
{
    CHECK_STR(suggested("doctr"), "no 'doctr'; did you mean '--doctor'?");
    CHECK_STR(suggested("inf"),
              "no 'inf'; did you mean '--info'?"); /* the first of equally close candidates */
    CHECK_STR(suggested("tokenise"), "no 'tokenise'; did you mean '--tokenize'?");
    CHECK_STR(suggested("detok"), "no 'detok'; did you mean '--detokenize'?"); /* a prefix */
    CHECK_STR(suggested("banana"), "no 'banana'");
    CHECK_STR(suggested(""), "no ''");
}

static void test_lists(void)
{
    const char *item = NULL;
    size_t n = 9;
    CHECK(ses_list_len(NULL) == 0 && ses_list_len("") == 1 && ses_list_len("a||bc") == 3);
    CHECK(ses_list_at("a||bc", 0, &item, &n) && ses_equal(item, n, "a"));
    CHECK(ses_list_at("a||bc", 1, &item, &n) && n == 0);
    CHECK(ses_list_at("a||bc", 2, &item, &n) && ses_equal(item, n, "bc"));
    CHECK(!ses_list_at("a||bc", 3, &item, &n) && !ses_list_at(NULL, 0, &item, &n));
}

static void test_bytes(void)
{
    static const unsigned char p[] = { 0xff, 1, 2, 3, 4, 5, 6, 7, 0x80 };
    CHECK(ses_le(p, 0) == 0 && ses_le(p + 1, 3) == 0x030201);
    CHECK(ses_le16(p) == 0x01ff && ses_le32(p + 1) == 0x04030201 && ses_le64(p + 1) == 0x8007060504030201);
}

int main(void)
{
    test_lists();
    test_bytes();
    test_base64();
    test_base64_all();
    test_base64_refused();
    test_hex();
    test_map();
    test_suggest();
    return check_report();
}
