/* The fast path for BERT against the stages: same tokens for random texts, at every instruction set, for
 * all settings of the normalizer and several kinds of added tokens. */
#include "base/rng.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/fast/fast_bert.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t at;
} dice;

static uint32_t roll(dice *d, uint32_t n) { return ses_rand32(d->key, d->at++) % n; }

/* ---- texts ---- */

static const char *const words[] = {
    "the",
    "of",
    "hello",
    "world",
    "unaffable",
    "Hello",
    "WORLD",
    "café",
    "naïve",
    "Ünïcödé",
    "don't",
    "3.14",
    "東京",
    "中文字",
    "한국어",
    "русский",
    "ΣΟΦΟΣ",
    "İstanbul",
    "ｆｕｌｌ",
    "ﬁ",
    "Straße",
    "🙂",
    "👩‍👩‍👧",
    "e\u0301a\u0323\u0302",
    "[MASK]",
    "[CLS]",
    "[UNK]",
    "[mask]",
    "<tok>",
    "newtoken",
    "NewToken",
    "X",
    "a_b",
    "[M",
    "##a",
    "\u1D165\u0301x",
    "\u0F71\u0F72\u0F74k",
    "क्षत्रिय",
    "ที่นี่",
    "\u200Dzw\u200B",
    "abcdefghijklmnop",
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
};
static const char *const spaces[] = { " ",      " ",      " ",      "  ", "\t", "\n",   "\r\n",
                                      "\u00A0", "\u3000", "\u2028", "",   "",   "\x0b", "\x0c" };
static const uint32_t ranges[][2] = {
    { 0x21, 0x7E },       { 0x21, 0x7E },       { 0x00, 0x20 },       { 0x80, 0xFF },     { 0x100, 0x24F },
    { 0x300, 0x36F },     { 0x370, 0x5FF },     { 0x600, 0x8FF },     { 0x900, 0xDFF },   { 0xE00, 0x10FF },
    { 0x1100, 0x11FF },   { 0x1AB0, 0x1AFF },   { 0x1DC0, 0x1FFF },   { 0x2000, 0x206F }, { 0x2070, 0x2BFF },
    { 0x3000, 0x30FF },   { 0x4E00, 0x9FFF },   { 0xAC00, 0xD7A3 },   { 0xF900, 0xFB06 }, { 0xFE00, 0xFFFF },
    { 0x1D000, 0x1D1FF }, { 0x1F300, 0x1F6FF }, { 0x20000, 0x2FA1F }, { 0, 0x10FFFF },
};

static void put_point(ses_buf *b, dice *d)
{
    const uint32_t *r = ranges[roll(d, SES_LEN(ranges))];
    char utf8[4];
    ses_buf_append(b, utf8, ses_utf8_encode(r[0] + roll(d, r[1] - r[0] + 1), utf8));
}

static void put_letters(ses_buf *b, dice *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) ses_buf_put(b, (char)((roll(d, 8) ? 'a' : 'A') + (int)roll(d, 26)));
}

static void make_text(ses_buf *b, dice *d, uint32_t parts)
{
    b->len = 0;
    for (uint32_t i = 0; i < parts; i++) {
        switch (roll(d, 12)) {
        case 0:
        case 1:
        case 2:
        case 3: put_letters(b, d, 1 + roll(d, 12)); break;
        case 4:
        case 5:
        case 6: ses_buf_puts(b, words[roll(d, SES_LEN(words))]); break;
        case 7: ses_buf_put(b, (char)(0x21 + roll(d, 94))); break;
        case 8:
            for (uint32_t j = roll(d, 6); j; j--) put_point(b, d);
            break;
        case 9: put_point(b, d); break;
        case 10:
            if (!roll(d, 40)) put_letters(b, d, roll(d, 300));
            if (!roll(d, 400)) put_letters(b, d, 3000 + roll(d, 6000));
            break;
        default: ses_buf_puts(b, words[roll(d, SES_LEN(words))]), put_point(b, d);
        }
        ses_buf_puts(b, spaces[roll(d, SES_LEN(spaces))]);
    }
    for (uint32_t i = roll(d, 3); i && b->len; i--) ses_buf_put(b, (char)roll(d, 128));
}

/* ---- tokenizers ---- */

static void put_token(ses_buf *b, int *id, const char *s, size_t n)
{
    ses_buf_appendf(b, "%s\"%.*s\":%d", *id ? "," : "", (int)n, s, *id);
    ++*id;
}

