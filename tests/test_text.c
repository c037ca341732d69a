/* Tokenizer core with small hand-made vocabularies: encodings by Hugging Face Tokenizers
 * (tests/text/cases.json, stages.json), decoding, saving, invalid UTF-8, invalid files, limits. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include "sesame/json.h"
#include "text/tokenizer_impl.h"

/* ---- cases ---- */

static ses_tokenizer *open_value(const ses_json *v)
{
    ses_err e = { 0 };
    size_t n = 0;
    ses_json_writer *w = ses_json_writer_new(0, &e);
    ses_json_put_value(w, v);
    const char *text = ses_json_writer_text(w, &n, &e);
    ses_tokenizer *t = text ? ses_tokenizer_from_json(text, n, &e) : NULL;
    if (!t) printf("%s\n", e.msg);
    ses_json_writer_free(w);
    return t;
}

static ses_string text_of(const ses_json *v)
{
    ses_string s = { 0 };
    s.p = ses_json_string(v, &s.n);
    return s;
}

/* "id string begin-end wWORD sSEQUENCE tTYPE [special] [pad]" */
static void describe(const ses_encode_ctx *k, const ses_encoding *x, size_t i, char *out, size_t size)
{
    char word[16] = "-", sequence[16] = "-";
    size_t n = 0;
    const char *s = ses_encode_ctx_string(k, x, i, &n);
    if (x->word_id[i] >= 0) snprintf(word, sizeof word, "%d", x->word_id[i]);
    if (x->sequence_id[i] >= 0) snprintf(sequence, sizeof sequence, "%d", x->sequence_id[i]);
    snprintf(out, size, "%d %.*s %u-%u w%s s%s t%d%s%s", x->id[i], (int)n, s ? s : "",
             x->char_offset[i].begin, x->char_offset[i].end, word, sequence, x->type_id[i],
             x->special_mask[i] ? " special" : "", x->attention_mask[i] ? "" : " pad");
}

static bool same(const ses_encode_ctx *k, const ses_encoding *x, const ses_json *want, size_t number)
{
    for (size_t i = 0; i < x->n || i < ses_json_len(want); i++) {
        char got[256] = "nothing";
        ses_string s = text_of(ses_json_at(want, i));
        if (i < x->n) describe(k, x, i, got, sizeof got);
        if (s.p && !strcmp(got, s.p)) continue;
        printf("case %zu token %zu: got \"%s\", want \"%s\"\n", number, i, got, s.p ? s.p : "nothing");
        return false;
    }
    return true;
}

static size_t read_words(const ses_json *v, ses_string *out, size_t max)
{
    size_t n = ses_json_len(v);
    for (size_t i = 0; i < n && i < max; i++) out[i] = text_of(ses_json_at(v, i));
    return n;
}

static ses_encode_options options_of(const ses_json *c)
{
    static const char *const names[] = { "none", "longest_first", "only_first", "only_second" };
    ses_encode_options o = { 0 };
    bool special = true;
    ses_string strategy = text_of(ses_json_get(c, "strategy")), side = text_of(ses_json_get(c, "side")),
               pad = text_of(ses_json_get(c, "pad_side"));
    for (int i = 1; strategy.p && i < 4; i++)
        if (!strcmp(strategy.p, names[i])) o.truncation = (ses_truncation)i;
    ses_json_int(ses_json_get(c, "max"), &o.max_length);
    ses_json_int(ses_json_get(c, "stride"), &o.stride);
    ses_json_int(ses_json_get(c, "pad_to"), &o.pad_to);
    ses_json_bool(ses_json_get(c, "special"), &special);
    ses_json_bool(ses_json_get(c, "stored"), &o.use_stored_limits);
    o.no_special = !special;
    o.truncate_left = side.p && !strcmp(side.p, "left");
    o.pad_left = pad.p && !strcmp(pad.p, "left");
    return o;
}

