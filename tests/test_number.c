#include "base/number.h"
#include "base/rng.h"
#include "check.h"

#include <locale.h>
#include <math.h>

static double of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint64_t rand64(uint64_t i)
{
    ses_rng_key key = { 7, 0, 0 };
    return (uint64_t)ses_rand32(key, 2 * i) << 32 | ses_rand32(key, 2 * i + 1);
}

/* ---- the table, computed anew with integers of 1280 bits, lowest word first ---- */

enum { WORDS = 40 };

static int top_bit(const uint32_t *x)
{
    for (int i = WORDS * 32 - 1; i >= 0; i--)
        if (x[i / 32] >> (i % 32) & 1) return i;
    return -1;
}

static void times_ten(uint32_t *x)
{
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) carry += (uint64_t)x[i] * 10, x[i] = (uint32_t)carry, carry >>= 32;
}

/* x = 2x + bit; if x >= y: x -= y. Returns whether it subtracted. */
static int shift_subtract(uint32_t *x, const uint32_t *y, int bit)
{
    for (int i = WORDS - 1; i >= 0; i--) x[i] = x[i] << 1 | (i ? x[i - 1] >> 31 : (uint32_t)bit);
    int i = WORDS - 1;
    while (i > 0 && x[i] == y[i]) i--;
    if (x[i] < y[i]) return 0;
    int64_t borrow = 0;
    for (i = 0; i < WORDS; i++) borrow += (int64_t)x[i] - y[i], x[i] = (uint32_t)borrow, borrow >>= 32;
    return 1;
}

/* The leading 128 bits of num / den, rounded up if inexact. */
static ses_pow10 quotient(const uint32_t *num, const uint32_t *den)
{
    uint32_t rest[WORDS] = { 0 };
    ses_pow10 g = { 0, 0 };
    for (int i = top_bit(num), kept = 0; kept < 128; i--) {
        int bit = shift_subtract(rest, den, i >= 0 ? num[i / 32] >> (i % 32) & 1 : 0);
        if (!bit && !kept) continue;
        g.hi = g.hi << 1 | g.lo >> 63, g.lo = g.lo << 1 | (uint64_t)bit;
        kept++;
        if (kept < 128) continue;
        bool more = top_bit(rest) >= 0;
        for (int j = 0; j < i && !more; j++) more = num[j / 32] >> (j % 32) & 1;
        if (more && !++g.lo) g.hi++;
    }
    return g;
}

static void check_table(void)
{
    uint32_t ten[WORDS] = { 1 }, one[WORDS] = { 1 };
    int bad = 0;
    for (int k = 0; k <= 342; k++, times_ten(ten)) {
        ses_pow10 up = quotient(ten, one), down = quotient(one, ten);
        if (k <= SES_POW10_MAX) bad += memcmp(&up, &ses_pow10_table[k - SES_POW10_MIN], sizeof up) != 0;
        bad += memcmp(&down, &ses_pow10_table[-k - SES_POW10_MIN], sizeof down) != 0;
    }
    CHECK_MSG(!bad, "%d entries", bad);
}

/* ---- reading ---- */

static const char *const texts[] = {
    "0.0",
    "-0.0",
    "0e10",
    "1.0",
    "0.1",
    "123456789012345678901234567890",
    "1e22",
    "1e23",
    "8.5e22",
    "9007199254740993.0",
    "9007199254740992.9999999999999999999999",
    "9007199254740993.00000000000000000001",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "4.9406564584124654e-324",
    "2.4703282292062328e-324",
    "2.4703282292062327e-324",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "1e-400",
    "123e-340",
    "1e-323",
    "0.000000000000000000000000000000000000000000001e45",
    "100000000000000000000000000000000000e-35",
    "6.0221407600000000000000000000001e23",
    "1e-5",
    "1E+5",
    "0.30000000000000004",
    "5e-324",
    "3e-324",
    "2e-324",
    "179769313486231570814527423731704356798070567525844996598917476803157260780028538760589558632766878e210",
    "10000000000000000000000",
    "1.00000005960464477539062500",
    "18446744073709551616",
    /* 1 + 2^-53, a halfway point, and values just beside it: decided long after the 19th digit */
    "1.00000000000000011102230246251565404236316680908203125",
    "1.00000000000000011102230246251565404236316680908203124",
    "1.00000000000000011102230246251565404236316680908203126",
    "1.0000000000000001110223024625156540423631668090820312500000000000000000000000000000000001e0",
    "-3.00000000000000022204460492503130808472633361816406251e-7",
    "1e+0000000000000000005",
};

