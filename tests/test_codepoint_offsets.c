/* Code point offsets at each instruction set against the scalar version, for ranges mostly in order, some
 * out of order or past the text. */
#include "base/rng.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/codepoint_offsets.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

enum { BYTES = SES_CODEPOINT_SHORT + 3000, RANGES = 3000 };

static size_t draw_text(dice *d, char *out, size_t want)
{
    static const uint32_t cp[] = { 'a', ' ', 0xE9, 0x434, 0x65E5, 0xE01, 0x1F44D };
    size_t n = 0;
    uint32_t kinds = 1 + roll(d, (uint32_t)SES_LEN(cp));
    while (n < want) n += ses_utf8_encode(cp[roll(d, kinds)], out + n);
    return n;
}

static void check_round(uint32_t round, ses_codepoint_table *table)
{
    static char text[BYTES + 8];
    static ses_offset byte[RANGES], want[RANGES], got[RANGES];
    dice d = { { .seed = 51, .step = round }, 0 };
    size_t n = draw_text(&d, text, round % 4 ? 1 + roll(&d, 200) : roll(&d, BYTES));
    uint32_t at = 0;
    for (size_t i = 0; i < RANGES; i++) {
        uint32_t end = at + roll(&d, 9);
        byte[i] = (ses_offset){ at, end };
        at = roll(&d, 20) ? end : roll(&d, (uint32_t)n + 3);
    }
    ses_err e = { 0 };
    CHECK(ses_codepoint_offsets(SES_ISA_REF, table, text, n, byte, want, RANGES, &e));
    ses_isa most = SES_ISA_REF;
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (__builtin_cpu_supports("avx2")) most = SES_ISA_AVX2;
#endif
    for (ses_isa isa = SES_ISA_REF; isa <= most; isa++) {
        memset(got, 0, sizeof got);
        bool ok = ses_codepoint_offsets(isa, table, text, n, byte, got, RANGES, &e);
        CHECK_MSG(ok && !memcmp(got, want, sizeof got), "round %u, %zu bytes", round, n);
    }
}

int main(void)
{
    ses_codepoint_table table = { 0 };
    for (uint32_t round = 0; round < 80; round++) check_round(round, &table);
    ses_codepoint_table_free(&table);
    return check_report();
}
