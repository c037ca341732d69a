/* Every pre-tokenizer that splits by characters or patterns: the ranges of its pieces. Expected values by
 * Hugging Face Tokenizers. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "step_fixture.h"
#include "text/regex/regex.h"

#include <time.h>

static const struct {
    const char *settings, *in, *pieces;
} cases[] = {
    { "{\"type\": \"Whitespace\"}", "Hey, you_2! \xC2\xB2", "0-3 3-4 5-10 10-11 12-14" },
    { "{\"type\": \"Whitespace\"}",
      "a\xE2\x80\x8D"
      "b  \xC2\xA0"
      "c\xCC\x81"
      "d",
      "0-5 9-13" },
    { "{\"type\": \"Whitespace\"}", "   ", "" },
    { "{\"type\": \"Whitespace\"}", "\xE4\xB8\xAD\xE6\x96\x87\xE3\x80\x82\xC3\xA9", "0-6 6-9 9-11" },
    { "{\"type\": \"WhitespaceSplit\"}",
      " a\xE3\x80\x80"
      "b\xC2\x85"
      "c! ",
      "1-2 5-6 8-10" },
    { "{\"type\": \"WhitespaceSplit\"}", "", "" },
    { "{\"type\": \"Digits\", \"individual_digits\": true}",
      "a12 \xC2\xBD\xE2\x85\xA3\xD9\xA3"
      "b",
      "0-1 1-2 2-3 3-4 4-6 6-9 9-11 11-12" },
    { "{\"type\": \"Digits\", \"individual_digits\": false}",
      "a12 \xC2\xBD\xE2\x85\xA3\xD9\xA3"
      "b",
      "0-1 1-3 3-4 4-11 11-12" },
    { "{\"type\": \"Digits\", \"individual_digits\": false}", "7", "0-1" },
    { "{\"type\": \"Punctuation\", \"behavior\": \"Removed\"}", "!a$$b\xE3\x80\x82?", "1-2 4-5" },
    { "{\"type\": \"Punctuation\", \"behavior\": \"Isolated\"}", "!a$$b\xE3\x80\x82?",
      "0-1 1-2 2-3 3-4 4-5 5-8 8-9" },
    { "{\"type\": \"Punctuation\", \"behavior\": \"MergedWithPrevious\"}", "!a$$b\xE3\x80\x82?",
      "0-1 1-3 3-4 4-8 8-9" },
    { "{\"type\": \"Punctuation\", \"behavior\": \"MergedWithNext\"}", "!a$$b\xE3\x80\x82?",
      "0-2 2-3 3-5 5-8 8-9" },
    { "{\"type\": \"Punctuation\", \"behavior\": \"Contiguous\"}", "!a$$b\xE3\x80\x82?",
      "0-1 1-2 2-4 4-5 5-9" },
    { "{\"type\": \"CharDelimiterSplit\", \"delimiter\": \"-\"}", "-a--b-", "1-2 4-5" },
    { "{\"type\": \"CharDelimiterSplit\", \"delimiter\": \"\xC3\xA9\"}",
      "a\xC3\xA9\xC3\xA8"
      "c\xC3\xA9\xC3\xA9",
      "0-1 3-6" },
    { "{\"type\": \"UnicodeScripts\"}",
      "\xE3\x81\xA9\xE3\x81\x93\xE3\x81\xA7\xE7\x94\x9F\xE3\x82\x8C\xE3\x80\x82Yes", "0-15 15-18 18-21" },
    { "{\"type\": \"UnicodeScripts\"}", "  ab \xD1\x8F\xD0\xB6 12", "2-5 5-10 10-12" },
    { "{\"type\": \"UnicodeScripts\"}",
      "Apples are \xE3\x82\x8A\xE3\x82\x93\xE3\x81\x94 \xE6\x9E\x97\xE6\xAA\x8E", "0-11 11-27" },
    { "{\"type\": \"UnicodeScripts\"}", "   ", "" },
    { "{\"type\": \"FixedLength\", \"length\": 3}",
      "ab\xC3\xA9"
      "cd\xF0\x9F\x98\x80"
      "ef",
      "0-4 4-10 10-12" },
    { "{\"type\": \"FixedLength\"}", "abcdefg", "0-5 5-7" },
    { "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, {\"type\": \"Digits\", "
      "\"individual_digits\": true}, {\"type\": \"Punctuation\", \"behavior\": \"Isolated\"}]}",
      "v1.25 (x)", "0-1 1-2 2-3 3-4 4-5 6-7 7-8 8-9" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"Removed\", \"invert\": "
      "false}",
      "--a-----b--", "2-3 7-9" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"Removed\", \"invert\": true}",
      "--a-----b--", "0-2 3-5 5-7 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?=[A-Z])|-\"}, \"behavior\": \"Removed\", "
      "\"invert\": false}",
      "aB-C-dE", "0-1 1-2 3-4 5-6 6-7" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"Isolated\", \"invert\": "
      "false}",
      "--a-----b--", "0-2 2-3 3-5 5-7 7-9 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"Isolated\", \"invert\": "
      "true}",
      "--a-----b--", "0-2 2-3 3-5 5-7 7-9 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?=[A-Z])|-\"}, \"behavior\": \"Isolated\", "
      "\"invert\": false}",
      "aB-C-dE", "0-1 1-2 2-3 3-4 4-5 5-6 6-7" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"MergedWithPrevious\", "
      "\"invert\": false}",
      "--a-----b--", "0-2 2-5 5-7 7-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"MergedWithPrevious\", "
      "\"invert\": true}",
      "--a-----b--", "0-3 3-5 5-9 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?=[A-Z])|-\"}, \"behavior\": "
      "\"MergedWithPrevious\", \"invert\": false}",
      "aB-C-dE", "0-1 1-3 3-5 5-6 6-7" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"MergedWithNext\", "
      "\"invert\": false}",
      "--a-----b--", "0-3 3-5 5-9 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"MergedWithNext\", "
      "\"invert\": true}",
      "--a-----b--", "0-2 2-5 5-7 7-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?=[A-Z])|-\"}, \"behavior\": \"MergedWithNext\", "
      "\"invert\": false}",
      "aB-C-dE", "0-1 1-2 2-4 4-6 6-7" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"Contiguous\", \"invert\": "
      "false}",
      "--a-----b--", "0-2 2-3 3-7 7-9 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"String\": \"--\"}, \"behavior\": \"Contiguous\", \"invert\": "
      "true}",
      "--a-----b--", "0-2 2-3 3-7 7-9 9-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?=[A-Z])|-\"}, \"behavior\": \"Contiguous\", "
      "\"invert\": false}",
      "aB-C-dE", "0-1 1-2 2-3 3-4 4-5 5-6 6-7" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| "
      "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": \"Isolated\", \"invert\": false}",
      "I'm  here,  it's 12\xC2\xA0\xC2\xBD 'S!\n\n x ",
      "0-1 1-3 3-4 4-9 9-10 10-11 11-14 14-16 16-19 19-21 21-23 23-25 25-26 26-27 27-29 29-31 31-32" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
      "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
      "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": "
      "\"Isolated\", \"invert\": false}",
      "I'M  here!!\r\n\n it'\xC5\xBF 12345\xC2\xA0x  \n  y  ",
      "0-1 1-3 3-4 4-9 9-14 14-17 17-20 20-21 21-24 24-26 26-29 29-32 32-33 33-35 35-37" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
      "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "
      "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": "
      "\"Isolated\", \"invert\": false}",
      "a 123", "0-1 1-2 2-3 3-4 4-5" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
      "\"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}"
      "\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}"
      "\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\\\p{"
      "N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
      "\"behavior\": \"Isolated\", \"invert\": false}",
      "HTMLParser's \xE4\xB8\xAD\xE6\x96\x87"
      "AB ABC \xCC\x81"
      "A 1234 //\n",
      "0-12 12-19 19-21 21-25 25-28 28-29 29-30 30-33 33-34 34-38" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
      "\"<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|[^"
      "\\\\s\\\\p{L}\\\\p{N}]+\"}, \"behavior\": \"Removed\", \"invert\": false}",
      "<|startoftext|>it's a 12!!<|endoftext|>", "19-20 21-22" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \" "
      "?[^(\\\\s|[.,!?\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81\xE0\xA5\xA4\xDB\x94\xD8\x8C])]+\"}, "
      "\"behavior\": \"Isolated\", \"invert\": false}",
      "Hello, world\xE2\x80\xA6 ok(x) [y]", "0-5 5-6 6-12 12-15 15-18 18-19 19-20 20-21 21-25" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \" {2,}\"}, \"behavior\": \"Isolated\", \"invert\": "
      "false}",
      "a  b c    d", "0-1 1-3 3-6 6-10 10-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s{2,}|[\\\\n\\\\r\\\\t]\"}, \"behavior\": "
      "\"Isolated\", \"invert\": false}",
      "a  b\n c\t\xE3\x80\x80\xC2\xA0", "0-1 1-3 3-4 4-6 6-7 7-13" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"behavior\": \"Isolated\", \"invert\": "
      "false}",
      "a  b\n c", "0-1 1-3 3-4 4-6 6-7" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\d\"}, \"behavior\": \"Isolated\", \"invert\": "
      "false}",
      "a12\xD9\xA3", "0-1 1-2 2-3 3-5" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\w+|[^\\\\w\\\\s]+\"}, \"behavior\": "
      "\"Isolated\", \"invert\": false}",
      "a_\xC2\xB2"
      "b!\xE2\x80\x8D c",
      "0-5 5-9 9-10 10-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\p{N}{1,3}\"}, \"behavior\": \"Isolated\", "
      "\"invert\": false}",
      "12345", "0-3 3-5" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[0-9][0-9][0-9]\"}, \"behavior\": \"Isolated\", "
      "\"invert\": false}",
      "12345", "0-3 3-5" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?<=a)b|(?<!x)c\"}, \"behavior\": \"Isolated\", "
      "\"invert\": false}",
      "abxbc xc", "0-1 1-2 2-4 4-5 5-8" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\bfoo\\\\b|^b|z$\"}, \"behavior\": \"Isolated\", "
      "\"invert\": false}",
      "foo xfoo\nb z\nz", "0-3 3-9 9-10 10-11 11-12 12-13 13-14" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a{2,3}?|(?>b+)b|c++|(?:de)*f\"}, \"behavior\": "
      "\"Isolated\", \"invert\": false}",
      "aaaaabbbcccdedefe", "0-2 2-4 4-8 8-11 11-16 16-17" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
      "\"[[:punct:]]|[a-z&&[^aeiou]]|\\\\h|\\\\x{e9}|\\\\p{Han}\"}, \"behavior\": \"Isolated\", \"invert\": "
      "false}",
      "b,e!\xC3\xA9\xE6\xBC\xA2G9", "0-1 1-2 2-3 3-4 4-6 6-9 9-10 10-11" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?i:KAxs)\"}, \"behavior\": \"Isolated\", "
      "\"invert\": false}",
      "KaX\xC5\xBF kAxS", "0-5 5-6 6-10" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\"}, \"behavior\": \"Isolated\", \"invert\": false}",
      "ab", "0-1 1-2" },
    { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a|\"}, \"behavior\": \"Isolated\", \"invert\": "
      "false}",
      "bab", "0-1 1-2 2-3" },
};

static bool open(opened *o, const char *settings, ses_err *e)
{
    return open_step(o, SES_PRE_TOKENIZER, settings, e);
}

static bool fill(ses_pieces *p, const char *in, size_t n, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0, k; ok && i < n; i += k) {
        uint32_t cp;
        k = ses_utf8_next(in + i, &cp);
        ok = ses_text_put(&p->text, in + i, k, (ses_offset){ (uint32_t)i, (uint32_t)(i + k) }, e);
    }
    return ok && (!n || ses_pieces_put(p, 0, (uint32_t)n, -1, e));
}

/* Run all stages of a sequence; takes ownership of in. */
static bool run(const opened *o, ses_pieces *in, ses_pieces *out, ses_err *e)
{
    size_t steps = 1;
    const ses_stage_instance *step =
        o->step.stage->steps ? o->step.stage->steps(o->step.self, &steps) : &o->step;
    bool ok = true;
    for (size_t i = 0; ok && i < steps; i++) {
        ses_pieces next = { 0 };
        ok = step[i].stage->split(step[i].self, in, &next, e);
        if (!next.text.n) { /* the stage only split: its pieces refer to the text of `in` */
            next.text = in->text;
            in->text = (ses_text){ 0 };
        }
        ses_pieces_free(in);
        *in = next;
    }
    *out = *in;
    return ok;
}

