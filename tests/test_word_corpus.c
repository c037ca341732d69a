/* Texts as word ids: words by both rules, vocabulary, sentence ends, skipped words, the temporary file. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/alloc.h"
#include "base/file.h"
#include "vectors/word_corpus.h"

#include <unistd.h>

static char folder[] = "/tmp/sesame-word-corpus-XXXXXX";
static char path[64];

static void write_text(const void *s, size_t n) { CHECK(ses_file_write(path, s, n, true, NULL)); }

/* The words of a text joined by '|', line ends as '/'. */
static const char *words(const char *s, size_t n, ses_words_rule rule, ses_words_skipped *skipped)
{
    static char out[4096];
    ses_word_reader r = { 0 };
    ses_err e = { 0 };
    size_t at = 0;
    write_text(s, n);
    CHECK(ses_word_reader_open(&r, path, rule, &e));
    for (;;) {
        const char *w;
        size_t len;
        CHECK_MSG(ses_word_reader_next(&r, &w, &len, &e), "%s", e.msg);
        if (!w || at + len + 2 > sizeof out) break;
        memcpy(out + at, len ? w : "/", len ? len : 1);
        at += len ? len : 1;
        if (len) out[at++] = '|';
    }
    out[at] = 0;
    if (skipped) *skipped = r.skipped;
    ses_word_reader_free(&r);
    return out;
}
#define WORDS(text, rule) words(text, sizeof text - 1, rule, NULL)

static void rules(void)
{
    CHECK_STR(WORDS("a b\tc\r\n\n  d", SES_WORDS_BLANK), "a|b|c|//d|");
    CHECK_STR(WORDS("", SES_WORDS_BLANK), "");
    CHECK_STR(WORDS("A, \xc3\x84rger\n", SES_WORDS_BLANK), "A,|\xc3\x84rger|/");
    CHECK_STR(WORDS("Don't \"Stop\", \xc3\x84rger!\n", SES_WORDS_TEXT),
              "don't|\"|stop|\"|,|\xc3\xa4rger|!|/");
    CHECK_STR(WORDS("'tis dogs' x-y 3.5", SES_WORDS_TEXT), "'|tis|dogs|'|x|-|y|3|.|5|");
    CHECK_STR(WORDS("ab\xe4\xb8\xad\xe6\x96\x87z", SES_WORDS_TEXT), "ab|\xe4\xb8\xad|\xe6\x96\x87|z|");
    CHECK_STR(WORDS("it\xe2\x80\x99s\xc2\xa0so", SES_WORDS_TEXT), "it\xe2\x80\x99s|so|");
}

static void bad_words(void)
{
    ses_words_skipped s;
    ses_buf b = { 0 }, text = { 0 };
    size_t n = 10 << 20;
    char *big = malloc(n + 6);
    CHECK(!ses_words_skipped_text(&(ses_words_skipped){ 0 }, &text));
    memset(big, 'x', n + 6);
    big[1] = ' ', big[n] = '\n';
    for (int rule = 0; rule < 2; rule++) {
        CHECK_STR(words(big, n + 6, (ses_words_rule)rule, &s), "x|/xxxxx|");
        CHECK(s.too_long == 1 && s.first_line == 1);
    }
    CHECK(ses_words_skipped_text(&s, &text));
    CHECK_STR(text.data, "1 word is longer than 1000 bytes and was skipped; the first in line 1");
    for (int i = 0; i < SES_WORD_MAX; i++) ses_buf_put(&b, 'y');
    CHECK(strlen(words(b.data, b.len, SES_WORDS_BLANK, &s)) == SES_WORD_MAX + 1 && !s.too_long);
    ses_buf_put(&b, 'y');
    CHECK(!*words(b.data, b.len, SES_WORDS_BLANK, &s) && s.too_long == 1);
    free(big);
    ses_buf_free(&b);
    ses_buf_free(&text);
}

static void ids(void)
{
    static const char text[] = "b a c a\n\nrare\nc b a\nb";
    static const int32_t want[] = { 0, 1, 2, 1, -1, 2, 0, 1, -1, 0, -1 };
    const char *file = path;
    ses_err e = { 0 };
    for (int spill = 0; spill < 2; spill++) {
        ses_word_corpus c = { 0 };
        ses_word_corpus_options o = { .min_count = 2, .beside = path, .max_memory = spill ? 8 : 0 };
        write_text(text, sizeof text - 1);
        CHECK_MSG(ses_word_corpus_read(&c, &file, 1, &o, &e), "%s", e.msg);
        CHECK(c.n == SES_LEN(want) && !memcmp(c.id, want, sizeof want) && (c.fd != 0) == (spill == 1));
        CHECK(c.vocab.n == 3 && c.vocab.tokens == 9 && c.vocab.kept_tokens == 8 && c.sentences == 3);
        CHECK_STR(c.vocab.word[0].text, "b"); /* as often as a, seen earlier */
        CHECK(ses_word_vocab_find(&c.vocab, "c", 1) == 2 && ses_word_vocab_find(&c.vocab, "rare", 4) == -1);
        ses_word_corpus_free(&c);
    }
    ses_word_corpus c = { 0 };
    const char *two[] = { path, path };
    CHECK(ses_word_corpus_read(&c, two, 2, &(ses_word_corpus_options){ .min_count = 1, .max_words = 2 }, &e));
    CHECK(c.vocab.n == 2 && c.vocab.word[0].count == 6 && c.sentences == 6);
    ses_word_corpus_free(&c);
}

static bool stop(void *ctx, int64_t n) { return (void)ctx, n < 0; }

static void errors(void)
{
    const char *file = path;
    ses_word_corpus c = { 0 };
    ses_err e = { 0 };
    write_text("a b c\n", 6);
    CHECK(!ses_word_corpus_read(&c, &file, 1, &(ses_word_corpus_options){ .min_count = 2 }, &e));
    CHECK(e.code == SES_EARG && strstr(e.msg, "none of 3 different words occurs at least 2 times"));
    ses_word_corpus_free(&c);
    ses_err_clear(&e);
    write_text(" \n\n", 3);
    CHECK(!ses_word_corpus_read(&c, &file, 1, &(ses_word_corpus_options){ .min_count = 1 }, &e));
    CHECK(strstr(e.msg, "no words"));
    ses_word_corpus_free(&c);
    ses_err_clear(&e);
    file = "/nonexistent";
    CHECK(!ses_word_corpus_read(&c, &file, 1, &(ses_word_corpus_options){ .min_count = 1 }, &e));
    CHECK(e.code == SES_EIO);
    ses_word_corpus_free(&c);
    char *many = malloc(4 << 20);
    for (int i = 0; i < 2 << 20; i++) memcpy(many + 2 * i, "a ", 2);
    write_text(many, 4 << 20);
    free(many);
    file = path;
    ses_err_clear(&e);
    CHECK(!ses_word_corpus_read(&c, &file, 1, &(ses_word_corpus_options){ .progress = stop }, &e));
    CHECK(strstr(e.msg, "interrupted"));
    ses_word_corpus_free(&c);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/text", folder);
    rules();
    bad_words();
    ids();
    errors();
    unlink(path);
    rmdir(folder);
    return check_report();
}