/* Decode the ids if the case states the expected text. */
static void check_decoded(const ses_json *c, size_t number, ses_encode_ctx *k)
{
    const ses_json *want = ses_json_get(c, "decoded");
    const ses_encoding *x = ses_encode_ctx_result(k);
    int32_t *id = malloc((x->n + 1) * sizeof *id);
    size_t count = x->n;
    if (count) memcpy(id, x->id, count * sizeof *id);
    for (size_t i = 0; i < ses_json_len(want); i++) {
        ses_err e = { 0 };
        ses_string s = text_of(ses_json_at(want, i));
        const char *text = "";
        size_t n = 0;
        bool ok = ses_decode(k, id, count, i == 1, &text, &n, &e);
        CHECK_MSG(ok && n == s.n && !memcmp(text, s.p, n), "case %zu: decoded \"%s\" (%s), want \"%s\"",
                  number, text, e.msg, s.p);
    }
    free(id);
}

static void run_case(const ses_json *c, size_t number, ses_encode_ctx *k)
{
    ses_err e = { 0 };
    ses_string words[2][16];
    const ses_json *list[2] = { ses_json_get(c, "words"), ses_json_get(c, "pair_words") };
    const ses_json *want = ses_json_get(c, "want");
    ses_encode_options o = options_of(c);
    ses_input in = { .text = text_of(ses_json_get(c, "text")), .pair = text_of(ses_json_get(c, "pair")) };
    in.n_words = read_words(list[0], words[0], 16);
    in.n_pair_words = read_words(list[1], words[1], 16);
    if (list[0]) in.words = words[0];
    if (list[1]) in.pair_words = words[1];
    bool ok = ses_encode(k, &in, &o, &e);
    if (ses_json_type_of(want) == SES_JSON_NULL) {
        CHECK_MSG(!ok, "case %zu: an error was expected", number);
        return;
    }
    if (!CHECK_MSG(ok, "case %zu: %s", number, e.msg)) return;
    CHECK(same(k, ses_encode_ctx_result(k), ses_json_at(want, 0), number));
    CHECK_MSG(ses_encode_ctx_overflow_count(k) + 1 == ses_json_len(want), "case %zu: %zu overflowing parts",
              number, ses_encode_ctx_overflow_count(k));
    for (size_t i = 0; i < ses_encode_ctx_overflow_count(k); i++) {
        const ses_encoding *part = ses_encode_ctx_overflow(k, i, &e);
        CHECK(part && same(k, part, ses_json_at(want, i + 1), number));
    }
    check_decoded(c, number, k);
}

/* Each case with the fast path, if there is one, and by stages. */
static void check_cases(const ses_json *root)
{
    const ses_json *cases = ses_json_get(root, "cases"), *setups = ses_json_get(root, "setups");
    CHECK(ses_json_len(cases) > 50);
    for (size_t i = 0; i < ses_json_len(cases); i++) {
        const ses_json *c = ses_json_at(cases, i);
        ses_tokenizer *t = open_value(ses_json_get(setups, text_of(ses_json_get(c, "t")).p));
        if (!CHECK(t)) continue;
        ses_tokenizer exact = *t;
        exact.fast_path = NULL;
        for (int way = 0; way < 2; way++) {
            ses_err e = { 0 };
            ses_encode_ctx *k = ses_encode_ctx_new(way ? &exact : t, &e);
            run_case(c, i, k);
            ses_encode_ctx_free(k);
        }
        ses_tokenizer_free(t);
    }
}

/* ---- decoding ---- */

