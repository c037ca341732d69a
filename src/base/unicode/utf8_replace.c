/* Replacement of invalid UTF-8. */
#include "utf8_replace.h"

#include "utf8.h"

/* Bytes of the longest prefix of a valid character at p: 1 to 3. p does not begin a valid character. */
static size_t maximal_subpart(const unsigned char *p, size_t n)
{
    unsigned char c = p[0], low = 0x80, high = 0xbf;
    size_t len = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 1;
    if (c == 0xe0) low = 0xa0;
    if (c == 0xed) high = 0x9f;
    if (c == 0xf0) low = 0x90;
    if (c == 0xf4) high = 0x8f;
    size_t i = 1;
    for (; i < len && i < n && p[i] >= low && p[i] <= high; i++) low = 0x80, high = 0xbf;
    return i;
}

size_t ses_utf8_next_subpart(const char *p, size_t n, bool *valid)
{
    uint32_t c;
    size_t step = ses_utf8_decode(p, n, &c);
    *valid = step > 0;
    return step ? step : maximal_subpart((const unsigned char *)p, n);
}

bool ses_utf8_replace_invalid(ses_buf *out, const char *p, size_t n)
{
    bool ok = true, valid;
    while (n && ok) {
        size_t step = ses_utf8_valid(p, n);
        if (step) {
            ok = ses_buf_append(out, p, step);
        } else {
            step = ses_utf8_next_subpart(p, n, &valid);
            ok = ses_buf_append(out, "\xef\xbf\xbd", 3);
        }
        p += step, n -= step;
    }
    return ok;
}
