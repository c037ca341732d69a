/* Reader of JSON lines: see json_lines.h. */
#include "json_lines.h"

#include "base/json/json_helpers.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LINE = 1 << 26 };

bool ses_json_lines_open(ses_json_lines *l, const char *path, ses_err *e)
{
    return ses_text_reader_open(&l->text, path, MAX_LINE, e);
}

void ses_json_lines_from_text(ses_json_lines *l, const char *text, size_t n)
{
    ses_text_reader_from_text(&l->text, text, n, MAX_LINE);
}

void ses_json_lines_free(ses_json_lines *l)
{
    ses_json_free(l->doc);
    ses_text_reader_free(&l->text);
    *l = (ses_json_lines){ 0 };
}

bool ses_json_lines_wrap(const ses_json_lines *l, ses_err *e)
{
    return ses_wrap(e, "line %" PRIu64, l->text.line);
}

static bool is_blank(const char *s, size_t n)
{
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r')) n--;
    return !n;
}

bool ses_json_lines_next(ses_json_lines *l, const ses_json **object, ses_err *e)
{
    const char *s;
    size_t n = 0;
    *object = NULL;
    do
        if (!ses_text_reader_next(&l->text, &s, &n, e)) return false; /* names the line itself */
    while (s && is_blank(s, n));
    ses_json_free(l->doc);
    l->doc = NULL;
    if (!s) return true;
    l->doc = ses_json_parse_line(s, n, e);
    if (!l->doc) return ses_json_lines_wrap(l, e);
    *object = ses_json_root(l->doc);
    if (ses_json_type_of(*object) == SES_JSON_OBJECT) return true;
    ses_fail(e, SES_EFORMAT, "%s, expected an object {...}", ses_json_type_name(ses_json_type_of(*object)));
    return ses_json_lines_wrap(l, e);
}

bool ses_json_lines_string(const ses_json *object, const char *key, ses_string *out, ses_err *e)
{
    const ses_json *v = ses_json_get(object, key);
    *out = (ses_string){ 0 };
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return true;
    out->p = ses_json_string(v, &out->n);
    if (!out->p) return ses_json_wrong_type(key, v, "a string", e);
    return strlen(out->p) == out->n || ses_fail(e, SES_EFORMAT, "key \"%s\" contains a NUL", key);
}
