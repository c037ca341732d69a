/* SentencePiece models: results of the SentencePiece library on small models, files damaged in every byte,
 * rejected files. */
#include "base/base64.h"
#include "check.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"
#include "spm_fixture.h"
#include "text/spm/spm_to_json.h"

typedef struct setup {
    ses_spm_model_type kind;
    bool bytes, suffix, raw, keep_spaces;
} setup;

static void put_model(ses_buf *b, setup s)
{
    pb_piece(b, "<unk>", 0, SES_SPM_UNKNOWN);
    pb_piece(b, "<s>", 0, SES_SPM_CONTROL);
    pb_piece(b, "</s>", 0, SES_SPM_CONTROL);
    pb_piece(b, "▁", -2, SES_SPM_NORMAL);
    pb_piece(b, "a", -3, SES_SPM_NORMAL);
    pb_piece(b, "b", -4, SES_SPM_NORMAL);
    pb_piece(b, "▁a", -1.5f, SES_SPM_NORMAL);
    pb_piece(b, "ab", -2.5f, SES_SPM_NORMAL);
    pb_piece(b, "▁ab", -6, SES_SPM_UNUSED);
    pb_piece(b, "[U]", 0, SES_SPM_USER_DEFINED);
    pb_piece(b, "aa", -5, SES_SPM_NORMAL);
    pb_piece(b, "▁a▁", -1, SES_SPM_UNUSED);
    for (int i = 0; s.bytes && i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        pb_piece(b, name, 0, SES_SPM_BYTE);
    }
    ses_buf m = { 0 };
    pb_int(&m, 3, s.kind);
    pb_int(&m, 35, s.bytes);
    pb_int(&m, 24, s.suffix);
    if (s.raw) pb_bytes(&m, 44, "?", 1);
    pb_int(&m, 300, 7); /* extensions are skipped */
    pb_bytes(b, 2, m.data, m.len);
    m.len = 0;
    if (s.raw) pb_int(&m, 3, 0), pb_int(&m, 4, 0);
    if (s.keep_spaces) pb_int(&m, 5, 0);
    pb_bytes(b, 3, m.data ? m.data : "", m.len);
    ses_buf_free(&m);
}

static ses_tokenizer *open_bytes(const char *p, size_t n, ses_err *e)
{
    ses_spm m;
    if (!ses_spm_parse(&m, p, n, e)) return NULL;
    ses_json_writer *w = ses_json_writer_new(-1, e);
    size_t len;
    const char *text = w && ses_spm_write(&m, w, e) ? ses_json_writer_text(w, &len, e) : NULL;
    ses_tokenizer *t = text ? ses_tokenizer_from_json(text, len, e) : NULL;
    ses_json_writer_free(w);
    ses_spm_free(&m);
    return t;
}

/* "ids pieces|... >text" */
static const char *encode(ses_encode_ctx *k, const char *text, char *out, size_t size)
{
    ses_err e = { 0 };
    size_t n = 0, len;
    const char *s;
    if (!ses_encode(k, &(ses_input){ .text = { text, strlen(text) } }, NULL, &e)) return "failed";
    const ses_encoding *r = ses_encode_ctx_result(k);
    out[0] = 0;
    for (size_t i = 0; i < r->n; i++) n += (size_t)snprintf(out + n, size - n, "%d ", r->id[i]);
    for (size_t i = 0; i < r->n; i++) {
        s = ses_encode_ctx_string(k, r, i, &len);
        n += (size_t)snprintf(out + n, size - n, "%s%.*s", i ? "|" : "", (int)len, s);
    }
    if (!ses_decode(k, r->id, r->n, false, &s, &len, &e)) return "failed";
    snprintf(out + n, size - n, ">%.*s", (int)len, s);
    return out;
}

