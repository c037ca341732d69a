/* Reads a line of token ids: numbers, a JSON array, or an object of `sesame tokenize --json`. */
#include "token_ids.h"

#include "base/alloc.h"
#include "base/str.h"
#include "sesame/json.h"

#include <string.h>

#define SEPARATORS " \t\r,"

static bool add_id(ses_token_ids *t, int64_t id, ses_err *e)
{
    if (id < INT32_MIN || id > INT32_MAX)
        return ses_fail(e, SES_EARG, "id %lld is not in the vocabulary", (long long)id);
    if (!ses_array_reserve(&t->id, &t->cap, t->n + 1, sizeof *t->id, e)) return false;
    t->id[t->n++] = (int32_t)id;
    return true;
}

/* An array of ids, or an object of `sesame tokenize --json` with "ids". */
static bool read_array(ses_token_ids *t, const ses_json *v, ses_err *e)
{
    bool object = ses_json_type_of(v) == SES_JSON_OBJECT;
    if (object) v = ses_json_get(v, "ids");
    if (ses_json_type_of(v) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT,
                        object ? "no array \"ids\" in the object" : "expected an array of ids");
    for (size_t i = 0; i < ses_json_len(v); i++) {
        int64_t id;
        if (!ses_json_int(ses_json_at(v, i), &id))
            return ses_fail(e, SES_EFORMAT, "element %zu: expected an integer, found %s", i,
                            ses_json_type_name(ses_json_type_of(ses_json_at(v, i))));
        if (!add_id(t, id, e)) return false;
    }
    return true;
}

/* Reads "101 7592 102": decimal numbers separated by white space or commas. */
static bool read_plain(ses_token_ids *t, const char *line, size_t n, ses_err *e)
{
    const char *end = line + n;
    for (const char *p = line; p < end;) {
        if (memchr(SEPARATORS, *p, sizeof SEPARATORS - 1)) {
            p++;
            continue;
        }
        const char *word = p;
        int64_t id = 0;
        for (; p < end && *p >= '0' && *p <= '9'; p++) id = id > INT32_MAX ? id : id * 10 + (*p - '0');
        if (p < end && !memchr(SEPARATORS, *p, sizeof SEPARATORS - 1)) {
            while (p < end && !memchr(SEPARATORS, *p, sizeof SEPARATORS - 1)) p++;
            return ses_fail(e, SES_EFORMAT, "%s: expected ids such as 101 7592 102, or a JSON array of ids",
                            ses_quoted_of(word, (size_t)(p - word)).s);
        }
        if (!add_id(t, id, e)) return false;
    }
    return true;
}

bool ses_token_ids_read(ses_token_ids *t, const char *line, size_t n, ses_err *e)
{
    size_t at = 0;
    t->n = 0;
    while (at < n && memchr(SEPARATORS, line[at], sizeof SEPARATORS - 1)) at++;
    if (at == n || (line[at] != '[' && line[at] != '{')) return read_plain(t, line, n, e);
    ses_json_doc *doc = ses_json_parse_line(line, n, e);
    bool ok = doc && read_array(t, ses_json_root(doc), e);
    ses_json_free(doc);
    return ok;
}
