/* src/base/unicode: properties by example; normalization against NormalizationTest.txt and its invariants. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "check.h"

#include <time.h>

static void test_properties(void)
{
    size_t spaces = 0, cjk = 0, numeric = 0, letters = 0, words = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        spaces += ses_cp_is(cp, SES_CP_SPACE);
        cjk += ses_cp_is(cp, SES_CP_CJK);
        numeric += ses_cp_is(cp, SES_CP_NUMERIC);
        letters += ses_gc_in(cp, SES_GCS_L);
        words += ses_cp_is(cp, SES_CP_OWORD);
    }
    CHECK(spaces == 25);
    CHECK(cjk == 81264);
    CHECK(numeric == 1924);
    CHECK(letters == 141028);
    CHECK(words == 144671);

    CHECK(ses_cp_is(0x85, SES_CP_SPACE) && ses_cp_is(0x3000, SES_CP_SPACE) &&
          !ses_cp_is(0x200B, SES_CP_SPACE));
    CHECK(ses_cp_is(0, SES_CP_OTHER8) && ses_cp_is(0x200D, SES_CP_OTHER8) &&
          ses_cp_is(0xE000, SES_CP_OTHER8));
    CHECK(!ses_cp_is('\t', SES_CP_OTHER8) &&
          !ses_cp_is(0x378, SES_CP_OTHER8)); /* an unassigned character is unchanged */
    CHECK(!ses_cp_is(0x8E2, SES_CP_OTHER8)); /* a format character since Unicode 9 */
    CHECK(ses_cp_is(0x301, SES_CP_MN8) && !ses_cp_is(0x903, SES_CP_MN8) && !ses_cp_is(0x1AC0, SES_CP_MN8));
    CHECK(ses_cp_is(0x903, SES_CP_MARK9) && ses_cp_is(0x8D4, SES_CP_MARK9) &&
          !ses_cp_is(0x1ABF, SES_CP_MARK9));
    CHECK(ses_cp_is('$', SES_CP_PUNCT8) && ses_cp_is(0x3002, SES_CP_PUNCT8) &&
          !ses_cp_is(0x20AC, SES_CP_PUNCT8));
    CHECK(ses_cp_is(0x4E00, SES_CP_CJK) && !ses_cp_is(0x2B820, SES_CP_CJK) && ses_cp_is(0x2B920, SES_CP_CJK));
    CHECK(ses_cp_is(0xB2, SES_CP_OWORD) && !ses_cp_is(0xB2, SES_CP_WORD) && ses_cp_is(0x200C, SES_CP_WORD));
    CHECK(ses_cp(0x1C89)->gc == SES_GC_LU && ses_cp(0x378)->gc == SES_GC_CN &&
          ses_cp(0x10FFFF)->gc == SES_GC_CN);
    CHECK(ses_cp(0x345)->ccc == 240 && ses_cp('a')->ccc == 0 && ses_cp(0x1E4EC)->ccc == 232);
}

static void test_lower(void)
{
    uint32_t out[2];
    size_t changed = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) changed += ses_cp_lower(cp, out) != 1 || out[0] != cp;
    CHECK(changed == 1488);
    CHECK(ses_cp_lower('A', out) == 1 && out[0] == 'a');
    CHECK(ses_cp_lower(0x130, out) == 2 && out[0] == 'i' && out[1] == 0x307);
    CHECK(ses_cp_lower(0x3A3, out) == 1 && out[0] == 0x3C3); /* never the final sigma */
    CHECK(ses_cp_lower(0x1E9E, out) == 1 && out[0] == 0xDF);
    CHECK(ses_cp_lower(0x10400, out) == 1 && out[0] == 0x10428);
    CHECK(ses_cp_lower(0xA7CB, out) == 1 && out[0] == 0x264); /* Unicode 16 */
}

/* Normalizes a text segment by segment, as the normalizers do. */
static bool normalize(ses_nf form, const char *p, size_t n, ses_buf *out)
{
    out->len = 0;
    ses_changes changes = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < n;) {
        size_t k = ses_nf_normalized_prefix(form, p + i, n - i);
        if (k) {
            ses_buf_append(out, p + i, k);
        } else {
            k = ses_nf_segment(form, p + i, n - i);
            changes.n = 0;
            ok = k && ses_nf_normalize(form, p + i, k, &changes, NULL);
            for (size_t j = 0; ok && j < changes.n; j++) {
                char bytes[4];
                ses_buf_append(out, bytes, ses_utf8_encode(changes.item[j].cp, bytes));
            }
        }
        i += k;
    }
    ses_changes_free(&changes);
    return ok && ses_buf_ok(out, NULL);
}

