/* Paths and host names in requests. */
#include "http_parser.h"

#include "base/str.h"
#include "base/unicode/utf8.h"

#include <string.h>

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool valid_port(const char *p, size_t n)
{
    unsigned port = 0;
    if (n < 1 || n > 5) return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') return false;
        port = port * 10 + (unsigned)(p[i] - '0');
    }
    return port <= 65535;
}

static size_t name_length(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (is_letter_or_digit(p[i]) || p[i] == '.' || p[i] == '-' || p[i] == '_')) i++;
    return i;
}

/* Characters of an IPv6 address. */
static size_t address_length(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (ses_hex_digit(p[i]) >= 0 || p[i] == ':' || p[i] == '.')) i++;
    return i;
}

bool ses_http_host_name(const char *p, size_t n, ses_string *name)
{
    bool is_address = n && p[0] == '[';
    size_t from = is_address, len = is_address ? address_length(p + 1, n - 1) : name_length(p, n);
    size_t end = from + len;
    if (!len || len > 255) return false;
    if (is_address && (end == n || p[end++] != ']')) return false;
    if (end < n && (p[end] != ':' || !valid_port(p + end + 1, n - end - 1))) return false;
    if (name) *name = (ses_string){ p + from, len };
    return true;
}

/* Percent-decodes p[0, n), which ses_http_head_parse has checked. */
static size_t decode(const char *p, size_t n, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '%') {
            c = (char)(ses_hex_digit(p[i + 1]) << 4 | ses_hex_digit(p[i + 2]));
            i += 2;
        }
        out[len++] = c;
    }
    return len;
}

/* Removes "." and ".." segments (RFC 3986, 5.2.4). SIZE_MAX: the path leaves the root. */
static size_t normalize(char *s, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n;) { /* a segment: "/" and the characters up to the next one */
        size_t end = i + 1;
        while (end < n && s[end] != '/') end++;
        bool one = end - i == 2 && s[i + 1] == '.', two = end - i == 3 && !memcmp(s + i + 1, "..", 2);
        if (two && len == 0) return SIZE_MAX;
        if (two)
            while (s[--len] != '/') {}
        if (!one && !two) {
            memmove(s + len, s + i, end - i);
            len += end - i;
        } else if (end == n)
            s[len++] = '/';
        i = end;
    }
    return len;
}

size_t ses_http_path_decode(const char *p, size_t n, char *out, const char **reason)
{
    if (n == 0) p = "/", n = 1;
    size_t len = decode(p, n, out);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
            return *reason = "control character in the path", SIZE_MAX;
    if (ses_utf8_valid(out, len) != len) return *reason = "the path is not UTF-8", SIZE_MAX;
    if (out[0] == '/') len = normalize(out, len);
    if (len == SIZE_MAX) return *reason = "the path leaves the root", SIZE_MAX;
    out[len] = 0;
    return len;
}