static void check_decode(const ses_json *root)
{
    ses_err e = { 0 };
    ses_tokenizer *t = open_value(ses_json_get(ses_json_get(root, "setups"), "bert"));
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    if (!CHECK(k)) return;
    const char *text;
    size_t n;
    const int32_t ids[] = { 2, 9, 10, 11, 15, 4, 7, 14, 3 }, far[] = { 4, 900 };
    CHECK(ses_decode(k, ids, SES_LEN(ids), false, &text, &n, &e));
    CHECK_STR(text, "hello world, ab!");
    CHECK(ses_decode(k, ids, SES_LEN(ids), true, &text, &n, &e));
    CHECK_STR(text, "[CLS] hello world, ab! [SEP]");
    CHECK(ses_decode(k, ids, 0, true, &text, &n, &e) && n == 0);
    CHECK(!ses_decode(k, far, 2, true, &text, &n, &e));
    CHECK_STR(e.msg, "id 900 at index 1 is not in the vocabulary of size 24");
    CHECK(ses_tokenizer_token_to_id(t, "[MASK]", 6) == 23 && ses_tokenizer_token_to_id(t, "hello", 5) == 9 &&
          ses_tokenizer_token_to_id(t, "zz", 2) == -1);
    CHECK(ses_tokenizer_vocab_size(t) == 24 && !ses_tokenizer_id_to_token(t, 24, &n) &&
          !ses_tokenizer_id_to_token(t, -1, &n));
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

/* ---- invalid UTF-8 ---- */

static void check_bad_bytes(const ses_json *root)
{
    ses_err e = { 0 };
    ses_tokenizer *t = open_value(ses_json_get(ses_json_get(root, "setups"), "plain"));
    ses_tokenizer exact = *t;
    exact.fast_path = NULL;
    for (int way = 0; way < 2; way++) {
        ses_encode_ctx *k = ses_encode_ctx_new(way ? &exact : t, &e);
        /* One U+FFFD for the three bytes of a truncated character, one for each other invalid byte. */
        const char text[] = "a \xE4\xB8 hello\xFF\xC3 \xF0\x9F\x98 b";
        CHECK(ses_encode(k, &(ses_input){ .text = { text, sizeof text - 1 } }, NULL, &e));
        const ses_encoding *x = ses_encode_ctx_result(k);
        const ses_offset byte[] = { { 0, 1 }, { 2, 4 }, { 5, 12 }, { 13, 16 }, { 17, 18 } };
        const ses_offset point[] = { { 0, 1 }, { 2, 3 }, { 4, 11 }, { 12, 13 }, { 14, 15 } };
        CHECK(x->n == 5 && !memcmp(x->byte_offset, byte, sizeof byte) &&
              !memcmp(x->char_offset, point, sizeof point));
        ses_string words[] = { { "a", 1 }, { "\x80", 1 }, { "b", 1 } };
        CHECK(ses_encode(k, &(ses_input){ .words = words, .n_words = 3 }, NULL, &e));
        x = ses_encode_ctx_result(k);
        CHECK(x->n == 3 && x->id[0] == 4 && x->id[1] == 1 && x->id[2] == 5 && x->byte_offset[1].end == 1);
        ses_encode_ctx_free(k);
    }
    ses_tokenizer_free(t);
}

/* ---- saving ---- */

static void check_save(const ses_json *root)
{
    const char *path = "build/test_text.json";
    const ses_json *setups = ses_json_get(root, "setups");
    for (size_t i = 0; i < ses_json_len(setups); i++) {
        ses_err e = { 0 };
        size_t n = 0, m = 0;
        ses_tokenizer *t = open_value(ses_json_at(setups, i));
        bool ok = ses_tokenizer_save(t, path, true, &e);
        if (!ok) { /* the build folder may have another name */
            path = "test_text.json.tmp";
            ok = ses_tokenizer_save(t, path, true, &e);
        }
        char *first = ok ? ses_file_read(path, 1 << 20, &n, &e) : NULL;
        ses_tokenizer *again = ses_tokenizer_open(path, &e);
        CHECK(again && ses_tokenizer_save(again, path, true, &e));
        char *second = ses_file_read(path, 1 << 20, &m, &e);
        CHECK(first && second && n == m && !memcmp(first, second, n));
        CHECK(!ses_tokenizer_save(t, path, false, &e));
        ses_free(first);
        ses_free(second);
        ses_tokenizer_free(again);
        ses_tokenizer_free(t);
        remove(path);
    }
}

/* ---- invalid files ---- */

static const char *const bad[][2] = {
    { "[]", "a tokenizer must be a JSON object" },
    { "{}", "key \"model\" is missing" },
    { "{\"version\":\"2.0\"}", "unsupported version \"2.0\", expected \"1.0\"" },
    { "{\"model\":{\"type\":\"Oracle\"}}", "model: unknown model type \"Oracle\"" },
    { "{\"model\":{\"type\":\"WordPiece\"}}",
      "model: WordPiece: key \"vocab\": must be an object that maps tokens to ids" },
    { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":-1}}}",
      "model: WordPiece: key \"vocab\": \"a\": an id must be" },
    { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{},\"unk_token\":5}}",
      "model: WordPiece: key \"unk_token\" must be a string" },
    { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{},\"max_input_chars_per_word\":-2}}",
      "key \"max_input_chars_per_word\" is -2" },
    { "{\"normalizer\":{\"kind\":1}}", "normalizer: key \"type\" is missing" },
    { "{\"normalizer\":7}", "normalizer: must be an object, not an integer" },
    { "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"BertPreTokenizer\"},{"
      "\"type\":\"Nope\"}]}}",
      "pre_tokenizer: Sequence: pretokenizers[1]: unknown pre_tokenizer type \"Nope\"" },
    { "{\"pre_tokenizer\":{\"type\":\"Sequence\"}}", "key \"pretokenizers\" must be an array" },
};

/* Added to a model with the tokens a and b. */
static const char *const bad_more[][2] = {
    { "\"added_tokens\":{}", "added_tokens: must be an array, not an object" },
    { "\"added_tokens\":[3]", "added_tokens: entry 0: must be an object" },
    { "\"added_tokens\":[{\"id\":1}]", "added_tokens: entry 0: key \"content\" is missing" },
    { "\"added_tokens\":[{\"content\":\"x\"},{\"content\":\"x\"}]",
      "added_tokens: entry 1: duplicate token \"x\"" },
    { "\"added_tokens\":[{\"content\":\"x\",\"lstrip\":1}]",
      "added_tokens: entry 0: key \"lstrip\" must be true or false" },
    { "\"truncation\":{\"max_length\":-1}", "truncation: key \"max_length\" is -1, must be from 0" },
    { "\"truncation\":{\"strategy\":\"Both\"}", "truncation: key \"strategy\" has unknown value \"Both\"" },
    { "\"truncation\":{\"strategy\":\"OnlyFirst\\u0000x\"}",
      "truncation: key \"strategy\" has unknown value \"OnlyFirst\\x00x\"" },
    { "\"truncation\":{\"direction\":1}", "truncation: key \"direction\" must be a string" },
    { "\"padding\":{\"strategy\":{\"Fixed\":16777217}}",
      "padding: strategy: key \"Fixed\" is 16777217, must be from 0 to 16777216" },
    { "\"padding\":{\"pad_to_multiple_of\":2000000000}",
      "padding: key \"pad_to_multiple_of\" is 2000000000" },
    { "\"padding\":{\"strategy\":{\"Fixed\":\"x\"}}",
      "padding: strategy: key \"Fixed\" must be an integer, not a string" },
    { "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",1],\"cls\":[\"a\",9]}",
      "post_processor: id 9 is not in the vocabulary of 2" },
    { "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",1]}",
      "BertProcessing: key \"cls\" must be a pair of token and id" },
    { "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"q\","
      "\"type_id\":0}},"
      "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[]}",
      "TemplateProcessing: single: special token \"q\" is not in \"special_tokens\"" },
    { "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"C\",\"type_"
      "id\":0}}],\"pair\":[]}",
      "TemplateProcessing: single: [0]: a sequence must be A or B, not \"C\"" },
    { "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}}],"
      "\"pair\":[{\"Sequence\":"
      "{\"id\":\"A\"}}]}",
      "TemplateProcessing: pair: must contain sequences A and B, once each" },
    { "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}}],"
      "\"pair\":[],"
      "\"special_tokens\":{\"x\":{\"ids\":[1]}}}",
      "special_tokens: \"x\": requires \"ids\" and \"tokens\", arrays of equal length" },
};