/* The same in one call: the segmentation must not matter. */
static bool normalize_whole(ses_nf form, const char *p, size_t n, ses_buf *out)
{
    out->len = 0;
    ses_changes changes = { 0 };
    bool ok = ses_nf_normalize(form, p, n, &changes, NULL);
    for (size_t j = 0; ok && j < changes.n; j++) {
        char bytes[4];
        ses_buf_append(out, bytes, ses_utf8_encode(changes.item[j].cp, bytes));
    }
    ses_changes_free(&changes);
    return ok && ses_buf_ok(out, NULL);
}

static bool same(const ses_buf *b, const char *want, size_t n)
{
    return b->len == n && (n == 0 || memcmp(b->data, want, n) == 0);
}

static void test_forms(void)
{
    static const struct {
        ses_nf form;
        const char *in, *out;
    } cases[] = {
        { SES_NFD, "\xC3\xA9", "e\xCC\x81" },                                /* e acute */
        { SES_NFC, "e\xCC\x81", "\xC3\xA9" },                                /* and back */
        { SES_NFC, "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81" }, /* Hangul L V T */
        { SES_NFD, "\xEA\xB0\x81", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8" },
        { SES_NFKC, "\xEF\xAC\x81\xC2\xBD",
          "fi1\xE2\x81\x84"
          "2" },                                                  /* ligature fi, one half */
        { SES_NFKD, "\xEF\xBC\xA1", "A" },                        /* full-width A */
        { SES_NFC, "\xE2\x84\xA6", "\xCE\xA9" },                  /* Ohm sign */
        { SES_NFD, "a\xCC\x81\xCC\xA3", "a\xCC\xA3\xCC\x81" },    /* marks in order of class */
        { SES_NFC, "\xCC\x81", "\xCC\x81" },                      /* a mark alone */
        { SES_NFC, "\xCD\x84", "\xCC\x88\xCC\x81" },              /* excluded from composition */
        { SES_NFKC, "\xE3\x8B\xBF", "\xE4\xBB\xA4\xE5\x92\x8C" }, /* square era name Reiwa, of 2019 */
        { SES_NFKC9, "\xE3\x8B\xBF", "\xE3\x8B\xBF" },            /* added after Unicode 9 */
        { SES_NFD9, "\xF0\x91\xA4\xB8", "\xF0\x91\xA4\xB8" },     /* its parts were added after Unicode 9 */
        { SES_NFC9, "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0", "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0" },
        { SES_NFC, "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0", "\xF0\x91\xA4\xB8" },
    };
    ses_buf b = { 0 };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        CHECK(normalize(cases[i].form, cases[i].in, strlen(cases[i].in), &b));
        CHECK_MSG(same(&b, cases[i].out, strlen(cases[i].out)), "case %zu", i);
    }
    CHECK(normalize(SES_NFC, "", 0, &b) && b.len == 0);
    ses_buf_free(&b);
}

/* Hexadecimal code points up to the semicolon; NULL after the last column. */
static const char *column(const char *line, ses_buf *out)
{
    out->len = 0;
    for (;;) {
        char *end;
        unsigned long cp = strtoul(line, &end, 16);
        if (end == line) return NULL;
        char bytes[4];
        ses_buf_append(out, bytes, ses_utf8_encode((uint32_t)cp, bytes));
        if (*end == ';') return end + 1;
        line = end;
    }
}

/* c2 == NFC(c1) == NFC(c2) == NFC(c3), c4 == NFC(c4) == NFC(c5); likewise NFD; NFKC and NFKD of all five. */
static size_t check_line(const char *line)
{
    ses_buf c[5] = { 0 }, got = { 0 };
    size_t bad = 0;
    const char *p = line;
    for (int i = 0; i < 5 && p; i++) p = column(p, &c[i]);
    for (int i = 0; i < 5 && p; i++) {
        const ses_buf *want[4] = { &c[i < 3 ? 1 : 3], &c[i < 3 ? 2 : 4], &c[3], &c[4] };
        for (int form = SES_NFC; form <= (int)SES_NFKD; form++) {
            bad += !normalize((ses_nf)form, c[i].data, c[i].len, &got) ||
                   !same(&got, want[form]->data, want[form]->len);
            bad += !normalize_whole((ses_nf)form, c[i].data, c[i].len, &got) ||
                   !same(&got, want[form]->data, want[form]->len);
        }
    }
    if (!p) bad++;
    for (int i = 0; i < 5; i++) ses_buf_free(&c[i]);
    ses_buf_free(&got);
    return bad;
}

