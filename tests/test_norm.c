/* Every normalizer: text and source range of each character. Expected values by Hugging Face Tokenizers. */
#include "base/alloc.h"
#include "base/unicode/utf8.h"
#include "step_fixture.h"

#include <time.h>

/* a to X; b and space to nothing; copyright sign to (c); c with grave accent to Q; acute accent to
 * nothing; U+1100 to L; ligature fi to fi. */
#define CHARSMAP                                                                                       \
    "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAgAAAAEAAAAAAAAAAAAAAAAAAALAACAAAAAAAAA" \
    "AAAJAACAAAAAAAIAAIAAAAAAAwAAgAAAAAAAAAAABwAAgAIAAIAAAACAAgAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACDBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGHB" \
    "AQAAAAAAY7gBAGKxAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIQcAgCBGQIAAAAAAAAA" \
    "AAAAAAAAgAUCAAAAAAAAAAAAgQECAAAAAAAAAAAAAAAAAIANAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACpoQIAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAKy0AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAMw0AwAAAAAAAAAAAMIkAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AADMFAMAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAA4ZQDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADvsAMAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" \
    "AAAAAAAAWAAAKGMpAFEATABmaQA=\"}"

static const struct {
    const char *settings, *in, *out, *from;
} cases[] = {
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "H\xC3\xA9llo\xC2\xA0WORLD\xE2\x80\x8B!", "hello world!",
      "0-1 1-3 3-4 4-5 5-6 6-8 8-9 9-10 10-11 11-12 12-13 16-17" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "\xE4\xB8\xAD\xE6\x96\x87"
      "a",
      " \xE4\xB8\xAD  \xE6\x96\x87 a", "0-3 0-3 0-3 3-6 3-6 3-6 6-7" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "\xC4\xB0\x01\xEF\xBF\xBDx", "ix", "0-2 6-7" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "\xE1\xBB\x87\xCC\xA3 \xED\x95\x9C", "e \xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "0-3 5-6 6-9 6-9 6-9" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": false}",
      "H\xC3\xA9llo \xC3\x89", "H\xC3\xA9llo \xC3\x89", "0-1 1-3 3-4 4-5 5-6 6-7 7-9" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": false, \"lowercase\": true}",
      "H\xC3\x89 \xC4\xB0", "h\xC3\xA9 i\xCC\x87", "0-1 1-3 3-4 4-6 4-6" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": false, \"handle_chinese_chars\": false, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "\xC3\x89\t\xE4\xB8\xAD\xC2\xA0", "e\t\xE4\xB8\xAD\xC2\xA0", "0-2 2-3 3-6 6-8" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "e\xCC\x81\xE0\xA3\x94\xCC\xA3x", "e\xE0\xA3\x94x", "0-1 6-8 8-9" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "\xF0\x9D\x85\x9E\xCC\xA3", "\xF0\x9D\x85\x97\xF0\x9D\x85\xA5", "0-4 0-4" },
    { "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
      "\"strip_accents\": null, \"lowercase\": true}",
      "\xE4\xB8\xAD\xE3\x80\xAE\xCC\x81", " \xE4\xB8\xAD \xE3\x80\xAE", "0-3 0-3 0-3 3-6" },
    { "{\"type\": \"NFC\"}",
      "e\xCC\xA3\xCC\x82"
      "a \xC3\xA9",
      "\xE1\xBB\x87"
      "a \xC3\xA9",
      "0-1 5-6 6-7 7-9" },
    { "{\"type\": \"NFC\"}",
      "\xE1\xBB\x87\xCC\xA3"
      "b\xC3\xA9\xCC\xA3",
      "\xE1\xBB\x87\xCC\xA3"
      "b\xE1\xBA\xB9\xCC\x81",
      "0-3 3-5 5-6 6-8 8-10" },
    { "{\"type\": \"NFC\"}", "\xEF\xAC\x81\xCC\x81\xC2\xBD\xEA\xB0\x81",
      "\xEF\xAC\x81\xCC\x81\xC2\xBD\xEA\xB0\x81", "0-3 3-5 5-7 7-10" },
    { "{\"type\": \"NFC\"}", "\xE3\x8B\xBF\xCD\x84", "\xE3\x8B\xBF\xCC\x88\xCC\x81", "0-3 3-5 3-5" },
    { "{\"type\": \"NFD\"}",
      "e\xCC\xA3\xCC\x82"
      "a \xC3\xA9",
      "e\xCC\xA3\xCC\x82"
      "a e\xCC\x81",
      "0-1 1-3 3-5 5-6 6-7 7-9 7-9" },
    { "{\"type\": \"NFD\"}",
      "\xE1\xBB\x87\xCC\xA3"
      "b\xC3\xA9\xCC\xA3",
      "e\xCC\xA3\xCC\xA3\xCC\x82"
      "be\xCC\xA3\xCC\x81",
      "0-3 0-3 3-5 3-5 5-6 6-8 8-10 8-10" },
    { "{\"type\": \"NFD\"}", "\xEF\xAC\x81\xCC\x81\xC2\xBD\xEA\xB0\x81",
      "\xEF\xAC\x81\xCC\x81\xC2\xBD\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "0-3 3-5 5-7 7-10 7-10 7-10" },
    { "{\"type\": \"NFD\"}", "\xE3\x8B\xBF\xCD\x84", "\xE3\x8B\xBF\xCC\x88\xCC\x81", "0-3 3-5 3-5" },
    { "{\"type\": \"NFKC\"}",
      "e\xCC\xA3\xCC\x82"
      "a \xC3\xA9",
      "\xE1\xBB\x87"
      "a \xC3\xA9",
      "0-1 5-6 6-7 7-9" },
    { "{\"type\": \"NFKC\"}",
      "\xE1\xBB\x87\xCC\xA3"
      "b\xC3\xA9\xCC\xA3",
      "\xE1\xBB\x87\xCC\xA3"
      "b\xE1\xBA\xB9\xCC\x81",
      "0-3 3-5 5-6 6-8 8-10" },
    { "{\"type\": \"NFKC\"}", "\xEF\xAC\x81\xCC\x81\xC2\xBD\xEA\xB0\x81",
      "f\xC3\xAD"
      "1\xE2\x81\x84"
      "2\xEA\xB0\x81",
      "0-3 3-5 5-7 5-7 5-7 7-10" },
    { "{\"type\": \"NFKC\"}", "\xE3\x8B\xBF\xCD\x84", "\xE3\x8B\xBF\xCC\x88\xCC\x81", "0-3 3-5 3-5" },
    { "{\"type\": \"NFKD\"}",
      "e\xCC\xA3\xCC\x82"
      "a \xC3\xA9",
      "e\xCC\xA3\xCC\x82"
      "a e\xCC\x81",
      "0-1 1-3 3-5 5-6 6-7 7-9 7-9" },
    { "{\"type\": \"NFKD\"}",
      "\xE1\xBB\x87\xCC\xA3"
      "b\xC3\xA9\xCC\xA3",
      "e\xCC\xA3\xCC\xA3\xCC\x82"
      "be\xCC\xA3\xCC\x81",
      "0-3 0-3 3-5 3-5 5-6 6-8 8-10 8-10" },
    { "{\"type\": \"NFKD\"}", "\xEF\xAC\x81\xCC\x81\xC2\xBD\xEA\xB0\x81",
      "fi\xCC\x81"
      "1\xE2\x81\x84"
      "2\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8",
      "0-3 0-3 3-5 5-7 5-7 5-7 7-10 7-10 7-10" },
    { "{\"type\": \"NFKD\"}", "\xE3\x8B\xBF\xCD\x84", "\xE3\x8B\xBF\xCC\x88\xCC\x81", "0-3 3-5 3-5" },
    { "{\"type\": \"Lowercase\"}", "\xCE\x91\xCE\xA3 \xC4\xB0\xE1\xBA\x9Ex",
      "\xCE\xB1\xCF\x83 i\xCC\x87\xC3\x9Fx", "0-2 2-4 4-5 5-7 5-7 7-10 10-11" },
    { "{\"type\": \"StripAccents\"}", "e\xCC\x81\xC3\xA9\xE0\xA4\x83", "e\xC3\xA9", "0-1 3-5" },
    { "{\"type\": \"Nmt\"}",
      "a\xE2\x80\x8B\x01"
      "b\xE2\x96\x81\tc",
      "a b  c", "0-1 1-4 5-6 6-9 9-10 10-11" },
    { "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}", "\xC2\xA0 \xC3\xA9 b\xE3\x80\x80",
      "\xC3\xA9 b", "3-5 5-6 6-7" },
    { "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": false}",
      "\xC2\xA0 \xC3\xA9 b\xE3\x80\x80", "\xC3\xA9 b\xE3\x80\x80", "3-5 5-6 6-7 7-10" },
    { "{\"type\": \"Strip\", \"strip_left\": false, \"strip_right\": true}",
      "\xC2\xA0 \xC3\xA9 b\xE3\x80\x80", "\xC2\xA0 \xC3\xA9 b", "0-2 2-3 3-5 5-6 6-7" },
    { "{\"type\": \"Strip\", \"strip_left\": false, \"strip_right\": false}",
      "\xC2\xA0 \xC3\xA9 b\xE3\x80\x80", "\xC2\xA0 \xC3\xA9 b\xE3\x80\x80", "0-2 2-3 3-5 5-6 6-7 7-10" },
    { "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}", "   ", "", "" },
    { "{\"type\": \"Prepend\", \"prepend\": \"\xE2\x96\x81x\"}",
      "\xC3\xA9"
      "b",
      "\xE2\x96\x81x\xC3\xA9"
      "b",
      "0-2 0-2 0-2 2-3" },
    { "{\"type\": \"Prepend\", \"prepend\": \"\xE2\x96\x81x\"}", "", "", "" },
    { "{\"type\": \"Prepend\", \"prepend\": \"\"}",
      "\xC3\xA9"
      "b",
      "\xC3\xA9"
      "b",
      "0-0 2-3" },
    { "{\"type\": \"Append\", \"append\": \"\xE2\x96\x81x\"}", "a\xC3\xA9", "a\xC3\xA9\xE2\x96\x81x",
      "0-1 1-3 1-3 1-3" },
    { "{\"type\": \"Append\", \"append\": \"x\"}", "", "", "" },
    { "{\"type\": \"ByteLevel\"}", "a \xC3\xA9\n", "a\xC4\xA0\xC3\x83\xC2\xA9\xC4\x8A",
      "0-1 1-2 2-4 2-4 4-5" },
    { "{\"type\": \"Replace\", \"pattern\": {\"String\": \"``\"}, \"content\": \"\\\"\"}", "a``b```",
      "a\"b\"`", "0-1 2-3 3-4 5-6 6-7" },
    { "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\xE2\x96\x81\"}",
      "a  \xC3\xA9 b",
      "a\xE2\x96\x81\xE2\x96\x81\xC3\xA9\xE2\x96\x81"
      "b",
      "0-1 1-2 2-3 3-5 5-6 6-7" },
    { "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\xC3\xA9\"}, \"content\": \"\"}",
      "\xC3\xA9"
      "a\xC3\xA9\xC3\xA9",
      "a", "2-3" },
    { "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\"}, \"content\": \"-\"}", "a\xC3\xA9",
      "-a-\xC3\xA9-", "0-0 0-1 0-1 1-3 1-3" },
    { "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}", "a   b c  ",
      "a b c ", "0-1 3-4 4-5 5-6 6-7 8-9" },
    { "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"^\"}, \"content\": \"\xE2\x96\x81\"}", "a\nb",
      "\xE2\x96\x81"
      "a\n\xE2\x96\x81"
      "b",
      "0-0 0-1 1-2 1-2 2-3" },
    { "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"b*\"}, \"content\": \"X\"}", "abbcb", "XaXcX",
      "0-0 0-1 2-3 3-4 4-5" },
    { "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"content\": \" \"}", "a \xC2\xA0\nb",
      "a b", "0-1 4-5 5-6" },
    { "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"(?<=a)b|$\"}, \"content\": \"X\"}", "abcb", "aXcbX",
      "0-1 1-2 2-3 3-4 3-4" },
    { CHARSMAP, "abc", "Xc", "0-1 2-3" },
    { CHARSMAP,
      "xbb\xC2\xA9"
      "b",
      "x(c)", "0-1 3-5 3-5 5-6" },
    { CHARSMAP, "a\xCC\x81z", "Xz", "0-1 3-4" },
    { CHARSMAP, "c\xCC\x80\xCC\x81\xEF\xAC\x81", "Qfi", "0-1 5-8 5-8" },
    { CHARSMAP, "babc", "Xc", "0-1 2-3" },
    { CHARSMAP, "\xE1\x84\x80\xE1\x85\xA1\xCC\x81", "L\xE1\x85\xA1", "0-3 3-6" },
    { CHARSMAP, "x a\xCC\x81\xCC\x81\xCC\x81", "xX", "0-1 2-3" },
    { "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"``\"}, "
      "\"content\": \"\\\"\"}, {\"type\": \"NFKD\"}, {\"type\": \"StripAccents\"}, {\"type\": "
      "\"Lowercase\"}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}]}",
      "``\xC3\x9Cn\xC3\xAF``  \xC2\xBD",
      "\"uni\" 1\xE2\x81\x84"
      "2",
      "1-2 2-4 4-5 5-7 8-9 10-11 11-13 11-13 11-13" },
};