static const char *pieces(const ses_pieces *p)
{
    static char out[1024];
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < p->n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%u-%u", n ? " " : "", p->piece[i].begin,
                              p->piece[i].end);
    return out;
}

static void test_cases(void)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        opened o;
        ses_err e = { 0 };
        ses_pieces in = { 0 }, out = { 0 };
        if (CHECK_MSG(open(&o, cases[i].settings, &e), "%s", e.msg)) {
            CHECK(fill(&in, cases[i].in, strlen(cases[i].in), &e));
            CHECK_MSG(run(&o, &in, &out, &e), "%s", e.msg);
            CHECK_STR(pieces(&out), cases[i].pieces);
            CHECK(out.text.n == strlen(cases[i].in));
            ses_pieces_free(&out);
        }
        shut(&o);
    }
}

/* An added token passes through; a piece is split independently of its neighbors. */
static void test_tokens(void)
{
    opened o;
    ses_err e = { 0 };
    ses_pieces in = { 0 }, out = { 0 };
    CHECK(open(&o, "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"^.|x$\"}, \"behavior\": \"Isolated\"}",
               &e));
    CHECK(fill(&in, "abx--abx", 8, &e));
    in.piece[0] = (ses_piece){ 0, 3, -1 };
    CHECK(ses_pieces_put(&in, 3, 5, 7, &e) && ses_pieces_put(&in, 5, 8, -1, &e));
    CHECK_MSG(run(&o, &in, &out, &e), "%s", e.msg);
    CHECK_STR(pieces(&out), "0-1 1-2 2-3 3-5 5-6 6-7 7-8");
    CHECK(out.n == 7 && out.piece[3].id == 7 && out.piece[0].id == -1);
    ses_pieces_free(&out);
    shut(&o);
}

