/* Counts the spaces at the start and end of a byte-level token. */
#include "trim_offsets.h"

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

static bool is_space(uint32_t c) { return c == 0x120 || ses_cp_is(c, SES_CP_SPACE); }

ses_space_margins ses_space_margins_of(const char *token, size_t n)
{
    ses_space_margins b = { 0 };
    uint32_t c;
    size_t k;
    for (size_t i = 0; i < n && (k = ses_utf8_decode(token + i, n - i, &c)) && is_space(c); i += k)
        b.front += b.front < UINT16_MAX;
    for (; n; n = k) {
        for (k = n - 1; k && ses_utf8_continues(token[k]);) k--;
        if (!ses_utf8_decode(token + k, n - k, &c) || !is_space(c)) break;
        b.back += b.back < UINT16_MAX;
    }
    return b;
}