static void test_normalization_file(void)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/vocab/unicode/NormalizationTest.txt", check_shared());
    FILE *f = fopen(path, "r");
    if (!f) {
        SKIP("no NormalizationTest.txt");
        return;
    }
    size_t lines = 0, bad = 0;
    while (fgets(line, sizeof line, f)) {
        if (!strchr("0123456789ABCDEF", line[0])) continue;
        size_t wrong = check_line(line);
        if (wrong && !bad) printf("first wrong: %s", line);
        bad += wrong;
        lines++;
    }
    fclose(f);
    CHECK(lines > 10000);
    CHECK_MSG(bad == 0, "%zu wrong", bad);
}

/* Grapheme clusters of a literal, as lengths in characters. */
static const char *clusters(const char *text)
{
    static char out[64];
    size_t n = strlen(text), at = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = ses_grapheme_len(text + i, n - i);
        size_t points = 0;
        for (size_t j = 0; j < k; j++) points += (text[i + j] & 0xC0) != 0x80;
        at += (size_t)snprintf(out + at, sizeof out - at, "%zu ", points);
        if (!k) return "stuck";
    }
    out[at ? at - 1 : 0] = 0;
    return out;
}

static void test_graphemes(void)
{
    CHECK(ses_grapheme_len("", 0) == 0);
    CHECK_STR(clusters("ab"), "1 1");
    CHECK_STR(clusters("a\xCC\x81\xCC\x81z"), "3 1");
    CHECK_STR(clusters("\r\n\n"), "2 1");
    CHECK_STR(clusters("\n\xCC\x81"), "1 1"); /* a control character is always a cluster */
    CHECK_STR(clusters("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8\xE1\x84\x80"), "3 1"); /* Hangul L V T, L */
    CHECK_STR(clusters("\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\xF0\x9F\x87\xAB"), "2 1"); /* flags in pairs */
    CHECK_STR(clusters("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"), "3");       /* woman ZWJ girl */
    CHECK_STR(clusters("a\xE2\x80\x8D\xF0\x9F\x91\xA7"), "2 1");
    CHECK_STR(clusters("\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA4\xA4"), "3 1"); /* Devanagari conjunct */
    CHECK_STR(clusters("\xD8\x80"
                       "a"),
              "2"); /* Arabic number sign */
}

/* Lines of GraphemeBreakTest.txt: a division sign is a cluster boundary, a multiplication sign is not. */
static void test_grapheme_file(void)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/vocab/unicode/GraphemeBreakTest.txt", check_shared());
    FILE *f = fopen(path, "r");
    if (!f) {
        SKIP("no GraphemeBreakTest.txt");
        return;
    }
    size_t lines = 0, bad = 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "\xC3\xB7 ", 3) != 0) continue;
        if (strstr(line, "2701 \xC3\x97 200D \xC3\x97 2701"))
            continue; /* not a pictograph since Unicode 17 */
        char text[256];
        size_t n = 0, end_at[64], n_ends = 0;
        for (char *p = line + 3, *last = strchr(line, '\t'); last && p < last;) {
            char *end;
            n += ses_utf8_encode((uint32_t)strtoul(p, &end, 16), text + n);
            p = end + 1;
            if (!strncmp(p, "\xC3\xB7", 2)) end_at[n_ends++] = n;
            p += 3;
        }
        size_t at = 0, i = 0;
        while (at < n && i < n_ends && (at += ses_grapheme_len(text + at, n - at)) == end_at[i]) i++;
        bool right = i == n_ends && at == n;
        if (!right) printf("%s", line);
        bad += !right;
        lines++;
    }
    fclose(f);
    CHECK(lines > 500);
    CHECK_MSG(bad == 0, "%zu wrong", bad);
}

static void test_scripts(void)
{
    CHECK(ses_cp_script('a') == ses_cp_script(0x1E00) && ses_cp_script('a') != ses_cp_script(0x431));
    CHECK(ses_cp_script(0x3042) == ses_cp_script(0x4E00) && ses_cp_script(0x30A2) == ses_cp_script(0x4E00));
    CHECK(ses_cp_script(0x378) == 0 && ses_cp_script(0x1F6D5) == 0 &&
          ses_cp_script('1') == ses_cp_script('!'));
}

