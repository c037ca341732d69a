/* Rows of JSON: an object per line, or an array of objects. */
#include "records_impl.h"

#include "base/alloc.h"
#include "base/number.h"
#include "table_text.h"

#include <inttypes.h>
#include <string.h>

static bool put_json(ses_records *r, const ses_json *v, int depth, ses_err *e)
{
    char text[SES_NUMBER_CHARS];
    bool yes = false;
    int64_t i = 0;
    uint64_t u = 0;
    double x = 0;
    size_t n = 0;
    ses_json_type t = ses_json_type_of(v);
    switch (t) {
    case SES_JSON_NULL: break;
    case SES_JSON_BOOL: ses_json_bool(v, &yes), ses_buf_puts(&r->bytes, yes ? "true" : "false"); break;
    case SES_JSON_INT: ses_json_int(v, &i), ses_buf_appendf(&r->bytes, "%" PRId64, i); break;
    case SES_JSON_UINT: ses_json_uint(v, &u), ses_buf_appendf(&r->bytes, "%" PRIu64, u); break;
    case SES_JSON_REAL:
        ses_json_real(v, &x);
        n = ses_format_double(x, text);
        ses_buf_append(&r->bytes, text, n);
        break;
    case SES_JSON_STRING: {
        const char *s = ses_json_string(v, &n);
        if (memchr(s, 0, n + 1) != s + n) return ses_fail(e, SES_EFORMAT, "NUL in a string");
        ses_buf_append(&r->bytes, s, n);
        break;
    }
    case SES_JSON_ARRAY:
        for (size_t k = 0; !depth && k < ses_json_len(v); k++) {
            if (k) ses_buf_put(&r->bytes, ',');
            if (!put_json(r, ses_json_at(v, k), 1, e)) return false;
        }
        if (!depth) break;
        return ses_fail(e, SES_EFORMAT, "nested array, expected strings or numbers");
    case SES_JSON_OBJECT:
        return ses_fail(e, SES_EFORMAT, "%s, expected a string or a number", ses_json_type_name(t));
    }
    return ses_buf_ok(&r->bytes, e);
}

static bool is_nested(const ses_json *v)
{
    if (ses_json_type_of(v) == SES_JSON_OBJECT) return true;
    for (size_t i = 0; ses_json_type_of(v) == SES_JSON_ARRAY && i < ses_json_len(v); i++)
        if (ses_json_type_of(ses_json_at(v, i)) >= SES_JSON_ARRAY) return true;
    return false;
}

static bool put_nested(ses_records *r, const ses_json *v, ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_json_put_value(w, v);
    const char *text = w ? ses_json_writer_text(w, &n, e) : NULL;
    if (text) ses_buf_append(&r->bytes, text, n);
    ses_json_writer_free(w);
    return text && ses_buf_ok(&r->bytes, e);
}

static bool fail_no_key(ses_records *r, const ses_json *root, const char *want, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t k = 0; k < ses_json_len(root) && list.len < 400; k++) {
        size_t n;
        const char *key = ses_json_key(root, k, &n);
        ses_buf_appendf(&list, "%s%s", k ? ", " : "", ses_quoted_of(key, n).s);
    }
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EARG, "no field \"%s\"; available: %s", ses_quoted_of(want, strlen(want)).s,
                 list.data ? list.data : "none");
    ses_buf_free(&list);
    return ses_records_at_line(r, e);
}

/* Resolves the columns; the default is all keys of the first object. */
static bool bind_keys(ses_records *r, const ses_json *root, ses_err *e)
{
    r->bound = true;
    r->all_keys = !r->want;
    if (!r->want) {
        r->want = ses_alloc_array(ses_json_len(root), sizeof *r->want, e);
        if (!r->want) return false;
        for (; r->n_want < ses_json_len(root); r->n_want++) {
            size_t n;
            const char *key = ses_json_key(root, r->n_want, &n);
            r->want[r->n_want] = ses_strndup(key, n, e);
            if (!r->want[r->n_want]) return false;
        }
    }
    r->n_out = r->n_want;
    r->out = ses_alloc_array(r->n_out, sizeof *r->out, e);
    return r->out != NULL;
}

static bool is_blank(const char *s, size_t n)
{
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
    return n == 0;
}

