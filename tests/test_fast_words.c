/* The fast path for word-local pipelines against the stages: every supported kind of pipeline, random
 * texts, with and without truncation, at every instruction set. */
#include "base/rng.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/fast/fast_words.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

/* ---- pipelines ---- */

/* U+00E9 becomes "e", U+00AD is dropped, U+00A0 becomes a space, U+00BD "1 2", as in SentencePiece's maps. */
#define MAP "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%MAP%\"}"
#define REPLACE(what) "{\"type\":\"Replace\",\"pattern\":{" what "},\"content\":\" \"}"
#define QUOTES "{\"type\":\"Replace\",\"pattern\":{\"String\":\"''\"},\"content\":\"\\\"\"}"
#define AND ","
#define SEQUENCE(key, steps) "{\"type\":\"Sequence\",\"" key "\":[" steps "]}"
#define META(scheme)                                                                        \
    "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"" scheme \
    "\",\"split\":true}"
#define SPLIT "{\"type\":\"WhitespaceSplit\"}"
#define TYPE(name) "{\"type\":\"" name "\"}"
#define NONE "null"

static const char unigram[] =
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\xe2\x96\x81\",-2],[\"e\",-3],[\"t\",-3."
    "5],"
    "[\"a\",-3.25],[\"et\",-5],[\"\xe2\x96\x81the\",-4],[\"th\",-6],[\"h\",-4.5],[\"\xe2\x96\x81t\",-5.5],"
    "[\"he\",-6.5],[\"\xc3\xa9\",-7],[\"\xe6\x97\xa5\",-8],[\"1\",-4],[\"\\\"\",-5],[\".\",-4],[\"'\",-6],"
    "[\"tea\",-7.5],[\"eta\",-7.25],[\"\xe2\x96\x81\xe2\x96\x81\",-3]]}";
static const char bpe[] =
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"vocab\":{\"<unk>\":0,\"\xe2\x96\x81\":1,"
    "\"e\":2,"
    "\"t\":3,\"a\":4,\"h\":5,\"th\":6,\"the\":7,\"\xe2\x96\x81the\":8,\"et\":9,\"eta\":10,\".\":11,\"1\":12},"
    "\"merges\":[[\"t\",\"h\"],[\"th\",\"e\"],[\"\xe2\x96\x81\",\"the\"],[\"e\",\"t\"],[\"et\",\"a\"]]}";
/* Bytes of the prefix are counted as bytes of the word, so offsets exceed the word. */
static const char past_end[] =
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"continuing_subword_prefix\":\"é\","
    "\"vocab\":{\"<unk>\":0,\"t\":1,\"h\":2,\"a\":3,\"éh\":4,\"ée\":5,\"<0xC3>\":6,\"<0xA9>\":7,\"<0x61>\":8,"
    "\"<0x74>\":9,\"e\":10},\"merges\":[]}";
static const char wordlevel[] = "{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,"
                                "\"the\":1,\"eta\":2,\"a\":3,\".\":4}}";

/* Sums that differ only by rounding, so that the text before decides. */
#define SPM(kind)                                                                                            \
    "{\"type\":\"SentencePiece\",\"kind\":\"" kind                                                           \
    "\",\"byte_fallback\":false,\"pieces\":[[\"<unk>\",0,\"unknown\"],"                                      \
    "[\"\xe2\x96\x81\",-2.1],[\"e\",-3.1],[\"t\",-3.3],[\"a\",-3.7],[\"et\",-6.4],[\"ta\",-7],[\"h\",-4.3]," \
    "[\"\xe2\x96\x81the\",-12.8],[\"th\",-7.6],[\"\xe2\x96\x81t\",-5.4],[\"he\",-7.4],[\"\xe6\x97\xa5\",-8." \
    "9],"                                                                                                    \
    "[\"tea\",-10.1],[\"eta\",-10.1],[\".\",-4],[\"\xe2\x96\x81\xe2\x96\x81\",-4.2],[\"hh\",-8.6],[\"1\",-"  \
    "5.5]]}"
#define SPM_NORM(extra)                                                             \
    "{\"type\":\"SentencePiece\",\"charsmap\":\"%MAP%\",\"add_dummy_prefix\":true," \
    "\"remove_extra_whitespaces\":" extra "}"