static bool open(opened *o, const char *settings, ses_err *e)
{
    return open_step(o, SES_NORMALIZER, settings, e);
}

/* Run all stages of a sequence. base: input offset of the text. */
static bool run(const opened *o, const char *in, size_t n, uint32_t base, ses_text *out, ses_err *e)
{
    size_t steps = 1;
    const ses_stage_instance *step =
        o->step.stage->steps ? o->step.stage->steps(o->step.self, &steps) : &o->step;
    ses_text text = { .base = base };
    bool ok = true;
    for (size_t i = 0, k; ok && i < n; i += k) {
        uint32_t cp;
        k = ses_utf8_next(in + i, &cp);
        ok = ses_text_put(&text, in + i, k, (ses_offset){ base + (uint32_t)i, base + (uint32_t)(i + k) }, e);
    }
    for (size_t i = 0; ok && i < steps; i++) {
        ses_text next = { .base = base };
        ok = step[i].stage->normalize(step[i].self, &text, 0, text.n, &next, e);
        ses_text_free(&text);
        text = next;
    }
    if (ok)
        *out = text;
    else
        ses_text_free(&text);
    return ok;
}

static const char *ranges(const ses_text *t, uint32_t base)
{
    static char out[1024];
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0, k; i < t->n; i += k) {
        uint32_t cp;
        k = ses_utf8_next(t->byte + i, &cp);
        for (size_t j = 1; j < k; j++) CHECK(!memcmp(&t->from[i], &t->from[i + j], sizeof t->from[i]));
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%u-%u", n ? " " : "", t->from[i].begin - base,
                              t->from[i].end - base);
    }
    return out;
}

