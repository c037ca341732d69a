/* Documents of an evaluation: see eval_docs.h. */
#include "eval_docs.h"

#include "base/alloc.h"
#include "io/json_lines.h"
#include "sesame/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 1 << 26, MAX_FILE = 1 << 30 };

void ses_docs_free(ses_docs *d)
{
    if (!d) return;
    for (size_t i = 0; i < d->n; i++) ses_json_free(d->doc[i].owner);
    ses_free(d->doc), ses_free(d->path);
    ses_arena_free(&d->mem);
    ses_free(d);
}

bool ses_docs_wrap(const ses_docs *d, size_t i, ses_err *e)
{
    return ses_wrap(e, "%s: line %" PRIu64, d->path, d->doc[i].line);
}

static bool copy(ses_docs *d, ses_string s, ses_string *out, ses_err *e)
{
    *out = (ses_string){ ses_arena_strndup(&d->mem, s.p, s.n, e), s.n };
    return out->p != NULL;
}

/* A new document with `columns` empty fields; NULL: out of memory. */
static ses_string *add_doc(ses_docs *d, size_t columns, uint64_t line, ses_err *e)
{
    if (!ses_array_reserve(&d->doc, &d->cap, d->n + 1, sizeof *d->doc, e)) return NULL;
    ses_string *field = ses_arena_array(&d->mem, columns + 1, sizeof *field, e);
    if (field) d->doc[d->n++] = (ses_eval_doc){ .field = field, .line = line };
    return field;
}

static bool is_full(const ses_docs *d, size_t limit) { return limit && d->n >= limit; }

/* ---- tables ---- */

/* Names of the columns: the given names, the names of the header, else numbers. */
static bool name_columns(ses_docs *d, const ses_records *r, const ses_docs_options *o, ses_err *e)
{
    d->n_columns = ses_records_field_count(r);
    if (o->n_columns && o->n_columns != d->n_columns)
        return ses_fail(e, SES_EFORMAT, "rows have %zu columns, but the task file names %zu (dataset_kwargs)",
                        d->n_columns, o->n_columns);
    d->column = ses_arena_array(&d->mem, d->n_columns + 1, sizeof *d->column, e);
    for (size_t i = 0; d->column && i < d->n_columns; i++) {
        char number[24];
        const char *name = o->no_header ? NULL : ses_records_column_name(r, i);
        snprintf(number, sizeof number, "%zu", i + 1);
        ses_string s = o->n_columns ? o->columns[i] : ses_str(name ? name : number);
        if (!copy(d, s, &d->column[i], e)) return false;
    }
    return d->column != NULL;
}

static bool read_table(ses_docs *d, const ses_docs_options *o, size_t limit, ses_err *e)
{
    static const ses_table_format format[] = { SES_TABLE_AUTO, SES_TABLE_TSV, SES_TABLE_CSV };
    ses_records_options want = { .format = format[o->format],
                                 .no_header = o->no_header,
                                 .quotes = (ses_quotes)o->quotes };
    const ses_string *row = NULL;
    ses_records *r = ses_records_open(d->path, &want, e);
    if (!r) return false;
    bool ok = true;
    while (ok && !is_full(d, limit) && (ok = ses_records_next(r, &row, e) || ses_wrap(e, "%s", d->path)) &&
           row) {
        if (!d->column) ok = name_columns(d, r, o, e) || ses_wrap(e, "%s", d->path);
        ses_string *field = ok ? add_doc(d, d->n_columns, ses_records_line(r), e) : NULL;
        ok = field != NULL;
        for (size_t i = 0; ok && i < d->n_columns; i++) ok = copy(d, row[i], &field[i], e);
    }
    ses_records_free(r);
    return ok;
}

/* ---- JSON lines ---- */