static void check_encodings(void)
{
    static const struct {
        setup s;
        const char *text[9][2];
    } cases[] = {
        { { SES_SPM_UNIGRAM, 0, 0, 0, 0 },
          { { "a b", "6 3 5 ▁a|▁|b>a b" },
            { "  ab  a ", "3 7 6 ▁|ab|▁a>ab a" },
            { "aab[U]ab", "6 7 9 7 ▁a|ab|[U]|ab>aab[U]ab" },
            { "aéxb", "6 0 5 ▁a|éx|b>a ⁇ b" },
            { "", ">" },
            { "   ", ">" },
            { "aaaaa", "6 10 10 ▁a|aa|aa>aaaaa" },
            { "a▁b<s>", "6 3 5 0 ▁a|▁|b|<s>>a b ⁇ " } } },
        { { SES_SPM_BPE, 0, 0, 0, 0 },
          { { "a b", "6 3 5 ▁a|▁|b>a b" },
            { "  ab  a ", "6 5 6 ▁a|b|▁a>ab a" }, /* ▁ab is unused and split again */
            { "aab[U]ab", "6 7 9 7 ▁a|ab|[U]|ab>aab[U]ab" },
            { "aéxb", "6 0 5 ▁a|éx|b>a ⁇ b" },
            { "aaaaa", "6 10 10 ▁a|aa|aa>aaaaa" } } },
        { { SES_SPM_WORD, 0, 0, 0, 0 },
          { { "a b", "6 0 ▁a|▁b>a ⁇ " }, { "  ab  a ", "8 6 ▁ab|▁a>ab a" }, { "[U]", "0 ▁[U]> ⁇ " } } },
        { { SES_SPM_CHAR, 0, 0, 0, 0 },
          { { "aab[U]ab", "3 4 4 5 9 4 5 ▁|a|a|b|[U]|a|b>aab[U]ab" },
            { "aéxb", "3 4 0 5 ▁|a|éx|b>a ⁇ b" } } },
        { { SES_SPM_UNIGRAM, .bytes = true },
          { { "aéxb", "6 207 181 132 5 ▁a|<0xC3>|<0xA9>|<0x78>|b>aéxb" },
            { "a▁b<s>", "6 3 5 72 127 74 ▁a|▁|b|<0x3C>|<0x73>|<0x3E>>a b<s>" } } },
        { { SES_SPM_UNIGRAM, .suffix = true },
          { { "a b", "4 3 5 3 a|▁|b|▁>a b " }, { "  ab  a ", "7 6 3 ab|▁a|▁>ab a " } } },
        { { SES_SPM_UNIGRAM, .raw = true },
          { { "  ab  a ", "3 3 7 3 6 3 ▁|▁|ab|▁|▁a|▁>  ab  a " }, { "aéxb", "4 0 5 a|éx|b>a?b" } } },
        { { SES_SPM_CHAR, .keep_spaces = true }, { { "a b", "0 4 0 5  |a| |b> ⁇ a ⁇ b" } } },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        ses_buf b = { 0 };
        ses_err e = { 0 };
        char got[512];
        put_model(&b, cases[i].s);
        ses_tokenizer *t = open_bytes(b.data, b.len, &e);
        ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
        CHECK_MSG(k, "%s", e.msg);
        for (size_t j = 0; k && j < SES_LEN(cases[i].text) && cases[i].text[j][0]; j++)
            CHECK_STR(encode(k, cases[i].text[j][0], got, sizeof got), cases[i].text[j][1]);
        ses_encode_ctx_free(k);
        ses_tokenizer_free(t);
        ses_buf_free(&b);
    }
}

/* Source ranges: the added prefix has an empty range, U+2581 for a space has the range of the space. */
static void check_offsets(void)
{
    ses_buf b = { 0 };
    ses_err e = { 0 };
    char got[128];
    size_t n = 0;
    put_model(&b, (setup){ .kind = SES_SPM_CHAR });
    ses_tokenizer *t = open_bytes(b.data, b.len, &e);
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    CHECK(k && ses_encode(k, &(ses_input){ .text = { " aé  b ", 8 } }, NULL, &e));
    const ses_encoding *r = ses_encode_ctx_result(k);
    for (size_t i = 0; i < r->n; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%u-%u ", r->byte_offset[i].begin,
                              r->byte_offset[i].end);
    CHECK_STR(got, "1-1 1-2 2-4 4-5 6-7 ");
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
    ses_buf_free(&b);
}

/* A file truncated anywhere, or with any byte changed, is read or rejected. */
static void check_damage(void)
{
    ses_buf b = { 0 };
    put_model(&b, (setup){ .kind = SES_SPM_BPE });
    int refused = 0, read = 0;
    for (size_t i = 0; i < b.len; i++) {
        ses_err e = { 0 };
        ses_tokenizer *t = open_bytes(b.data, i, &e);
        t ? read++ : refused++;
        if (!t && !e.msg[0]) CHECK(false);
        ses_tokenizer_free(t);
        for (int k = 0; k < 8; k++) {
            char was = b.data[i];
            b.data[i] = (char)(was ^ 1 << k);
            e = (ses_err){ 0 };
            t = open_bytes(b.data, b.len, &e);
            t ? read++ : refused++;
            if (!t && !e.msg[0]) CHECK(false);
            ses_tokenizer_free(t);
            b.data[i] = was;
        }
    }
    CHECK(refused > 100 && read > 100);
    ses_buf_free(&b);
}