static void check_reading(void)
{
    for (size_t i = 0; i < SES_LEN(texts); i++) {
        double got = 1, want = strtod(texts[i], NULL);
        CHECK_MSG(ses_parse_double(texts[i], strlen(texts[i]), &got) && got == want &&
                      signbit(got) == signbit(want),
                  "%s: %.17g, want %.17g", texts[i], got, want);
    }
    double x;
    CHECK(!ses_parse_double("1e309", 5, &x) && !ses_parse_double("-1e99999999999999999999", 23, &x));
    CHECK(!ses_parse_double("1.7976931348623159e308", 22, &x));
    CHECK(ses_parse_double("1e-99999999999999999999", 23, &x) && x == 0);
    /* A halfway point decided by a digit far to the right: 2^53 + 1 and a thousand zeros. */
    char text[1100];
    memset(text, '0', sizeof text);
    memcpy(text, "9007199254740993.", 17);
    CHECK(ses_parse_double(text, 1050, &x) && x == 9007199254740992.0);
    text[1049] = '1';
    CHECK(ses_parse_double(text, 1050, &x) && x == 9007199254740994.0);
    long bad = 0;
    for (uint64_t i = 0; i < 300000; i++) {
        char s[64];
        double y = of_bits(rand64(i)), z = 0;
        if (!isfinite(y)) continue;
        int n =
            snprintf(s, sizeof s, "%.*e", (int)(i % 25), y); /* 1 to 25 digits, mostly not exact doubles */
        y = strtod(s, NULL);
        bool fits = ses_parse_double(s, (size_t)n, &z);
        bad += isfinite(y) ? !fits || z != y : fits;
        n = snprintf(s, sizeof s, "%.17g", (double)(int64_t)rand64(i) * 1e-18);
        bad += !ses_parse_double(s, (size_t)n, &z) || z != strtod(s, NULL);
    }
    CHECK_MSG(!bad, "%ld", bad);
}

/* ---- writing ---- */

typedef struct write_case {
    double x;
    const char *want;
} write_case;

static const write_case writes[] = {
    { 0, "0.0" },
    { -0.0, "-0.0" },
    { 1, "1.0" },
    { -1.5, "-1.5" },
    { 0.1, "0.1" },
    { 1e-12, "1e-12" },
    { 0.02, "0.02" },
    { 0.0001, "0.0001" },
    { 0.00001, "1e-05" },
    { 1e15, "1000000000000000.0" },
    { 1e16, "1e+16" },
    { 123456789012345680., "1.2345678901234568e+17" },
    { 5e-324, "5e-324" },
    { 1.7976931348623157e308, "1.7976931348623157e+308" },
    { 2.2250738585072014e-308, "2.2250738585072014e-308" },
    { 1. / 3, "0.3333333333333333" },
    { 100, "100.0" },
    { 9007199254740993., "9007199254740992.0" },
    { 1e23, "1e+23" },
    { 9.5367431640625e-07, "9.5367431640625e-07" },
    { 1e100, "1e+100" },
    { 2e-44, "2e-44" },
};

/* No shorter text reads back, and none of this length is closer than the result of %.*e. */
static bool is_shortest(const char *s, double x, bool single)
{
    char e[64];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(e, sizeof e, "%.*e", digits - 1, x);
        if (single ? strtof(e, NULL) == (float)x : strtod(e, NULL) == x) {
            int n = 0; /* digits of s, without leading and trailing zeros */
            char raw[64];
            for (const char *p = s; *p && *p != 'e'; p++)
                if (*p >= '0' && *p <= '9' && (n || *p != '0')) raw[n++] = *p;
            while (n > 1 && raw[n - 1] == '0') n--;
            return n <= digits; /* %.*e may miss a shorter text that is not the closest one */
        }
    }
    return false;
}