static bool read_json(ses_docs *d, size_t limit, ses_err *e)
{
    ses_json_lines l = { 0 };
    const ses_json *object = NULL;
    bool ok = ses_json_lines_open(&l, d->path, e) || ses_wrap(e, "%s", d->path);
    while (ok && !is_full(d, limit) &&
           (ok = ses_json_lines_next(&l, &object, e) || ses_wrap(e, "%s", d->path)) && object) {
        ok = add_doc(d, 0, l.text.line, e) != NULL;
        if (ok) d->doc[d->n - 1].json = object, d->doc[d->n - 1].owner = l.doc, l.doc = NULL;
    }
    ses_json_lines_free(&l);
    return ok;
}

/* ---- texts ---- */

/* A line " = Title = ", the heading of an article of WikiText. */
static bool is_heading(const char *s, size_t n)
{
    ses_string t = ses_trim((ses_string){ s, n });
    return t.n > 4 && !memcmp(t.p, "= ", 2) && !memcmp(t.p + t.n - 2, " =", 2) && t.p[2] != '=' &&
           t.p[t.n - 3] != '=';
}

static bool add_text(ses_docs *d, ses_buf *text, uint64_t line, ses_err *e)
{
    if (!ses_buf_ok(text, e)) return false;
    ses_string all = { text->len ? text->data : "", text->len };
    text->len = 0;
    if (!ses_trim(all).n) return true;
    ses_string *field = add_doc(d, 1, line, e);
    return field && copy(d, all, field, e);
}

static bool read_text(ses_docs *d, ses_docs_unit unit, size_t limit, ses_err *e)
{
    ses_text_reader l = { 0 };
    ses_buf text = { .limit = MAX_FILE };
    const char *s = NULL;
    size_t n = 0;
    uint64_t line = 1;
    d->n_columns = 1;
    d->column = ses_arena_array(&d->mem, 1, sizeof *d->column, e);
    if (!d->column) return false;
    d->column[0] = ses_str("text");
    bool ok = ses_text_reader_open(&l, d->path, MAX_LINE, e) || ses_wrap(e, "%s", d->path);
    while (ok && !is_full(d, limit) &&
           (ok = ses_text_reader_next(&l, &s, &n, e) || ses_wrap(e, "%s", d->path)) && s) {
        bool blank = ses_text_is_blank(s, n),
             ends = unit == SES_DOCS_LINES || (unit == SES_DOCS_PARAGRAPHS && blank);
        if (unit == SES_DOCS_ARTICLES && is_heading(s, n)) ends = true;
        if (ends && unit != SES_DOCS_LINES) ok = add_text(d, &text, line, e);
        if (!text.len) line = l.line;
        if (unit == SES_DOCS_PARAGRAPHS && blank) continue;
        if (text.len) ses_buf_put(&text, '\n');
        ses_buf_append(&text, s, n);
        if (unit == SES_DOCS_LINES) ok = ok && add_text(d, &text, l.line, e);
    }
    ok = ok && (is_full(d, limit) || add_text(d, &text, line, e));
    ses_buf_free(&text);
    ses_text_reader_free(&l);
    return ok;
}

ses_docs *ses_docs_open(const char *path, const ses_docs_options *o, size_t limit, ses_err *e)
{
    ses_docs *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    bool json = o->format == SES_DOCS_JSONL ||
                (o->format == SES_DOCS_AUTO && (ses_input_stream_has_suffix(path, ".jsonl") ||
                                                ses_input_stream_has_suffix(path, ".ndjson")));
    bool ok = (d->path = ses_strdup(path, e)) != NULL;
    if (ok && o->format == SES_DOCS_TEXT)
        ok = read_text(d, (ses_docs_unit)o->unit, limit, e);
    else if (ok)
        ok = json ? read_json(d, limit, e) : read_table(d, o, limit, e);
    if (ok && !d->n) ok = ses_fail(e, SES_EFORMAT, "%s: no documents", path);
    if (ok) return d;
    ses_docs_free(d);
    return NULL;
}

ses_docs *ses_docs_from_json(const ses_json *array, const char *name, ses_err *e)
{
    ses_docs *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    bool ok = (d->path = ses_strdup(name, e)) != NULL;
    for (size_t i = 0; ok && i < ses_json_len(array); i++) {
        ok = add_doc(d, 0, i + 1, e) != NULL;
        if (ok) d->doc[i].json = ses_json_at(array, i);
    }
    if (ok) return d;
    ses_docs_free(d);
    return NULL;
}

