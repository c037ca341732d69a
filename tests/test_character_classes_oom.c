/* Long texts of a single character class: time grows linearly, and memory is bounded by the length after
 * normalization. Allocations are counted, not failed. */
#define _POSIX_C_SOURCE 200809L
#include "oom.h"
#include "sesame/sesame.h"

#include <time.h>

/* ---- tokenizers ---- */

#define UNIGRAM                                                                                           \
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\u2581\",-2],[\"a\",-3],[\"aa\",-4]," \
    "[\"e\",-3],[\".\",-4],[\"\u4e2d\",-5],[\"\u0627\u0644\",-6],[\"0\",-4]]}"
#define SPLIT                                                                   \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}," \
    "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"always\"}]}"

static const struct {
    const char *name, *json;
} tokenizer[] = {
    { "Unigram",
      "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKD\"},"
      "{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"},{\"type\":\"Replace\",\"pattern\":"
      "{\"Regex\":\" {2,}\"},\"content\":\" \"}]},\"pre_tokenizer\":" SPLIT ",\"model\":" UNIGRAM "}" },
    { "Unigram without words", "{\"normalizer\":{\"type\":\"NFKC\"},\"model\":" UNIGRAM "}" },
    { "BPE",
      "{\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":" SPLIT
      ",\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,\"aa\":2,\"aaaa\":3},"
      "\"merges\":[[\"a\",\"a\"],[\"aa\",\"aa\"]]}}" },
    { "byte-level BPE",
      "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1},"
      "\"merges\":[[\"a\",\"a\"]]}}" },
    { "WordPiece", "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
                   "\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":"
                   "{\"u\":0,\"a\":1,\"##a\":2,\".\":3}}}" },
    { "SentencePiece",
      "{\"normalizer\":{\"type\":\"SentencePiece\",\"charsmap\":\"\",\"add_dummy_prefix\":true,"
      "\"remove_extra_whitespaces\":true},\"model\":{\"type\":\"SentencePiece\",\"kind\":\"unigram\","
      "\"byte_fallback\":false,\"pieces\":[[\"<unk>\",0,\"unknown\"],[\"\u2581\",-2.5],[\"a\",-3],[\"aa\","
      "-4.5],[\".\",-4],[\"\u4e2d\",-5]]}}" },
};

/* ---- texts ---- */

typedef struct class
{
    const char *name, *first, *unit; /* the text: first, then unit repeated */
    size_t n;
} class;

#define CLASS(name, first, unit)           \
    {                                      \
        name, first, unit, sizeof unit - 1 \
    }
static const class classes[] = {
    CLASS("letters", "", "abcdefghijklmnopqrstuvwxyz"),
    CLASS("a letter", "", "a"),
    CLASS("spaces", "", " "),
    CLASS("line feeds", "", "\n"),
    CLASS("digits", "", "0123456789"),
    CLASS("punctuation", "", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"),
    CLASS("CJK", "", "\u4e2d\u6587\u5b57"),
    CLASS("Hangul", "", "\ud55c"),
    CLASS("Arabic", "", "\u0627\u0644\u0639"),
    CLASS("emoji", "", "\U0001f468\u200d\U0001f469\u200d"),
    CLASS("marks", "a", "\u0301"),
    CLASS("marks to sort", "a", "\u0301\u0323"),
    CLASS("U+FDFA", "", "\ufdfa"),
    CLASS("U+0130", "", "\u0130"),
    CLASS("invalid bytes", "", "\xff"),
    CLASS("incomplete characters", "", "\xe4\xb8"),
    CLASS("NUL", "", "\0"),
    CLASS("private use", "", "\ue000"),
    CLASS("unassigned", "", "\u0378"),
};

static char *make_text(const class *c, size_t want, size_t *n)
{
    char *s = malloc(want + 64);
    *n = strlen(c->first);
    memcpy(s, c->first, *n);
    for (; *n < want; *n += c->n) memcpy(s + *n, c->unit, c->n);
    return s;
}

/* Processor time of encoding the class in a new workspace, the best of three. *peak: bytes allocated. */
static double measure(const ses_tokenizer *t, const class *c, size_t bytes, size_t *peak)
{
    double best = 1e9;
    size_t n;
    char *text = make_text(c, bytes, &n);
    for (int i = 0; i < 3; i++) {
        ses_err e = { 0 };
        size_t before = oom.bytes;
        oom.peak = before;
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        ses_encode_ctx *k = ses_encode_ctx_new(t, &e);
        CHECK_MSG(k && ses_encode(k, &(ses_input){ .text = { text, n } }, NULL, &e), "%s: %s", c->name,
                  e.msg);
        ses_encode_ctx_free(k);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        double took = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        if (took < best) best = took;
        *peak = oom.peak - before;
    }
    free(text);
    return best;
}

/* Eight times the text takes about eight times as long; quadratic time would be 64 times. Measured times
 * vary, the more so under load, so the limit is between, and a start-up of 10 ms is free. */
static void check_class(size_t i, const ses_tokenizer *t, const class *c)
{
    enum { SHORT = 32 << 10, LONG = 8 * SHORT, WORKSPACE = 24 << 20 };
    size_t peak;
    double small = measure(t, c, SHORT, &peak), large = measure(t, c, LONG, &peak);
    CHECK_MSG(large < 0.01 + 24 * small, "%s, %s: %.4f s for %d KiB, %.4f s for %d KiB", tokenizer[i].name,
              c->name, small, SHORT >> 10, large, LONG >> 10);
    /* U+FDFA is the longest expansion: 3 bytes become 33 */
    CHECK_MSG(peak < WORKSPACE + (size_t)LONG * 11 * 64, "%s, %s: %zu bytes of memory", tokenizer[i].name,
              c->name, peak);
}

int main(void)
{
    for (size_t i = 0; i < sizeof tokenizer / sizeof *tokenizer; i++) {
        ses_err e = { 0 };
        ses_tokenizer *t = ses_tokenizer_from_json(tokenizer[i].json, strlen(tokenizer[i].json), &e);
        CHECK_MSG(t, "%s: %s", tokenizer[i].name, e.msg);
        for (size_t j = 0; t && j < sizeof classes / sizeof *classes; j++) check_class(i, t, &classes[j]);
        ses_tokenizer_free(t);
    }
    return check_report();
}