/* A key by its exact name, else the only one with this name in any case; NULL: none. */
static const ses_json *find_key(const ses_json *v, const char *name)
{
    const ses_json *found = ses_json_get(v, name);
    if (found || ses_json_type_of(v) != SES_JSON_OBJECT) return found;
    size_t n, matches = 0;
    for (size_t k = 0; k < ses_json_len(v); k++)
        if (ses_is_column_name(ses_json_key(v, k, &n), name) && !matches++) found = ses_json_at(v, k);
    return matches == 1 ? found : NULL;
}

/* Finds a key, or a path "a.b" through nested objects. */
static const ses_json *lookup(const ses_json *v, const char *name)
{
    const ses_json *found = find_key(v, name);
    while (!found && v) {
        char key[256];
        size_t n = strcspn(name, ".");
        if (n >= sizeof key) return NULL;
        memcpy(key, name, n);
        key[n] = 0;
        v = find_key(v, key);
        if (!name[n]) return v;
        name += n + 1;
    }
    return found;
}

/* ---- an array of objects ---- */

/* The next byte of the array that is not white space; 0: the end of the file. */
static bool next_sign(ses_records *r, char *sign, ses_err *e)
{
    for (;;) {
        while (r->n_rest && memchr(" \t\r", *r->rest, 3)) r->rest++, r->n_rest--;
        *sign = r->n_rest ? *r->rest : 0;
        if (r->n_rest) return true;
        r->rest_offset = ses_text_reader_offset(&r->lines);
        if (!ses_text_reader_next(&r->lines, &r->rest, &r->n_rest, e)) return false;
        if (!r->rest) return true;
    }
}

static bool fail_array(ses_records *r, const char *what, ses_err *e)
{
    r->line = r->lines.line;
    ses_fail(e, SES_EFORMAT, "%s", what);
    return ses_records_at_line(r, e);
}

/* Bytes of `rest` up to the end of the value that depth and quoted describe; *ended: it ends there. */
static size_t scan_value(const char *s, size_t n, size_t *depth, bool *quoted, bool *ended)
{
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (*quoted) {
            if (c == '\\')
                i += i + 1 < n;
            else if (c == '"')
                *quoted = false;
        } else if (c == '"') {
            *quoted = true;
        } else if (c == '{' || c == '[') {
            ++*depth;
        } else if (c == '}' || c == ']') {
            *ended = *depth < 2;
            if (*ended) return *depth ? i + 1 : i; /* without depth: the end of the array after a scalar */
            --*depth;
        } else if (c == ',' && !*depth) {
            return *ended = true, i;
        }
    }
    return n;
}

/* The text of the value that begins in `rest`, with blanks for line ends. */
static bool take_value(ses_records *r, ses_err *e)
{
    size_t depth = 0;
    bool quoted = false, ended = false;
    r->line = r->lines.line;
    r->offset = r->rest_offset;
    r->element.len = 0;
    for (;;) {
        size_t n = scan_value(r->rest, r->n_rest, &depth, &quoted, &ended);
        ses_buf_append(&r->element, r->rest, n);
        r->rest += n;
        r->n_rest -= n;
        if (ended) return ses_buf_ok(&r->element, e);
        ses_buf_put(&r->element, quoted ? '\n' : ' '); /* a line end in a string is an error of the parser */
        r->rest_offset = ses_text_reader_offset(&r->lines);
        if (r->element.len <= r->max_row && !ses_text_reader_next(&r->lines, &r->rest, &r->n_rest, e))
            return false;
        if (r->element.len > r->max_row)
            ses_fail(e, SES_EFORMAT, "the object does not end within %zu bytes", r->max_row);
        else if (!r->rest)
            ses_fail(e, SES_EFORMAT, "the object is never closed");
        else
            continue;
        return ses_records_at_line(r, e);
    }
}