/* ---- values ---- */

/* Index of a column of a table; n_columns: none. */
static size_t find_column(const ses_docs *d, ses_string name)
{
    size_t number = 0;
    for (size_t i = 0; i < d->n_columns; i++)
        if (d->column[i].n == name.n && !memcmp(d->column[i].p, name.p, name.n)) return i;
    for (size_t i = 0; i < name.n && i < 6; i++) {
        if (name.p[i] < '0' || name.p[i] > '9') return d->n_columns;
        number = 10 * number + (size_t)(name.p[i] - '0');
    }
    return number && number <= d->n_columns ? number - 1 : d->n_columns;
}

bool ses_docs_check_column(const ses_docs *d, ses_string column, ses_err *e)
{
    if (!d->column || find_column(d, column) < d->n_columns) return true;
    ses_buf list = { 0 };
    for (size_t i = 0; i < d->n_columns; i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", ses_quoted_of(d->column[i].p, d->column[i].n).s);
    ses_fail(e, SES_EFORMAT, "{%s}: %s has no such column; its columns are %s",
             ses_quoted_of(column.p, column.n).s, d->path, list.len ? list.data : "none");
    ses_buf_free(&list);
    return false;
}

bool ses_json_scalar_append(const ses_json *v, ses_buf *out)
{
    size_t n;
    int64_t i;
    double x;
    bool b;
    const char *s = ses_json_string(v, &n);
    if (s)
        ses_buf_append(out, s, n);
    else if (ses_json_int(v, &i))
        ses_buf_appendf(out, "%" PRId64, i);
    else if (ses_json_real(v, &x))
        ses_buf_appendf(out, "%.17g", x);
    else if (ses_json_bool(v, &b))
        ses_buf_puts(out, b ? "true" : "false");
    else
        return false;
    return true;
}

/* The value at a path a.b; NULL: absent. */
static const ses_json *find_value(const ses_json *v, ses_string path)
{
    for (size_t at = 0, len; v && at <= path.n; at += len + 1) {
        char key[128];
        const char *dot = memchr(path.p + at, '.', path.n - at);
        len = dot ? (size_t)(dot - path.p) - at : path.n - at;
        if (len >= sizeof key) return NULL;
        memcpy(key, path.p + at, len);
        key[len] = 0;
        v = ses_json_get(v, key);
    }
    return v;
}

static bool fail_absent(const ses_docs *d, size_t i, ses_string column, const char *expected, ses_err *e)
{
    ses_fail(e, SES_EFORMAT, "{%s}: expected %s in this key", ses_quoted_of(column.p, column.n).s, expected);
    return ses_docs_wrap(d, i, e);
}

bool ses_docs_value(const ses_docs *d, size_t i, ses_string column, ses_buf *out, ses_err *e)
{
    if (d->doc[i].json) {
        const ses_json *v = find_value(d->doc[i].json, column);
        return ses_json_scalar_append(v, out) || fail_absent(d, i, column, "a string or a number", e);
    }
    size_t at = find_column(d, column);
    if (at == d->n_columns) return ses_docs_check_column(d, column, e);
    ses_buf_append(out, d->doc[i].field[at].p, d->doc[i].field[at].n);
    return true;
}

bool ses_docs_list_len(const ses_docs *d, size_t i, ses_string column, size_t *n, ses_err *e)
{
    const ses_json *v = d->doc[i].json ? find_value(d->doc[i].json, column) : NULL;
    *n = ses_json_len(v);
    return (v && ses_json_type_of(v) == SES_JSON_ARRAY && *n) ||
           fail_absent(d, i, column, "a list of choices, of JSON lines,", e);
}

bool ses_docs_list_value(const ses_docs *d, size_t i, ses_string column, size_t item, ses_buf *out,
                         ses_err *e)
{
    const ses_json *v = ses_json_at(find_value(d->doc[i].json, column), item);
    return ses_json_scalar_append(v, out) || fail_absent(d, i, column, "a list of strings", e);
}
