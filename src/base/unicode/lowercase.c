/* Lower case of UTF-8 text, as Python's str.lower. */
#include "lowercase.h"

#include "unicode.h"
#include "utf8.h"

size_t ses_char_at(const char *s, size_t n, uint32_t *cp)
{
    size_t k = ses_utf8_decode(s, n, cp);
    if (k || !n) return k;
    *cp = 0x110000u + (unsigned char)*s;
    return 1;
}

/* Approximates Unicode's Cased and Case_Ignorable; only the rule for a final sigma needs them. */
static bool is_cased(uint32_t cp)
{
    return cp < 0x110000 && ses_gc_in(cp, 1u << SES_GC_LU | 1u << SES_GC_LL | 1u << SES_GC_LT);
}
static bool is_ignorable(uint32_t cp)
{
    if (cp >= 0x110000) return false;
    if (cp == '\'' || cp == '.' || cp == ':' || cp == 0xB7 || cp == 0x2019) return true;
    return ses_gc_in(cp,
                     1u << SES_GC_MN | 1u << SES_GC_ME | 1u << SES_GC_CF | 1u << SES_GC_LM | 1u << SES_GC_SK);
}

static bool cased_follows(const char *s, size_t n)
{
    uint32_t cp = 0;
    for (size_t i = 0; i < n;) {
        i += ses_char_at(s + i, n - i, &cp);
        if (!is_ignorable(cp)) return is_cased(cp);
    }
    return false;
}

bool ses_lower_append(ses_buf *out, const char *s, size_t n)
{
    bool after_cased = false;
    for (size_t i = 0; i < n;) {
        uint32_t cp, low[2];
        size_t k = ses_char_at(s + i, n - i, &cp), m = 1;
        char utf8[8];
        if (cp >= 0x110000)
            utf8[0] = s[i];
        else if (cp == 0x3A3 && after_cased && !cased_follows(s + i + k, n - i - k))
            m = ses_utf8_encode(0x3C2, utf8);
        else {
            size_t c = ses_cp_lower(cp, low);
            m = ses_utf8_encode(low[0], utf8);
            if (c > 1) m += ses_utf8_encode(low[1], utf8 + m);
        }
        if (!ses_buf_append(out, utf8, m)) return false;
        if (!is_ignorable(cp)) after_cased = is_cased(cp);
        i += k;
    }
    return true;
}