/* The text of the next element; *s is NULL at the end of the array or of the range. */
static bool next_element(ses_records *r, const char **s, size_t *n, ses_err *e)
{
    char sign;
    *s = NULL;
    if (!next_sign(r, &sign, e)) return false;
    if (r->array_ended) return !sign || fail_array(r, "text after the array", e);
    bool comma = r->n_elements && sign == ',';
    if (comma) {
        r->rest++, r->n_rest--;
        if (!next_sign(r, &sign, e)) return false;
        if (sign == ']' || sign == ',') return fail_array(r, "expected an object after ','", e);
    }
    if (!sign) return fail_array(r, "the array that the file begins with is never closed", e);
    if (sign == ']') {
        r->rest++, r->n_rest--;
        r->array_ended = true;
        return next_element(r, s, n, e);
    }
    if (r->n_elements && !comma) return fail_array(r, "expected ',' or ']' after an object of the array", e);
    if (r->end && r->rest_offset >= r->end) return true;
    if (!take_value(r, e)) return false;
    r->n_elements++;
    *s = r->element.data ? r->element.data : "";
    *n = r->element.len;
    return true;
}

/* ---- rows ---- */

/* Reads the text of the next row; the first '[' of the file begins an array. */
static bool next_text(ses_records *r, const char **s, size_t *n, ses_err *e)
{
    if (r->array) return next_element(r, s, n, e);
    bool first = !r->lines.line;
    do
        if (!ses_records_next_start(r, s, n, e)) return false;
    while (*s && is_blank(*s, *n));
    size_t blank = 0;
    while (*s && blank < *n && ((*s)[blank] == ' ' || (*s)[blank] == '\t')) blank++;
    r->array = first && *s && (*s)[blank] == '[';
    if (!r->array) return true;
    r->rest = *s + blank + 1;
    r->n_rest = *n - blank - 1;
    r->rest_offset = r->offset;
    return next_element(r, s, n, e);
}

/* The fields of an object. */
static bool take_fields(ses_records *r, const ses_json *root, ses_err *e)
{
    r->bytes.len = r->n = 0;
    for (size_t k = 0; k < r->n_want; k++) {
        const ses_json *v = lookup(root, r->want[k]);
        size_t from = r->bytes.len;
        if (!v) return fail_no_key(r, root, r->want[k], e);
        bool as_json =
            (r->all_keys && is_nested(v)) || (r->keep_arrays && ses_json_type_of(v) == SES_JSON_ARRAY);
        if (!(as_json ? put_nested(r, v, e) : put_json(r, v, 0, e))) {
            ses_wrap(e, "field \"%s\"", ses_quoted_of(r->want[k], strlen(r->want[k])).s);
            return ses_records_at_line(r, e);
        }
        if (!ses_records_end_field(r, from, e)) return ses_records_at_line(r, e);
    }
    for (size_t k = 0; k < r->n; k++)
        r->out[k] = (ses_string){ r->bytes.data + r->field[k].begin, r->field[k].n };
    return true;
}

static bool take_row(ses_records *r, const char *s, size_t n, ses_err *e)
{
    ses_json_free(r->doc);
    r->doc = NULL;
    r->json_text = (ses_string){ s, n };
    if (!s) return true;
    r->row_failed = true; /* until the fields are known */
    r->doc = ses_json_parse_line(s, n, e);
    if (!r->doc) return ses_records_at_line(r, e);
    const ses_json *root = ses_json_root(r->doc);
    if (ses_json_type_of(root) != SES_JSON_OBJECT) {
        ses_fail(e, SES_EFORMAT, "%s, expected an object {...}", ses_json_type_name(ses_json_type_of(root)));
        return ses_records_at_line(r, e);
    }
    if ((!r->bound && !bind_keys(r, root, e)) || !take_fields(r, root, e)) return false;
    r->row_failed = false;
    return true;
}

bool ses_records_next_json(ses_records *r, bool *found, ses_err *e)
{
    const char *s = NULL;
    size_t n = 0;
    if (!next_text(r, &s, &n, e)) return false;
    *found = s != NULL;
    return take_row(r, s, n, e);
}

bool ses_records_begin_json(ses_records *r, ses_err *e)
{
    bool found;
    if (!ses_records_next_json(r, &found, e)) return false;
    if (!found)
        return ses_fail(e, SES_EFORMAT, r->array_ended ? "the array has no objects" : "the file is empty");
    return r->pending = true;
}

bool ses_records_pass_elements(ses_records *r, uint64_t to, ses_err *e)
{
    const char *s = NULL;
    size_t n = 0;
    do
        if (!next_element(r, &s, &n, e)) return false;
    while (s && r->offset < to);
    r->pending = s != NULL;
    return take_row(r, s, n, e);
}