/* Letters of some scripts, alone and as continuations, and a few words. */
static void put_vocab(ses_buf *b, bool with_unknown)
{
    int id = 0;
    if (with_unknown) put_token(b, &id, "[UNK]", 5);
    static const uint32_t letters[][2] = { { 'a', 'z' },       { 'A', 'Z' },       { '0', '9' },
                                           { 0xE0, 0xF6 },     { 0x3B1, 0x3C9 },   { 0x430, 0x44F },
                                           { 0x4E00, 0x4E40 }, { 0x1100, 0x1112 }, { 0x1161, 0x1175 },
                                           { 0x300, 0x310 },   { 0xAC00, 0xAC20 }, { 0x905, 0x939 } };
    for (size_t i = 0; i < SES_LEN(letters); i++)
        for (uint32_t c = letters[i][0]; c <= letters[i][1]; c++) {
            char s[6] = "##";
            size_t n = ses_utf8_encode(c, s + 2);
            put_token(b, &id, s + 2, n);
            if (c % 5) put_token(b, &id, s, n + 2);
        }
    static const char *const more[] = { "[MASK]",
                                        "[CLS]",
                                        "[SEP]",
                                        "the",
                                        "of",
                                        "hel",
                                        "hello",
                                        "##lo",
                                        "world",
                                        "##orld",
                                        "una",
                                        "##ffa",
                                        "##ble",
                                        "cafe",
                                        "##fe",
                                        "!",
                                        "#",
                                        ".",
                                        ",",
                                        "-",
                                        "[",
                                        "]",
                                        "_",
                                        "##abcdefghijklmnop",
                                        "abcdefghijklmnopqrstuvwxyz",
                                        "文",
                                        "русский" };
    for (size_t i = 0; i < SES_LEN(more); i++) put_token(b, &id, more[i], strlen(more[i]));
}

typedef struct setup {
    const char *normalizer, *added, *model;
} setup;

#define ADDED(content, flags) "{\"id\":0,\"content\":\"" content "\",\"special\":true" flags "}"
static const char plain[] =
    ADDED("[MASK]", "") "," ADDED("[CLS]", "") "," ADDED("[UNK]", "") "," ADDED("<tok>", "");
static const char strips[] = ADDED("[MASK]", ",\"lstrip\":true") "," ADDED("<tok>", ",\"rstrip\":true");
static const char single[] = ADDED("[MASK]", ",\"single_word\":true") "," ADDED("X", ",\"single_word\":true");
static const char normal[] =
    ADDED("newtoken", ",\"normalized\":true") "," ADDED("[MASK]", "") "," ADDED("X", ",\"normalized\":true");
static const char inner[] = ADDED("ell", "") "," ADDED("é", "") "," ADDED("a b", "") "," ADDED("中文", "");

#define BERT(clean, cjk, strip, lower)                                                      \
    "{\"type\":\"BertNormalizer\",\"clean_text\":" #clean ",\"handle_chinese_chars\":" #cjk \
    ",\"strip_accents\":" #strip ",\"lowercase\":" #lower "}"
static const setup setups[] = {
    { BERT(true, true, null, true), plain, "" },
    { BERT(true, true, null, false), plain, "" },
    { BERT(true, false, true, false), plain, "" },
    { BERT(false, true, false, true), plain, "" },
    { BERT(false, false, false, false), plain, "" },
    { "null", plain, "" },
    { BERT(true, true, null, true), strips, "" },
    { BERT(true, true, null, true), single, "" },
    { BERT(true, true, null, true), normal, "" },
    { BERT(true, true, null, true), inner, "" },
    { BERT(true, true, null, true), "", "" },
    { BERT(true, true, true, true), plain, ",\"max_input_chars_per_word\":7" },
    { BERT(true, true, null, true), plain, ",\"continuing_subword_prefix\":\"\"" },
    { BERT(true, true, null, true), plain, ",\"max_input_chars_per_word\":100000" },
    { BERT(false, true, false, false), normal,
      ",\"continuing_subword_prefix\":\"##a\",\"max_input_chars_per_word\":0" },
};

static ses_tokenizer *make(const setup *s)
{
    ses_buf b = { 0 };
    ses_err e = { 0 };
    ses_buf_appendf(&b, "{\"version\":\"1.0\",\"added_tokens\":[%s],\"normalizer\":%s,", s->added,
                    s->normalizer);
    ses_buf_puts(
        &b,
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\",\"vocab\":{");
    put_vocab(&b, true);
    ses_buf_appendf(&b, "}%s}}", s->model);
    ses_tokenizer *t = ses_tokenizer_from_json(b.data, b.len, &e);
    if (!t) printf("%s\n", e.msg);
    ses_buf_free(&b);
    return t;
}

/* ---- comparison ---- */

static bool same(const ses_encoding *a, const ses_encoding *b, size_t *at)
{
    for (*at = 0; *at < a->n && *at < b->n; ++*at) {
        size_t i = *at;
        if (a->id[i] != b->id[i] || a->word_id[i] != b->word_id[i] ||
            memcmp(&a->byte_offset[i], &b->byte_offset[i], sizeof *a->byte_offset) ||
            memcmp(&a->char_offset[i], &b->char_offset[i], sizeof *a->char_offset))
            return false;
    }
    return a->n == b->n;
}