static void test_cases(void)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        opened o;
        ses_err e = { 0 };
        ses_text out = { 0 };
        if (CHECK_MSG(open(&o, cases[i].settings, &e), "%s", e.msg)) {
            for (uint32_t base = 0; base < 200; base += 100) { /* also as part of a longer input */
                CHECK_MSG(run(&o, cases[i].in, strlen(cases[i].in), base, &out, &e), "%s", e.msg);
                CHECK_MSG(out.n == strlen(cases[i].out) &&
                              !memcmp(out.n ? out.byte : "", cases[i].out, out.n),
                          "case %zu, %.60s: got \"%.*s\"", i, cases[i].settings, (int)out.n, out.byte);
                CHECK_STR(ranges(&out, base), cases[i].from);
                ses_text_free(&out);
            }
        }
        shut(&o);
    }
}

static void test_save(void)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) check_saved(SES_NORMALIZER, cases[i].settings);
}

static void test_refusals(void)
{
    static const struct {
        const char *settings, *message;
    } bad[] = {
        { "{\"type\": \"Prepend\"}", "Prepend: key \"prepend\" is missing" },
        { "{\"type\": \"Strip\", \"strip_left\": 1}", "strip_left" },
        { "{\"type\": \"Replace\", \"content\": \"x\"}", "Replace: key \"pattern\" must be" },
        { "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a(\"}, \"content\": \"x\"}",
          "Replace: key \"pattern\": \"a(\": regular expression: ( without ), at byte 2" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAA\"}",
          "base64 of 3 characters, expected" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AA*=\"}",
          "invalid base64 at character 2" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"\"}", "charsmap of 0 bytes is too short" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AQAAAA==\"}", "no root" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"/////w==\"}",
          "trie of 1073741823 units exceeds the 4 bytes" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"BAAAAAAAAAD/\"}",
          "invalid UTF-8 in the replacements at byte 0" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) check_refused(SES_NORMALIZER, bad[i].settings, bad[i].message);
}

/* An invalid charsmap trie is an error when used, not a crash: the replacement of a is past the end. */
static void test_astray(void)
{
    unsigned char map[4 + 4 * 256 + 1] = { 0, 4 }; /* full groups of base64 */
    uint32_t unit[256] = { 0 };
    unit[0] = 1u << 10;                       /* children from 1 */
    unit[1 ^ 'a'] = 'a' | 1u << 8 | 3u << 10; /* a leaf, its value 3 off */
    unit[(1 ^ 'a') ^ 3] = 0x80000000u | 77;
    for (size_t i = 0; i < 256; i++)
        for (size_t k = 0; k < 4; k++) map[4 + 4 * i + k] = (unsigned char)(unit[i] >> 8 * k);
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char settings[2000];
    size_t n = (size_t)snprintf(settings, sizeof settings,
                                "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"");
    for (size_t i = 0; i + 2 < sizeof map; i += 3) {
        uint32_t bits = (uint32_t)map[i] << 16 | (uint32_t)map[i + 1] << 8 | map[i + 2];
        for (int k = 18; k >= 0; k -= 6) settings[n++] = digit[bits >> k & 63];
    }
    snprintf(settings + n, sizeof settings - n, "\"}");
    opened o;
    ses_err e = { 0 };
    ses_text out = { 0 };
    if (CHECK_MSG(open(&o, settings, &e), "%s", e.msg)) {
        CHECK(run(&o, "b", 1, 0, &out, &e) && out.n == 1);
        ses_text_free(&out);
        CHECK(!run(&o, "ba", 2, 0, &out, &e) && strstr(e.msg, "replacement at 77"));
    }
    shut(&o);
}

/* 10 MB of marks, of one character, of spaces, and less of others: all must be fast. */
static void test_long(void)
{
    static const char *const type[] = {
        "{\"type\": \"BertNormalizer\"}",
        "{\"type\": \"NFC\"}",
        "{\"type\": \"NFD\"}",
        "{\"type\": \"NFKC\"}",
        "{\"type\": \"NFKD\"}",
        "{\"type\": \"Lowercase\"}",
        "{\"type\": \"StripAccents\"}",
        "{\"type\": \"Strip\"}",
        "{\"type\": \"Nmt\"}",
        "{\"type\": \"ByteLevel\"}",
        "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}",
        "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"\\\\s+\"}, \"content\": \" \"}",
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \"aaaaaaaaaaaaaaaaaab\"}, \"content\": \" \"}",
        CHARSMAP,
    };
    static const char *const unit[] = { "\xCC\x81\xCC\xA3", "a", " ", "\xE0\xA3\x94\xCC\xA3",
                                        "\xE4\xB8\xAD" };
    const size_t n = 10 << 20;
    char *text = ses_alloc(n, NULL);
    for (size_t u = 0; text && u < SES_LEN(unit); u++) {
        size_t k = strlen(unit[u]), len = (u < 3 ? n : n / 10) / k * k;
        for (size_t i = 0; i < len; i++) text[i] = unit[u][i % k];
        for (size_t i = 0; i < SES_LEN(type); i++) {
            opened o;
            ses_err e = { 0 };
            ses_text out = { 0 };
            if (!CHECK_MSG(open(&o, type[i], &e), "%s", e.msg)) continue;
            clock_t t = clock();
            CHECK_MSG(run(&o, text, len, 0, &out, &e), "%s", e.msg);
            double s = (double)(clock() - t) / CLOCKS_PER_SEC;
            CHECK_MSG(s < 60, "%.60s on unit %zu took %.2f s", type[i], u, s);
            ses_text_free(&out);
            shut(&o);
        }
    }
    ses_free(text);
}

int main(void)
{
    test_cases();
    test_save();
    test_refusals();
    test_astray();
    test_long();
    return check_report();
}
