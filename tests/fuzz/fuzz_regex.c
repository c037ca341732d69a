/* A pattern up to the first NUL, then a text: matches are inside the text, in order, at character
 * boundaries. */
#include "base/unicode/utf8.h"
#include "fuzz.h"
#include "text/regex/regex.h"

static bool between(const char *text, size_t n, size_t i) { return i == n || (text[i] & 0xC0) != 0x80; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *separator = n ? memchr(data, 0, n) : NULL;
    if (!separator) return 0;
    const char *pattern = (const char *)data, *text = (const char *)separator + 1;
    size_t pattern_n = (size_t)(separator - data), text_n = ses_utf8_valid(text, n - pattern_n - 1);
    if (ses_utf8_valid(pattern, pattern_n) != pattern_n || text_n > 500) return 0;
    ses_arena mem = { 0 };
    ses_err e = { 0 };
    ses_regex *r = ses_regex_open(pattern, pattern_n, &mem, &e);
    MUST((r != NULL) == (e.code == SES_OK));
    ses_regex_scan s = { 0 };
    bool ok = r && ses_regex_start(&s, r, text, text_n, &e);
    for (size_t last = 0, matches = 0; ok && (ok = ses_regex_next(&s, &e)) && s.found; matches++) {
        MUST(s.begin >= last && s.begin <= s.end && s.end <= text_n && matches <= text_n);
        MUST(between(text, text_n, s.begin) && between(text, text_n, s.end));
        last = s.end;
    }
    ses_regex_stop(&s);
    ses_regex_close(r);
    ses_arena_free(&mem);
    return 0;
}