static uint32_t random_next(uint32_t *state) { return *state = *state * 1664525u + 1013904223u, *state >> 8; }

/* Marks, jamo and letters with many compositions, so that random text exercises normalization. */
static size_t random_text(uint32_t *state, char *out, size_t points)
{
    static const uint32_t base[] = { 0x300,  0x1100, 0x1160, 0x11A8, 0xAC00, 0x41,  0xC0,
                                     0x1E00, 0xF70,  0x0,    0xFB00, 0x3040, 0xFF60 };
    size_t n = 0;
    for (size_t i = 0; i < points; i++) {
        uint32_t cp = base[random_next(state) % SES_LEN(base)] + random_next(state) % 64;
        if (random_next(state) % 8 == 0) cp = random_next(state) % 0x110000;
        n += ses_utf8_encode(cp, out + n); /* writes nothing for a surrogate */
    }
    return n;
}

/* Normalization is idempotent, independent of the segmentation, and NFC(NFD) = NFC. */
static void test_laws(void)
{
    uint32_t state = 7;
    size_t bad = 0;
    ses_buf a = { 0 }, b = { 0 };
    for (int round = 0; round < 20000; round++) {
        char text[64 * 4];
        size_t n = random_text(&state, text, random_next(&state) % 64);
        for (int form = SES_NFC; form < (int)SES_NF_COUNT; form++) {
            bad += !normalize((ses_nf)form, text, n, &a) || !normalize_whole((ses_nf)form, text, n, &b) ||
                   !same(&a, b.data, b.len);
            bad += !normalize((ses_nf)form, b.data, b.len, &a) || !same(&a, b.data, b.len);
            if (form & 1) {
                bad += !normalize((ses_nf)(form - 1), b.data, b.len, &a) ||
                       !normalize((ses_nf)(form - 1), text, n, &b) || !same(&a, b.data, b.len);
            }
        }
    }
    CHECK_MSG(bad == 0, "%zu wrong", bad);
    ses_buf_free(&a);
    ses_buf_free(&b);
}

/* The alignment covers the source: change 0 consumes one character, -n consumes n more. */
static void test_changes_add_up(void)
{
    uint32_t state = 11;
    size_t bad = 0;
    ses_changes c = { 0 };
    for (int round = 0; round < 20000; round++) {
        char text[64 * 4];
        size_t n = random_text(&state, text, random_next(&state) % 64), points = 0;
        for (size_t i = 0; i < n; i++) points += (text[i] & 0xC0) != 0x80;
        for (int form = SES_NFC; form < (int)SES_NF_COUNT; form++) {
            c.n = 0;
            bad += !ses_nf_normalize((ses_nf)form, text, n, &c, NULL);
            size_t taken = 0;
            for (size_t i = 0; i < c.n; i++)
                if (c.item[i].change <= 0) taken += 1 + (size_t)-c.item[i].change;
            bad += taken != points;
        }
    }
    CHECK_MSG(bad == 0, "%zu wrong", bad);
    ses_changes_free(&c);
}

/* 10 MB of marks: a quadratic sort would not terminate in reasonable time. */
static void test_long(void)
{
    static const char *const unit[] = { "\xCC\x81\xCC\xA3", "\xCC\xA3", "\xE1\x84\x80",
                                        "\xCC\x81\xCC\xA3\xCD\x85\xCC\xB4", "\xCD\x84" };
    const size_t n = 10 << 20;
    char *text = ses_alloc(n, NULL);
    ses_buf out = { 0 };
    for (size_t u = 0; u < SES_LEN(unit); u++) {
        size_t k = strlen(unit[u]), len = n / k * k;
        for (size_t i = 0; i < len; i++) text[i] = unit[u][i % k];
        for (int form = SES_NFC; form <= (int)SES_NFKD; form++) {
            clock_t t = clock();
            CHECK(normalize((ses_nf)form, text, len, &out));
            double s = (double)(clock() - t) / CLOCKS_PER_SEC;
            CHECK_MSG(s < 60, "form %d of unit %zu took %.2f s", form, u, s);
        }
    }
    ses_free(text);
    ses_buf_free(&out);
}

int main(void)
{
    test_properties();
    test_lower();
    test_forms();
    test_normalization_file();
    test_graphemes();
    test_grapheme_file();
    test_scripts();
    test_laws();
    test_changes_add_up();
    test_long();
    return check_report();
}