static void test_save(void)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) check_saved(SES_PRE_TOKENIZER, cases[i].settings);
}

static void test_refusals(void)
{
    static const struct {
        const char *settings, *message;
    } bad[] = {
        { "{\"type\": \"CharDelimiterSplit\", \"delimiter\": \"ab\"}", "one character" },
        { "{\"type\": \"FixedLength\", \"length\": 0}", "length" },
        { "{\"type\": \"Punctuation\", \"behavior\": \"isolated\"}", "must be Removed, Isolated" },
        { "{\"type\": \"Split\", \"pattern\": \"-\"}", "key \"pattern\" must be" },
        { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a\"}}", "[ without ]" },
        { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a**)\"}}", ") without (" },
        { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"+a\"}}", "nothing to repeat, at byte 1" },
        { "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[b-a]\"}}", "descending order" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++)
        check_refused(SES_PRE_TOKENIZER, bad[i].settings, bad[i].message);
}

/* Constructs that need PCRE2: matched with it, rejected by name otherwise. */
static void test_pcre2(void)
{
    opened o;
    ses_err e = { 0 };
    ses_pieces in = { 0 }, out = { 0 };
    bool ok = open(
        &o, "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(.)\\\\1\"}, \"behavior\": \"Isolated\"}", &e);
    CHECK(ok == ses_regex_has_pcre2());
    if (ok) {
        CHECK(fill(&in, "abbc\xC3\xA9\xC3\xA9", 8, &e));
        CHECK_MSG(run(&o, &in, &out, &e), "%s", e.msg);
        CHECK_STR(pieces(&out), "0-1 1-3 3-4 4-8");
        ses_pieces_free(&out);
    } else {
        CHECK_MSG(strstr(e.msg, "requires PCRE2") && strstr(e.msg, "(.)\\1"), "%s", e.msg);
    }
    shut(&o);
}