static void show(const ses_buf *text, const ses_encoding *a, const ses_encoding *b, size_t at)
{
    for (int which = 0; which < 2; which++) {
        const ses_encoding *x = which ? b : a;
        if (at < x->n) {
            uint32_t begin = x->byte_offset[at].begin;
            printf("    %s: token %zu of %zu is %d word %d at [%u, %u) \"%s\"\n", which ? "fast" : "exact",
                   at, x->n, x->id[at], x->word_id[at], begin, x->byte_offset[at].end,
                   ses_quoted_of(text->data + begin, text->len - begin < 40 ? text->len - begin : 40).s);
        } else {
            printf("    %s: %zu tokens\n", which ? "fast" : "exact", x->n);
        }
    }
}

static bool same_all(ses_encode_ctx *a, ses_encode_ctx *b, size_t *at, ses_err *e)
{
    bool equal = same(ses_encode_ctx_result(a), ses_encode_ctx_result(b), at) &&
                 ses_encode_ctx_overflow_count(a) == ses_encode_ctx_overflow_count(b);
    for (size_t j = 0; equal && j < ses_encode_ctx_overflow_count(a); j++)
        equal = same(ses_encode_ctx_overflow(a, j, e), ses_encode_ctx_overflow(b, j, e), at);
    return equal;
}

/* Encode each text twice: the second time from the caches. */
static void compare(ses_tokenizer *t, size_t number, ses_isa isa, int rounds)
{
    ses_err e = { 0 };
    ses_tokenizer exact = *t, fast = *t;
    ses_arena mem = { 0 };
    exact.fast_path = NULL;
    fast.fast_path_self = NULL;
    if (!CHECK(ses_fast_path_bert.open(&fast, isa, &mem, &fast.fast_path_self, &e))) return;
    bool declined = !fast.fast_path_self;
    CHECK(!declined);
    ses_encode_ctx *a = ses_encode_ctx_new(&exact, &e), *b = declined ? NULL : ses_encode_ctx_new(&fast, &e);
    dice d = { { 77 + number, (uint32_t)isa, 0 }, 0 };
    ses_buf text = { 0 };
    int wrong = 0;
    for (int i = 0; b && i < rounds && wrong < 3; i++) {
        make_text(&text, &d, roll(&d, i % 20 ? 12 : 1500));
        ses_input in = { .text = { text.data, text.len } };
        size_t at = 0;
        ses_encode_options o = { 0 };
        if (i % 3 == 0) {
            o = (ses_encode_options){ .truncation = SES_TRUNCATE_LONGEST_FIRST,
                                      .max_length = roll(&d, 20),
                                      .truncate_left = roll(&d, 2) };
        }
        bool ok = ses_encode(a, &in, &o, &e), equal = true;
        for (int again = 0; ok && equal && again < 2; again++) {
            ok = ses_encode(b, &in, &o, &e);
            equal = ok && same_all(a, b, &at, &e);
        }
        if (!CHECK_MSG(ok, "%s", e.msg)) break;
        if (equal) continue;
        printf("setup %zu, isa %d, text %d: %s\n", number, (int)isa, i, ses_quoted_of(text.data, text.len).s);
        show(&text, ses_encode_ctx_result(a), ses_encode_ctx_result(b), at);
        wrong++;
    }
    CHECK(!wrong);
    ses_buf_free(&text);
    ses_encode_ctx_free(a);
    ses_encode_ctx_free(b);
    ses_arena_free(&mem);
}

/* Megabytes without a split position: fast only in linear time. */
static void check_long(void)
{
    static const char *const parts[] = { "a",    "\u0301", "e\u0301\u0323", "中",
                                         "!",    " ",      "[MASK",         "[MASK]",
                                         "\x01", "a\x01",  "\u0F71\u0F74",  "ab\u00E9",
                                         "[",    "abc" };
    ses_tokenizer *t = make(&setups[0]);
    ses_err e = { 0 };
    ses_encode_ctx *k = ses_encode_ctx_new(t, &e);
    for (size_t i = 0; i < SES_LEN(parts); i++) {
        ses_buf b = { 0 };
        while (b.len < 3000000) ses_buf_puts(&b, parts[i]);
        CHECK_MSG(ses_encode(k, &(ses_input){ .text = { b.data, b.len } }, NULL, &e), "%s", e.msg);
        const ses_encoding *x = ses_encode_ctx_result(k);
        CHECK(x->n <= b.len && (!x->n || x->byte_offset[x->n - 1].end <= b.len));
        ses_buf_free(&b);
    }
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 600;
    for (size_t i = 0; i < SES_LEN(setups); i++) {
        ses_tokenizer *t = make(&setups[i]);
        if (!CHECK(t)) continue;
        ses_isa best = t->isa;
        for (int isa = SES_ISA_REF; isa <= (int)best; isa++) compare(t, i, (ses_isa)isa, rounds);
        ses_tokenizer_free(t);
    }
    check_long();
    return check_report();
}