static void refused(const char *p, size_t n, const char *want)
{
    ses_err e = { 0 };
    ses_tokenizer *t = open_bytes(p, n, &e);
    CHECK(!t);
    CHECK_STR(e.msg, want);
    ses_tokenizer_free(t);
}

static void check_refused(void)
{
    ses_buf b = { 0 };
    refused("", 0, "not a SentencePiece model: no pieces");
    refused("\x0b", 1, "not a SentencePiece model: unsupported group field at byte 1");
    refused("\x0a\x05xx", 4, "not a SentencePiece model: field exceeds the end at byte 2");
    refused("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11,
            "not a SentencePiece model: field exceeds the end at byte 11");
    refused("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12,
            "not a SentencePiece model: number of more than 10 bytes at byte 11");
    refused("\x0d\x01", 2, "not a SentencePiece model: truncated number at byte 1");
    pb_piece(&b, "a", 0, SES_SPM_NORMAL);
    refused(b.data, b.len, "model: SentencePiece: pieces: no piece has type unknown");
    pb_piece(&b, "a", 0, SES_SPM_NORMAL);
    refused(b.data, b.len, "model: SentencePiece: pieces: entries 0 and 1 are both \"a\"");
    b.len = 0;
    pb_piece(&b, "u", 0, SES_SPM_UNKNOWN);
    pb_piece(&b, "v", 0, SES_SPM_UNKNOWN);
    refused(b.data, b.len, "model: SentencePiece: pieces: entries 0 and 1 are both of type unknown");
    b.len = 0;
    pb_piece(&b, "", 0, SES_SPM_UNKNOWN);
    refused(b.data, b.len, "model: SentencePiece: pieces: entry 0: a piece must not be empty");
    b.len = 0;
    pb_piece(&b, "u", 0, SES_SPM_UNKNOWN);
    pb_piece(&b, "<0x41>", 0, SES_SPM_BYTE);
    refused(b.data, b.len, "model: SentencePiece: pieces: entry 1: a byte, but byte_fallback is false");
    pb_bytes(&b, 2, "\x98\x02\x01", 3);
    refused(b.data, b.len, "model: SentencePiece: pieces: 1 byte pieces instead of 256");
    b.len = 0;
    pb_piece(&b, "\xff", 0, SES_SPM_UNKNOWN);
    refused(b.data, b.len, "piece 0 is not valid UTF-8");
    b.len = 0;
    pb_piece(&b, "u", 0.0f / 0.0f, SES_SPM_UNKNOWN);
    refused(b.data, b.len, "piece 0: the score is not finite");
    b.len = 0;
    pb_piece(&b, "u", 0, SES_SPM_UNKNOWN);
    pb_bytes(&b, 3, "\x12\x02xx", 4);
    refused(b.data, b.len, "normalizer: SentencePiece: charsmap: charsmap of 2 bytes is too short");
    ses_buf_free(&b);
}

static void check_base64(void)
{
    static const char *const pair[][2] = { { "", "" },
                                           { "f", "Zg==" },
                                           { "fo", "Zm8=" },
                                           { "foo", "Zm9v" },
                                           { "foob", "Zm9vYg==" },
                                           { "fooba", "Zm9vYmE=" },
                                           { "\xff\xfe", "//4=" } };
    static const char *const bad[] = { "Z", "Zg=", "Zg=a", "Zh==", "Z===", "Zm9v=m8=", "Zm 9" };
    char out[16];
    size_t n;
    for (size_t i = 0; i < SES_LEN(pair); i++) {
        memset(out, 0, sizeof out);
        ses_base64_encode(pair[i][0], strlen(pair[i][0]), out);
        CHECK_STR(out, pair[i][1]);
        memset(out, 0, sizeof out);
        CHECK(ses_base64_decode(pair[i][1], strlen(pair[i][1]), out, &n, NULL) && n == strlen(pair[i][0]));
        CHECK_STR(out, pair[i][0]);
    }
    for (size_t i = 0; i < SES_LEN(bad); i++)
        CHECK(!ses_base64_decode(bad[i], strlen(bad[i]), out, &n, NULL));
}

int main(void)
{
    check_encodings();
    check_offsets();
    check_damage();
    check_refused();
    check_base64();
    return check_report();
}
