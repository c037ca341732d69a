/* API keys. */
#include "api_keys.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_FILE = 1 << 20, MIN_KEY = 8 };

struct ses_api_keys {
    char *text;
    ses_string *key;
    size_t n, capacity;
};

static bool add_line(ses_api_keys *k, const char *path, size_t line, ses_string s, ses_err *e)
{
    while (s.n && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == ' ')) s.n--;
    if (!s.n || *s.p == '#') return true;
    if (s.n < MIN_KEY)
        return ses_fail(e, SES_EFORMAT, "%s: line %zu: a key needs at least %d characters", path, line,
                        MIN_KEY);
    if (!ses_array_reserve(&k->key, &k->capacity, k->n + 1, sizeof *k->key, e)) return false;
    k->key[k->n++] = s;
    return true;
}

ses_api_keys *ses_api_keys_open(const char *path, ses_err *e)
{
    ses_api_keys *k = ses_alloc(sizeof *k, e);
    size_t size = 0, line = 1;
    if (!k) return NULL;
    k->text = ses_file_read(path, MAX_FILE, &size, e);
    bool ok = k->text != NULL;
    for (size_t at = 0; ok && at < size; line++) {
        const char *end = memchr(k->text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - (k->text + at)) : size - at;
        ok = add_line(k, path, line, (ses_string){ k->text + at, n }, e);
        at += n + 1;
    }
    if (ok && !k->n) ok = ses_fail(e, SES_EFORMAT, "%s: contains no key", path);
    if (ok) return k;
    ses_api_keys_free(k);
    return NULL;
}

void ses_api_keys_free(ses_api_keys *k)
{
    if (!k) return;
    ses_free(k->text);
    ses_free(k->key);
    ses_free(k);
}

static bool equal(ses_string a, ses_string b)
{
    unsigned char differs = a.n != b.n;
    for (size_t i = 0; i < a.n; i++) differs |= (unsigned char)(a.p[i] ^ (b.n ? b.p[i % b.n] : 0));
    return !differs;
}

bool ses_api_keys_check(const ses_api_keys *k, ses_string s)
{
    static const char scheme[] = "bearer ";
    size_t skip = sizeof scheme - 1;
    if (!s.p || s.n <= skip || strncasecmp(s.p, scheme, skip) != 0) return false;
    ses_string key = { s.p + skip, s.n - skip };
    bool found = false;
    for (size_t i = 0; i < k->n; i++) found |= equal(k->key[i], key);
    return found;
}