static const struct {
    const char *normalizer, *pre, *model;
} setup[] = {
    { MAP, SEQUENCE("pretokenizers", SPLIT AND META("always")), unigram },
    { MAP, SEQUENCE("pretokenizers", SPLIT AND META("first")), unigram },
    { MAP, META("first"), unigram },
    { SEQUENCE("normalizers", MAP AND REPLACE("\"Regex\":\" {2,}\"")), META("always"), unigram },
    { SEQUENCE("normalizers", QUOTES AND TYPE("NFKD") AND TYPE("StripAccents") AND TYPE("Lowercase")
                                  AND REPLACE("\"Regex\":\" {2,}\"")),
      SEQUENCE("pretokenizers", SPLIT AND META("always")), unigram },
    { SEQUENCE("normalizers", REPLACE("\"Regex\":\"\\\\s{2,}|[\\\\n\\\\r\\\\t]\"") AND
               "{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}"),
      META("always"), unigram },
    { SEQUENCE("normalizers", REPLACE("\"String\":\"ta\"") AND REPLACE("\"Regex\":\" {2,}\"")),
      META("always"), unigram },
    { TYPE("NFC"), META("never"), bpe },
    { MAP, SEQUENCE("pretokenizers", SPLIT AND META("always")), bpe },
    { SPM_NORM("true"), NONE, SPM("unigram") },
    { SPM_NORM("false"), NONE, SPM("unigram") },
    { SPM_NORM("true"), NONE, SPM("bpe") },
    { SPM_NORM("false"), NONE, SPM("bpe") },
    { SPM_NORM("true"), NONE, SPM("char") },
    { NONE, SPLIT, bpe },
    { NONE, SPLIT, past_end },
    { SEQUENCE("normalizers", TYPE("Nmt") AND TYPE("NFKC") AND TYPE("Lowercase")),
      SEQUENCE("pretokenizers", TYPE("Whitespace") AND TYPE("Punctuation")), wordlevel },
    { "{\"type\":\"BertNormalizer\"}", TYPE("BertPreTokenizer"), wordlevel },
    { NONE, SEQUENCE("pretokenizers", SPLIT AND "{\"type\":\"Digits\",\"individual_digits\":true}"),
      unigram },
};

static const char added[] =
    "[{\"id\":50,\"content\":\"<m>\",\"lstrip\":true,\"normalized\":false,\"special\":true},"
    "{\"id\":51,\"content\":\"<x>\",\"normalized\":false,\"special\":true}%SINGLE%]";
static const char single[] = ",{\"id\":52,\"content\":\"[w]\",\"single_word\":true,\"normalized\":false}";

/* A character map of four characters in SentencePiece's format: a double array built by hand. */
static void put_map(ses_buf *b);

static bool put_with(ses_buf *b, const char *text, const char *name, const char *value)
{
    const char *at = strstr(text, name);
    if (!at) return false;
    ses_buf_append(b, text, (size_t)(at - text));
    if (value)
        ses_buf_puts(b, value);
    else
        put_map(b);
    return true;
}

static void put_normalizer(ses_buf *b, const char *s)
{
    static const char name[] = "%MAP%";
    if (put_with(b, s, name, NULL))
        ses_buf_puts(b, strstr(s, name) + sizeof name - 1);
    else
        ses_buf_puts(b, s);
}

static ses_tokenizer *make(size_t i, bool with_single)
{
    ses_buf b = { 0 };
    ses_err e = { 0 };
    ses_buf_puts(&b, "{\"added_tokens\":");
    put_with(&b, added, "%SINGLE%", with_single ? single : "");
    ses_buf_puts(&b, "],\"normalizer\":");
    put_normalizer(&b, setup[i].normalizer);
    ses_buf_appendf(&b, ",\"pre_tokenizer\":%s,\"model\":%s}", setup[i].pre, setup[i].model);
    ses_tokenizer *t = ses_tokenizer_from_json(b.data, b.len, &e);
    CHECK_MSG(t, "setup %zu: %s", i, e.msg);
    ses_buf_free(&b);
    return t;
}

/* ---- character map ---- */

static void put_base64(ses_buf *b, const unsigned char *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t x =
            (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0u);
        ses_buf_put(b, digit[x >> 18]);
        ses_buf_put(b, digit[x >> 12 & 63]);
        ses_buf_put(b, i + 1 < n ? digit[x >> 6 & 63] : '=');
        ses_buf_put(b, i + 2 < n ? digit[x & 63] : '=');
    }
}

