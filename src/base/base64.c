/* Base64 encoding and strict decoding. */
#include "base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ses_base64_encode(const void *bytes, size_t n, char *out)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t bits =
            (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (have > 2 ? p[i + 2] : 0);
        for (size_t j = 0; j < 4; j++) *out++ = j <= have ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool ses_base64_decode(const char *text, size_t n, void *out, size_t *bytes, ses_err *e)
{
    unsigned char *p = out;
    size_t got = 0;
    if (n % 4) return ses_fail(e, SES_EFORMAT, "base64 of %zu characters, expected a multiple of 4", n);
    for (size_t i = 0; i < n; i += 4) {
        size_t pad = i + 4 < n || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
        uint32_t bits = 0;
        for (size_t j = 0; j < 4; j++) {
            int d = j + pad < 4 ? value_of(text[i + j]) : 0;
            if (d < 0) return ses_fail(e, SES_EFORMAT, "invalid base64 at character %zu", i + j);
            bits = bits << 6 | (uint32_t)d;
        }
        if (bits & ((1u << 8 * pad) - 1)) return ses_fail(e, SES_EFORMAT, "stray bits in base64");
        for (size_t j = 0; j + pad < 3; j++) p[got++] = (unsigned char)(bits >> (16 - 8 * j));
    }
    *bytes = got;
    return true;
}
