/* UTF-8 validation in three versions: character by character, with inlined two- and three-byte cases, and
 * 64 bytes at a time. */
#include "base/rng.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/utf8_valid_avx2.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

static size_t plain(const char *p, size_t n)
{
    size_t i = 0, k;
    uint32_t cp;
    while (i < n && (k = ses_utf8_decode(p + i, n - i, &cp))) i += k;
    return i;
}

static bool agree(const char *p, size_t n)
{
    size_t good = plain(p, n);
    bool ok = ses_utf8_valid(p, n) == good;
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (__builtin_cpu_supports("avx2")) ok &= ses_utf8_valid_avx2(p, n) == (good == n);
#endif
    return ok;
}

/* Every lead byte with every second byte, a few third and fourth bytes, at positions around the end of a
 * block. */
static void check_all(void)
{
    static const unsigned char more[] = { 0x00, 'a', 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC3, 0xE1, 0xFF };
    uint32_t wrong = 0;
    for (unsigned a = 0x7F; a < 256; a++)
        for (unsigned b = 0; b < 256; b++)
            for (size_t c = 0; c < SES_LEN(more); c++)
                for (size_t d = 0; d < SES_LEN(more); d++) {
                    char text[160];
                    size_t at = (size_t[]){ 0, 59, 61, 62, 63 }[(a + b + c + d) % 5],
                           n = at + 4 + (b % 3) * 20;
                    memset(text, 'x', sizeof text);
                    text[at] = (char)a, text[at + 1] = (char)b;
                    text[at + 2] = (char)more[c], text[at + 3] = (char)more[d];
                    wrong += !agree(text, n);
                }
    CHECK_MSG(!wrong, "%u texts", wrong);
}

static void check_random(void)
{
    static const uint32_t from[] = { 0, 0x80, 0x800, 0xD000, 0xE000, 0x10000 },
                          span[] = { 128, 0x780, 0xC800, 0x800, 0x2000, 0x100000 };
    dice d = { { .seed = 31 }, 0 };
    uint32_t wrong = 0, good = 0;
    for (int i = 0; i < 20000; i++) {
        char text[300];
        size_t n = 0, want = roll(&d, 280);
        uint32_t kind = roll(&d, 6);
        while (n < want) {
            uint32_t k = roll(&d, 4) ? kind : roll(&d, 6);
            n += ses_utf8_encode(from[k] + roll(&d, span[k]), text + n);
        }
        if (n && roll(&d, 2)) text[roll(&d, (uint32_t)n)] = (char)roll(&d, 256);
        if (n && !roll(&d, 4)) n -= 1 + roll(&d, n < 3 ? (uint32_t)n : 3);
        wrong += !agree(text, n);
        good += plain(text, n) == n;
    }
    CHECK_MSG(!wrong && good > 1000 && good < 19000, "%u texts of which %u are good", wrong, good);
}

int main(void)
{
    check_all();
    check_random();
    return check_report();
}