/* Offsets are below 2^21, so a unit is offset << 10 | has a leaf << 8 | label. Children of the root are at
 * 256 ^ label; children of 0xC2 and 0xC3 at 512 and 1024; the value of a leaf is at its node. */
static void put_map(ses_buf *b)
{
    enum { UNITS = 4096 };
    static const struct {
        unsigned char byte[2];
        const char *to;
    } rule[] = {
        { { 0xC2, 0xA0 }, " " }, { { 0xC2, 0xAD }, "" }, { { 0xC2, 0xBD }, "1 2" }, { { 0xC3, 0xA9 }, "e" }
    };
    static uint32_t unit[UNITS];
    static unsigned char out[4 + 4 * UNITS + 16];
    size_t n = 4 + 4 * UNITS, text = 0;
    memset(unit, 0, sizeof unit);
    unit[0] = 256u << 10;
    uint32_t c2 = 256 ^ 0xC2, c3 = 256 ^ 0xC3;
    unit[c2] = (c2 ^ 512u) << 10 | 0xC2;
    unit[c3] = (c3 ^ 1024u) << 10 | 0xC3;
    for (uint32_t i = 0; i < SES_LEN(rule); i++) {
        uint32_t node = (rule[i].byte[0] == 0xC2 ? 512u : 1024u) ^ rule[i].byte[1], leaf = 2048 + 256 * i;
        unit[node] = (node ^ leaf) << 10 | 1u << 8 | rule[i].byte[1];
        unit[leaf] = 1u << 31 | (uint32_t)text;
        memcpy(out + n, rule[i].to, strlen(rule[i].to) + 1);
        n += strlen(rule[i].to) + 1;
        text += strlen(rule[i].to) + 1;
    }
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)((4u * UNITS) >> 8 * i);
    for (uint32_t i = 0; i < UNITS; i++)
        for (uint32_t k = 0; k < 4; k++) out[4 + 4 * i + k] = (unsigned char)(unit[i] >> 8 * k);
    put_base64(b, out, n);
}

/* ---- texts ---- */

static void draw_text(dice *d, ses_buf *out, size_t max)
{
    static const char *const part[] = { "the",
                                        " the",
                                        " the",
                                        " eta",
                                        " tea",
                                        " a",
                                        " ",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\t",
                                        " \n",
                                        "1",
                                        ".",
                                        ",",
                                        " .",
                                        "''",
                                        "'",
                                        "\"",
                                        "\u00e9",
                                        "e\u0301",
                                        "\u0301",
                                        " \u0301",
                                        "\u65e5\u672c",
                                        " \u65e5",
                                        "\u00a0",
                                        " \u00a0",
                                        "\xc2\xad",
                                        " \u00ad",
                                        "\u00bd",
                                        " \u00bd ",
                                        "\u0130",
                                        "\u2581",
                                        " \u2581",
                                        "\u0600",
                                        " \u0600a",
                                        "\U0001F44D",
                                        " \U0001F44D",
                                        "\u200d",
                                        "\u200b",
                                        "\u0915\u094d\u0937",
                                        " \u0915\u093f",
                                        "\u1100\u1161",
                                        " \uac00",
                                        "\u03a3",
                                        " \u0434\u043e\u043c",
                                        "\ufb01",
                                        " \u3000",
                                        "\x01",
                                        " \x7f",
                                        "<m>",
                                        " <m> ",
                                        "<x>",
                                        "<x",
                                        "[w]",
                                        " [w] ",
                                        "thethethethethetheatheathetatheateathetheathe",
                                        " hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
                                        "\u0344",
                                        " \u00a8",
                                        "\ufdfa",
                                        " \u0e01\u0e33",
                                        "\u11a8",
                                        "\u2028",
                                        "\xc2\x85",
                                        "\r\n",
                                        "A",
                                        " The",
                                        " ETA" };
    size_t want = max * roll(d, 100) / 100;
    uint32_t kinds = roll(d, 3) ? (uint32_t)SES_LEN(part) : 12;
    out->len = 0;
    while (out->len < want) {
        const char *s = part[roll(d, kinds)];
        for (uint32_t times = roll(d, 80) ? 1 : 1 + roll(d, 900); times; times--) ses_buf_puts(out, s);
    }
}

