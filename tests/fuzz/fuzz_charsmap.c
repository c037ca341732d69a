/* A SentencePiece character map: text up to the first FF, then the map. A lookup stays inside the trie,
 * and its replacement is inside the map. */
#include "base/unicode/utf8.h"
#include "fuzz.h"
#include "text/spm/charsmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *separator = n ? memchr(data, 0xFF, n) : NULL;
    if (!separator) return 0;
    const char *text = (const char *)data, *map = (const char *)separator + 1;
    size_t text_n = (size_t)(separator - data), map_n = n - text_n - 1;
    ses_charsmap m = { 0 };
    ses_err e = { 0 };
    bool ok = ses_charsmap_open(&m, map, map_n, &e);
    MUST(ok == (e.code == SES_OK));
    for (size_t i = 0; ok && i < text_n; i++) {
        ses_string to = { 0 };
        size_t len = 0;
        ses_charsmap_result r = ses_charsmap_shortest(&m, text + i, text_n - i, &to, &e);
        ses_charsmap_result l = ses_charsmap_longest(&m, text + i, text_n - i, &len, &to, &e);
        MUST((r == SES_CHARSMAP_NONE) == (l == SES_CHARSMAP_NONE));
        if (l != SES_CHARSMAP_FOUND) continue;
        MUST(len > 0 && len <= text_n - i);
        MUST(to.p >= map && to.p + to.n <= map + map_n && ses_utf8_valid(to.p, to.n) == to.n);
    }
    return 0;
}