static void check_writing(void)
{
    char s[SES_NUMBER_CHARS];
    for (size_t i = 0; i < SES_LEN(writes); i++) {
        size_t n = ses_format_double(writes[i].x, s);
        CHECK_STR(s, writes[i].want);
        CHECK(n == strlen(s));
    }
    ses_format_float(0.1f, s);
    CHECK_STR(s, "0.1");
    ses_format_float(16777216.f, s);
    CHECK_STR(s, "16777216.0");
    ses_format_float(1e-45f, s);
    CHECK_STR(s, "1e-45");
    ses_format_float(3.4028235e38f, s);
    CHECK_STR(s, "3.4028235e+38");
    double y = 0;
    size_t len = ses_format_float(0x1.5c87fap-84f, s);
    CHECK(ses_parse_double(s, len, &y) && (float)y == 0x1.5c87fap-84f);
    long bad = 0, long_text = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t bits =
            i % 3 ? rand64(i) : rand64(i) & ~(uint64_t)0xFFFFFFFFFFFFF; /* including powers of 2 */
        double x = of_bits(bits);
        if (!isfinite(x)) continue;
        size_t n = ses_format_double(x, s);
        bad += !ses_parse_double(s, n, &y) || y != x || strtod(s, NULL) != x || n >= SES_NUMBER_CHARS;
        if (i % 8 == 0 && x != 0) long_text += !is_shortest(s, x, false);
        uint32_t u = (uint32_t)(i % 3 == 0 ? rand64(i) & ~(uint64_t)0x7FFFFF : rand64(i));
        float f;
        memcpy(&f, &u, sizeof f);
        if (!isfinite(f)) continue;
        n = ses_format_float(f, s);
        bad += !ses_parse_double(s, n, &y) || (float)y != f || strtof(s, NULL) != f;
        if (i % 8 == 0 && f != 0) long_text += !is_shortest(s, f, true);
    }
    CHECK_MSG(!bad, "%ld", bad);
    CHECK_MSG(!long_text, "%ld", long_text);
}

/* A locale with a decimal comma changes nothing. */
static void check_locale(void)
{
    static const char *const comma[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8" };
    const char *set = NULL;
    for (size_t i = 0; i < SES_LEN(comma) && !set; i++) set = setlocale(LC_NUMERIC, comma[i]);
    if (!set) {
        SKIP("no locale with a decimal comma is installed");
        return;
    }
    double x = 0;
    char s[SES_NUMBER_CHARS];
    CHECK(ses_parse_double("9007199254740993.5", 18, &x) && x == 9007199254740994.0);
    ses_format_double(1.5, s);
    CHECK_STR(s, "1.5");
    setlocale(LC_NUMERIC, "C");
}

static void check_syntax(void)
{
    static const char *const good[] = { "0", "-1", "007", "2.50", "-0.5e+3", "1E-2", "3e5" };
    static const char *const bad[] = { "",   "-",  "+1",  ".5",  "1.",  "1e",    "1e+", "e5", "1.e5",
                                       "1 ", " 1", "0x1", "nan", "inf", "1e999", "--1", "1,5" };
    double x = 0;
    for (size_t i = 0; i < SES_LEN(good); i++)
        CHECK_MSG(ses_parse_number(good[i], strlen(good[i]), &x) && x == strtod(good[i], NULL), "%s",
                  good[i]);
    for (size_t i = 0; i < SES_LEN(bad); i++)
        CHECK_MSG(!ses_parse_number(bad[i], strlen(bad[i]), &x), "%s", bad[i]);
    CHECK(ses_parse_number("12345", 2, &x) && x == 12);
}

int main(void)
{
    check_table();
    check_syntax();
    check_reading();
    check_writing();
    check_locale();
    return check_report();
}