static bool same(const ses_encode_ctx *a, const ses_encode_ctx *b)
{
    const ses_encoding *x = ses_encode_ctx_result(a), *y = ses_encode_ctx_result(b);
    bool ok = x->n == y->n;
    if (!ok || !x->n) return ok;
    ok = !memcmp(x->id, y->id, x->n * sizeof *x->id) &&
         !memcmp(x->byte_offset, y->byte_offset, x->n * sizeof *x->byte_offset) &&
         !memcmp(x->char_offset, y->char_offset, x->n * sizeof *x->char_offset) &&
         !memcmp(x->word_id, y->word_id, x->n * sizeof *x->word_id);
    for (size_t i = 0; ok && i < x->n; i++) {
        size_t n[2];
        const char *s[2] = { ses_encode_ctx_string(a, x, i, &n[0]), ses_encode_ctx_string(b, y, i, &n[1]) };
        ok = n[0] == n[1] && (!n[0] || !memcmp(s[0], s[1], n[0]));
    }
    return ok;
}

static void compare(size_t number, bool with_single, ses_isa isa)
{
    ses_tokenizer *t = make(number, with_single);
    if (!t) return;
    ses_arena mem = { 0 };
    ses_err e = { 0 };
    ses_tokenizer fast = *t, plain = *t;
    plain.fast_path = NULL;
    fast.fast_path = &ses_fast_path_words;
    fast.fast_path_self = NULL;
    CHECK_MSG(t->fast_path, "setup %zu has no fast path", number);
    CHECK(ses_fast_path_words.open(t, isa, &mem, &fast.fast_path_self, &e));
    if (!CHECK_MSG(fast.fast_path_self, "setup %zu", number)) return;
    ses_encode_ctx *a = ses_encode_ctx_new(&fast, &e), *b = ses_encode_ctx_new(&plain, &e);
    dice d = { { .seed = 21 + number, .step = (uint32_t)isa }, 0 };
    ses_buf text = { 0 };
    int wrong = 0;
    for (int i = 0; i < 120; i++) {
        draw_text(&d, &text, i % 4 ? 120 : 6000);
        ses_word_store *store = &((ses_words_work *)a->fast_path_work)->store;
        if (i % 13 == 12)
            store->head +=
                1u << (i % 2 ? SES_WORD_STORE_BITS + 1 : SES_WORD_STORE_BITS - 1); /* overwritten */
        if (i == 100) store->head = 1u << 31;                                      /* exhausted */
        ses_encode_options o = { 0 };
        if (i % 3 == 1)
            o = (ses_encode_options){ .truncation = SES_TRUNCATE_LONGEST_FIRST,
                                      .max_length = roll(&d, 40),
                                      .truncate_left = i & 1 };
        ses_input in = { .text = { text.data, text.len } };
        bool ok = ses_encode(a, &in, &o, &e) && ses_encode(b, &in, &o, &e) && same(a, b);
        if (!ok && !wrong++) printf("setup %zu: %s\n", number, ses_quoted_of(text.data, text.len).s);
    }
    CHECK_MSG(!wrong, "setup %zu, isa %d: %d of 120 texts differ (%s)", number, (int)isa, wrong, e.msg);
    ses_buf_free(&text);
    ses_encode_ctx_free(a);
    ses_encode_ctx_free(b);
    ses_arena_free(&mem);
    ses_tokenizer_free(t);
}

/* A text that is one chunk but has many words after normalization: longer than the parts it is encoded in. */
static void compare_long(size_t number)
{
    static const char *const unit[] = { "\u00bdthe", "\u00bd\u65e5x", "\u00bd\u2581\u2581ta", "thetea",
                                        "zq" };
    ses_tokenizer *t = make(number, false);
    ses_err e = { 0 };
    ses_tokenizer plain = t ? *t : (ses_tokenizer){ 0 };
    plain.fast_path = NULL;
    ses_encode_ctx *a = t ? ses_encode_ctx_new(t, &e) : NULL, *b = a ? ses_encode_ctx_new(&plain, &e) : NULL;
    dice d = { { .seed = 77 + number }, 0 };
    for (uint32_t kinds = 1; b && kinds <= SES_LEN(unit); kinds++) {
        ses_buf text = { 0 };
        while (text.len < 300000) ses_buf_puts(&text, unit[roll(&d, kinds)]);
        ses_input in = { .text = { text.data, text.len } };
        CHECK_MSG(ses_encode(a, &in, NULL, &e) && ses_encode(b, &in, NULL, &e) && same(a, b),
                  "setup %zu, %u kinds of words: %s", number, kinds, e.msg);
        ses_buf_free(&text);
    }
    ses_encode_ctx_free(a);
    ses_encode_ctx_free(b);
    ses_tokenizer_free(t);
}

