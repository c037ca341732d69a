#include "check.h"
#include "sesame/json.h"

/* want: NULL when accepted, else the message. */
typedef struct text_case {
    const char *text, *want;
} text_case;

static const text_case texts[] = {
    { "null", NULL },
    { " [1, 2.5, \"x\\u00e9\\ud83d\\ude00\", {\"a\": {}}, []] ", NULL },
    { "", "line 1, column 1 (byte 0): a value expected, not the end of the text" },
    { "[1,]", "line 1, column 4 (byte 3): a value expected, not ']'" },
    { "{\"a\":1,\n \"a\":2}", "line 2, column 2 (byte 9): key \"a\" appears twice" },
    { "{\"a\" 1}", "line 1, column 6 (byte 5): ':' expected after a key, not '1'" },
    { "[1] x", "line 1, column 5 (byte 4): nothing expected after the value, not 'x'" },
    { "01", "line 1, column 1 (byte 0): number with a leading zero" },
    { "\"\\ud800\"",
      "line 1, column 2 (byte 1): \\ud800 is the first half of a surrogate pair without its second" },
    { "\"a", "line 1, column 1 (byte 0): string without its closing quote" },
};

static void check_texts(void)
{
    for (size_t i = 0; i < SES_LEN(texts); i++) {
        ses_err e = { 0 };
        ses_json_doc *d = ses_json_parse(texts[i].text, strlen(texts[i].text), &e);
        if (texts[i].want)
            CHECK_STR(d ? "accepted" : e.msg, texts[i].want);
        else
            CHECK_MSG(d, "%s: %s", texts[i].text, e.msg);
        ses_json_free(d);
    }
}

static void check_values(void)
{
    static const char text[] =
        "{\"i\": -9223372036854775808, \"u\": 18446744073709551615, \"big\": 18446744073709551616,"
        " \"r\": 1.0, \"t\": true, \"s\": \"a\\u0000b\", \"l\": [1, [2], 3]}";
    ses_err e = { 0 };
    ses_json_doc *d = ses_json_parse(text, sizeof text - 1, &e);
    CHECK_MSG(d, "%s", e.msg);
    const ses_json *o = ses_json_root(d);
    int64_t i = 0;
    double r = 0;
    bool t = false;
    size_t len = 0;
    CHECK(ses_json_int(ses_json_get(o, "i"), &i) && i == INT64_MIN);
    CHECK(ses_json_type_of(ses_json_get(o, "u")) == SES_JSON_UINT && !ses_json_int(ses_json_get(o, "u"), &i));
    CHECK(ses_json_type_of(ses_json_get(o, "big")) == SES_JSON_REAL);
    CHECK(ses_json_real(ses_json_get(o, "big"), &r) && r == 18446744073709551616.0);
    CHECK(!ses_json_int(ses_json_get(o, "r"), &i) && ses_json_real(ses_json_get(o, "r"), &r) && r == 1);
    CHECK(ses_json_bool(ses_json_get(o, "t"), &t) && t);
    const char *s = ses_json_string(ses_json_get(o, "s"), &len);
    CHECK(s && len == 3 && memcmp(s, "a\0b", 4) == 0);
    const ses_json *l = ses_json_get(o, "l");
    CHECK(ses_json_len(l) == 3 && ses_json_int(ses_json_at(l, 2), &i) && i == 3);
    CHECK(ses_json_at(l, 3) == NULL && ses_json_get(l, "x") == NULL && ses_json_get(o, "x") == NULL);
    CHECK_STR(ses_json_key(o, 5, &len), "s");
    CHECK(text[ses_json_pos(l)] == '[');
    ses_json_free(d);
}

int main(void)
{
    check_texts();
    check_values();
    return check_report();
}