/* A pattern that exceeds the step limit is an error. */
static void test_limits(void)
{
    opened o;
    ses_err e = { 0 };
    ses_pieces in = { 0 }, out = { 0 };
    CHECK(open(&o,
               "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?:a|a)*b\"}, \"behavior\": \"Isolated\"}",
               &e));
    CHECK(fill(&in, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 60, &e));
    CHECK(!run(&o, &in, &out, &e) && strstr(e.msg, "step limit exceeded"));
    ses_pieces_free(&out);
    shut(&o);
}

/* 10 MB of marks, of one character, of spaces, and less of others: all must be fast. */
static void test_long(void)
{
    static const char *const type[] = {
        "{\"type\": \"Whitespace\"}",
        "{\"type\": \"WhitespaceSplit\"}",
        "{\"type\": \"Digits\", \"individual_digits\": true}",
        "{\"type\": \"Punctuation\", \"behavior\": \"MergedWithNext\"}",
        "{\"type\": \"CharDelimiterSplit\", \"delimiter\": \" \"}",
        "{\"type\": \"UnicodeScripts\"}",
        "{\"type\": \"FixedLength\", \"length\": 3}",
        "{\"type\": \"Split\", \"pattern\": {\"String\": \"aab\"}, \"behavior\": \"Isolated\"}",
        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"behavior\": \"Removed\"}",
        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\s{2,}|[\\\\n\\\\r\\\\t]\"}, \"behavior\": "
        "\"Isolated\"}",
        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\"}, \"behavior\": \"Isolated\"}",
        "{\"type\": \"Split\", \"pattern\": {\"Regex\": "
        "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
        "\\\\p{N}{1,3}| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
        "\"behavior\": \"Isolated\"}",
    };
    static const char *const unit[] = { "\xCC\x81\xCC\xA3", "a", " ", "\xE4\xB8\xAD", "!", "1", "\n" };
    const size_t n = 10 << 20;
    char *text = ses_alloc(n, NULL);
    for (size_t u = 0; text && u < SES_LEN(unit); u++) {
        size_t k = strlen(unit[u]), len = (u < 3 ? n : n / 10) / k * k;
        for (size_t i = 0; i < len; i++) text[i] = unit[u][i % k];
        for (size_t i = 0; i < SES_LEN(type); i++) {
            opened o;
            ses_err e = { 0 };
            ses_pieces in = { 0 }, out = { 0 };
            if (!CHECK_MSG(open(&o, type[i], &e), "%s", e.msg)) continue;
            CHECK(fill(&in, text, len, &e));
            clock_t t = clock();
            CHECK_MSG(run(&o, &in, &out, &e), "%s", e.msg);
            double s = (double)(clock() - t) / CLOCKS_PER_SEC;
            CHECK_MSG(s < 60, "%.60s on unit %zu took %.2f s", type[i], u, s);
            ses_pieces_free(&out);
            shut(&o);
        }
    }
    ses_free(text);
}

int main(void)
{
    test_cases();
    test_tokens();
    test_save();
    test_refusals();
    test_pcre2();
    test_limits();
    test_long();
    return check_report();
}