/* Texts without split positions, so long that quadratic time would exceed the time limit. */
static void check_long(size_t number)
{
    static const char *const unit[] = { "a", "etah", "\u0301", ".", " ", "\u65e5" };
    ses_tokenizer *t = make(number, false);
    ses_err e = { 0 };
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    for (size_t i = 0; k && i < SES_LEN(unit); i++) {
        ses_buf text = { 0 };
        ses_buf_puts(&text, "a");
        while (text.len < 400000) ses_buf_puts(&text, unit[i]);
        ses_buf_puts(&text, " the");
        CHECK_MSG(ses_encode(k, &(ses_input){ .text = { text.data, text.len } }, NULL, &e), "%s", e.msg);
        const ses_encoding *r = ses_encode_ctx_result(k);
        CHECK(r->n && r->byte_offset[r->n - 1].end == text.len);
        ses_buf_free(&text);
    }
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

/* The fast path must not apply to a pipeline whose words depend on each other. */
static void check_others(void)
{
    static const char *const other[] = {
        "{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"x\"},\"pre_tokenizer\":" SPLIT,
        "{\"normalizer\":{\"type\":\"Strip\"},\"pre_tokenizer\":" META("always"),
        "{\"normalizer\":" REPLACE("\"String\":\"a b\"") ",\"pre_tokenizer\":" SPLIT,
        "{\"normalizer\":" REPLACE("\"Regex\":\"(?<=a )b\"") ",\"pre_tokenizer\":" SPLIT,
        "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"always\","
        "\"split\":false}",
    };
    for (size_t i = 0; i < SES_LEN(other); i++) {
        ses_err e = { 0 };
        ses_buf b = { 0 };
        ses_buf_appendf(&b, "%s,\"model\":%s}", other[i], unigram);
        ses_tokenizer *t = ses_tokenizer_from_json(b.data, b.len, &e);
        CHECK_MSG(t && !t->fast_path, "%zu: %s", i, t ? "taken" : e.msg);
        ses_tokenizer_free(t);
        ses_buf_free(&b);
    }
}

/* A character map with invalid leaves can be opened: only texts that use them fail. */
static void check_broken(void)
{
    static const char file[] =
        "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"},\"pre_tokenizer\":" SPLIT
        ",\"model\":%s}";
    unsigned char map[4 + 4 * 512] = { 0, 8 };
    uint32_t root = 256u << 10, leaf = (256u ^ 'q') ^ 300u; /* "q" has a leaf whose value is past the end */
    uint32_t unit = leaf << 10 | 1u << 8 | 'q', value = 1u << 31 | 99u;
    for (uint32_t k = 0; k < 4; k++) {
        map[4 + k] = (unsigned char)(root >> 8 * k);
        map[4 + 4 * (256 ^ 'q') + k] = (unsigned char)(unit >> 8 * k);
        map[4 + 4 * 300 + k] = (unsigned char)(value >> 8 * k);
    }
    ses_buf b = { 0 }, base64 = { 0 };
    ses_err e = { 0 };
    put_base64(&base64, map, sizeof map);
    ses_buf_appendf(&b, file, base64.data, unigram);
    ses_tokenizer *t = ses_tokenizer_from_json(b.data, b.len, &e);
    CHECK_MSG(t && t->fast_path == &ses_fast_path_words, "%s", e.msg);
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    CHECK(k && ses_encode(k, &(ses_input){ .text = { "the tea", 7 } }, NULL, &e));
    CHECK(k && !ses_encode(k, &(ses_input){ .text = { "the q tea", 9 } }, NULL, &e));
    CHECK_MSG(strstr(e.msg, "charsmap"), "%s", e.msg);
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
    ses_buf_free(&b);
    ses_buf_free(&base64);
}

int main(void)
{
    for (size_t i = 0; i < SES_LEN(setup); i++) {
        compare(i, false, SES_ISA_REF);
        compare(i, true, SES_ISA_REF);
        check_long(i);
        compare_long(i);
#if defined __x86_64__ && !defined SES_REF_ONLY
        if (__builtin_cpu_supports("avx2")) compare(i, false, SES_ISA_AVX2);
#endif
    }
    check_others();
    check_broken();
    return check_report();
}
