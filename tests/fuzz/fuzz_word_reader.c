/* Words of a text: bounds of the words, counts of lines, and, if no word was skipped, the words of the
 * splitter. Bytes other than text are an error with their location. The first byte selects the rule. */
#define _DEFAULT_SOURCE
#include "fuzz_folder.h"
#include "io/text_decoder.h"
#include "vectors/word_reader.h"

static size_t lines_of(const char *s, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += s[i] == '\n';
    return lines;
}

/* The words of the reader, a blank after each. */
static bool read_words(const char *path, ses_words_rule rule, ses_buf *out, ses_word_reader *r, ses_err *e)
{
    const char *s;
    size_t n;
    MUST(ses_word_reader_open(r, path, rule, e));
    for (;;) {
        if (!ses_word_reader_next(r, &s, &n, e)) return false;
        if (!s) return true;
        MUST(n <= SES_WORD_MAX && !(n && memchr(s, ' ', n)) && !(n && memchr(s, '\n', n)) &&
             !memchr(s, 0, n));
        ses_buf_append(out, s, n);
        if (n) ses_buf_put(out, ' ');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[40], path[64];
    ses_err e = { 0 };
    ses_buf text = { 0 };
    ses_words words = { 0 };
    ses_word_reader r = { 0 };
    if (!n) return 0;
    ses_words_rule rule = data[0] & 1 ? SES_WORDS_TEXT : SES_WORDS_BLANK;
    const char *s = (const char *)data + 1;
    n--;
    if (n && ((unsigned char)*s >= 0x80 || *s == 0x1f || *s == 0x28)) return 0; /* compressed */
    fuzz_folder(dir);
    snprintf(path, sizeof path, "%s/text", dir);
    fuzz_file(path, s, n);
    bool ok = read_words(path, rule, &text, &r, &e);
    ses_err want = { 0 };
    MUST(ok == ses_text_check_lines(s, n, 1, &want) && !strcmp(e.msg, want.msg));
    MUST(!ok || r.line == lines_of(s, n));
    if (ok && !r.skipped.too_long) {
        MUST(ses_words_split(&words, (ses_string){ s, n }, rule, &e));
        MUST(text.len == words.text.len + (words.n > 0));
        MUST(!words.n || !memcmp(text.data, words.text.data, words.text.len));
    }
    ses_word_reader_free(&r);
    ses_words_free(&words);
    ses_buf_free(&text);
    unlink(path);
    rmdir(dir);
    return 0;
}