static void expect_error(const char *json, const char *want)
{
    ses_err e = { 0 };
    ses_tokenizer *t = ses_tokenizer_from_json(json, strlen(json), &e);
    CHECK_MSG(!t && strstr(e.msg, want), "%s\n    want: %s", e.msg, want);
    ses_tokenizer_free(t);
}

static void check_bad_files(void)
{
    for (size_t i = 0; i < SES_LEN(bad); i++) expect_error(bad[i][0], bad[i][1]);
    for (size_t i = 0; i < SES_LEN(bad_more); i++) {
        char json[1024];
        snprintf(json, sizeof json, "{%s,\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"b\":1}}}",
                 bad_more[i][0]);
        expect_error(json, bad_more[i][1]);
    }
    ses_err e = { 0 };
    CHECK(!ses_tokenizer_open("no/such/folder", &e) && strstr(e.msg, "no/such/folder"));
}

/* ---- limits ---- */

static void check_limits(void)
{
    const char json[] = "{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{\"type\":"
                        "\"WordPiece\",\"vocab\":{\"a\":0}}}";
    ses_err e = { 0 };
    ses_tokenizer *t = ses_tokenizer_from_json(json, sizeof json - 1, &e);
    ses_encode_ctx *k = ses_encode_ctx_new(t, &e);
    CHECK(ses_encode(k, &(ses_input){ .text = { "a a", 3 } }, NULL, &e) && ses_encode_ctx_result(k)->n == 2);
    CHECK(!ses_encode(k, &(ses_input){ .text = { "a b", 3 } }, NULL, &e) &&
          strstr(e.msg, "unk_token \"[UNK]\" is not in the vocabulary"));
    ses_err_clear(&e);
    CHECK(!ses_encode(k, &(ses_input){ .text = { "a", SIZE_MAX } }, NULL, &e) &&
          strstr(e.msg, "is too long"));
    ses_err_clear(&e);
    ses_encode_options o = {
        .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = 2, .stride = 2, .full_overflow = true
    };
    CHECK(!ses_encode(k, &(ses_input){ .text = { "a a a", 5 } }, &o, &e) &&
          strstr(e.msg, "stride 2 must be less"));
    ses_err_clear(&e);
    o.max_length = -1;
    CHECK(!ses_encode(k, &(ses_input){ .text = { "a", 1 } }, &o, &e));
    ses_err_clear(&e);
    o = (ses_encode_options){ .truncation = SES_TRUNCATE_LONGEST_FIRST,
                              .max_length = 2,
                              .full_overflow = true };
    CHECK(ses_encode(k, &(ses_input){ .text = { "a a a a a", 9 } }, &o, &e) &&
          ses_encode_ctx_overflow_count(k) == 2);
    CHECK(!ses_encode_ctx_overflow(k, 2, &e));
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_load("tests/text/cases.json", 1 << 24, &e);
    if (CHECK_MSG(doc, "%s", e.msg)) {
        const ses_json *root = ses_json_root(doc);
        check_cases(root);
        check_decode(root);
        check_bad_bytes(root);
        check_save(root);
    }
    ses_json_free(doc);
    doc = ses_json_load("tests/text/stages.json", 1 << 24, &e);
    if (CHECK_MSG(doc, "%s", e.msg)) {
        check_cases(ses_json_root(doc));
        check_save(ses_json_root(doc));
    }
    ses_json_free(doc);
    check_bad_files();
    check_limits();
    return check_report();
}
