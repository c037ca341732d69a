/* Reader of rows of TSV, CSV and JSON-lines files. */
#include "base/alloc.h"
#include "base/number.h"
#include "records_range.h"
#include "table_text.h"
#include "text_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FIELDS = 1 << 16, MAX_ROW = 64 << 20 };

typedef struct range {
    size_t begin, n;
} range;

struct ses_records {
    ses_text_reader lines;
    ses_table_format format;
    char delimiter;
    bool quotes, ragged, header, keep_arrays;
    bool row_failed; /* the last error is about the fields of a row */
    size_t max_row;

    char **want; /* requested columns; NULL: all */
    size_t n_want;
    size_t *column; /* field index of each requested column of a table */
    char **name;    /* column names of the header */
    size_t n_names;
    size_t expected; /* fields of a row; 0: not known yet */
    bool bound;      /* columns are resolved */
    bool all_keys;   /* JSON lines: no column was requested */

    ses_buf bytes; /* fields of the row, a NUL after each */
    range *field;  /* in bytes */
    size_t n, cap;
    ses_string *out;
    size_t n_out;
    uint64_t line;
    ses_json_doc *doc;
    ses_string json_text; /* the line of doc */
    bool pending;         /* the first row was already read by the open */
    uint64_t offset, end; /* where the last row starts; where rows must start before, 0: anywhere */
};

/* Counts the skipped lines, if there are any. */
static uint64_t count_line(ses_records *r)
{
    uint64_t after = r->lines.line - r->line;
    return r->line = ses_text_reader_line(&r->lines) - after;
}

static bool at_line(ses_records *r, ses_err *e)
{
    return ses_wrap(e, "line %llu", (unsigned long long)count_line(r));
}

/* Reads a line that may start a row; *s is NULL at the end of the file or of the range. */
static bool next_start(ses_records *r, const char **s, size_t *n, ses_err *e)
{
    r->offset = ses_text_reader_offset(&r->lines);
    *s = NULL;
    if (r->end && r->offset >= r->end) return true;
    if (!ses_text_reader_next(&r->lines, s, n, e)) return false;
    r->line = r->lines.line;
    return true;
}

/* ---- one row of a delimited file ---- */

static bool end_field(ses_records *r, size_t begin, ses_err *e)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        range *p = cap <= MAX_FIELDS ? ses_realloc_array(r->field, cap, sizeof *p, e) : NULL;
        if (!p)
            return ses_fail(e, cap > MAX_FIELDS ? SES_EFORMAT : SES_ENOMEM, "more than %d fields",
                            (int)MAX_FIELDS);
        r->field = p;
        r->cap = cap;
    }
    r->field[r->n++] = (range){ begin, r->bytes.len - begin };
    ses_buf_put(&r->bytes, 0);
    return ses_buf_ok(&r->bytes, e);
}

/* A quote that is not closed, or closed too early: the error is in the line that opens it. */
static bool fail_quote(ses_records *r, uint64_t opened, const char *what, ses_err *e)
{
    r->line = opened; /* at_line counts the skipped lines */
    return ses_fail(e, SES_EFORMAT, "field %zu: %s (are quotes ordinary characters in this file?)", r->n + 1,
                    what);
}

/* Reads a quoted field, from after its opening quote to after its closing quote, possibly over several
 * lines. */
static bool read_quoted(ses_records *r, const char **s, size_t *n, size_t *i, ses_err *e)
{
    char what[80];
    uint64_t opened = r->lines.line;
    for (;;) {
        const char *stop = *i < *n ? memchr(*s + *i, '"', *n - *i) : NULL;
        size_t to = stop ? (size_t)(stop - *s) : *n;
        ses_buf_append(&r->bytes, *s + *i, to - *i);
        *i = to + 1;
        if (!stop) {
            if (!ses_text_reader_next(&r->lines, s, n, e)) return false;
            if (!*s) return fail_quote(r, opened, "the quote is never closed", e);
            *i = 0;
            ses_buf_put(&r->bytes, '\n');
            snprintf(what, sizeof what, "the quote is not closed within %zu bytes", r->max_row);
            if (r->bytes.len > r->max_row) return fail_quote(r, opened, what, e);
        } else if (*i < *n && (*s)[*i] == '"') {
            ses_buf_put(&r->bytes, '"');
            ++*i;
        } else if (*i < *n && (*s)[*i] != r->delimiter) {
            snprintf(what, sizeof what, "text after its closing quote in line %llu",
                     (unsigned long long)r->lines.line);
            return fail_quote(r, opened, r->lines.line == opened ? "text after its closing quote" : what, e);
        } else
            return ses_buf_ok(&r->bytes, e);
    }
}

static bool split(ses_records *r, const char *s, size_t n, ses_err *e)
{
    size_t i = 0;
    r->bytes.len = r->n = 0;
    for (;;) {
        size_t begin = r->bytes.len;
        if (r->quotes && i < n && s[i] == '"') {
            i++;
            if (!read_quoted(r, &s, &n, &i, e)) return false;
        } else {
            const char *stop = i < n ? memchr(s + i, r->delimiter, n - i) : NULL;
            size_t len = stop ? (size_t)(stop - s) - i : n - i;
            ses_buf_append(&r->bytes, s + i, len);
            i += len;
        }
        if (!end_field(r, begin, e)) return false;
        if (i >= n) return true;
        i++;
    }
}

/* Reads the next row that is not an empty line; *found: false at the end. */
static bool read_row(ses_records *r, bool *found, ses_err *e)
{
    const char *s = NULL;
    size_t n = 0;
    do
        if (!next_start(r, &s, &n, e)) return false;
    while (s && !n);
    *found = s != NULL;
    return !s || split(r, s, n, e) || at_line(r, e);
}

/* ---- columns ---- */

static bool list_names(const ses_records *r, ses_buf *list, ses_err *e)
{
    for (size_t k = 0; k < r->n_names && list->len < 400; k++)
        ses_buf_appendf(list, "%s%s", k ? ", " : "", ses_quoted_of(r->name[k], strlen(r->name[k])).s);
    if (list->len >= 400) ses_buf_puts(list, ", ...");
    return ses_buf_ok(list, e);
}

static bool is_number(const char *s, size_t *x)
{
    *x = 0;
    for (const char *p = s; *p; p++) {
        if (*p < '0' || *p > '9' || *x > MAX_FIELDS) return false;
        *x = 10 * *x + (size_t)(*p - '0');
    }
    return *s && *x;
}

/* The remedy where the header is one column that has a separator in it. */
static const char *delimiter_hint(const ses_records *r, char out[static 100])
{
    const char *found = r->n_names == 1 ? strpbrk(r->name[0], "\t,;|") : NULL;
    if (!found) return "";
    snprintf(out, 100,
             ": are the fields separated otherwise? Set --delimiter '%s', or name the file .csv or .tsv",
             *found == '\t' ? "tab" : (char[2]){ *found });
    return out;
}

static bool fail_no_column(const ses_records *r, const char *want, ses_err *e)
{
    ses_buf list = { 0 };
    ses_quoted q = ses_quoted_of(want, strlen(want));
    char hint[100];
    if (!r->header)
        ses_fail(e, SES_EARG, "no column \"%s\": a file without a header has columns 1 to %zu", q.s,
                 r->expected);
    else if (list_names(r, &list, e))
        ses_fail(e, SES_EARG, "no column \"%s\"; available: %s (or numbers from 1 to %zu)%s", q.s,
                 list.data ? list.data : "none", r->expected, delimiter_hint(r, hint));
    ses_buf_free(&list);
    return false;
}

static bool find_column(ses_records *r, const char *want, size_t *at, ses_err *e)
{
    size_t found = SIZE_MAX, number;
    for (size_t k = 0; k < r->n_names; k++) {
        if (strcmp(r->name[k], want) != 0) continue;
        if (found != SIZE_MAX)
            return ses_fail(e, SES_EFORMAT,
                            "two columns are named \"%s\": select one by its number, %zu or %zu",
                            ses_quoted_of(want, strlen(want)).s, found + 1, k + 1);
        found = k;
    }
    if (found == SIZE_MAX && is_number(want, &number) && (number <= r->expected || r->ragged))
        found = number - 1;
    if (found == SIZE_MAX) return fail_no_column(r, want, e);
    *at = found;
    return true;
}

static bool bind(ses_records *r, ses_err *e)
{
    r->n_out = r->want ? r->n_want : r->expected;
    r->column = ses_alloc_array(r->n_out, sizeof *r->column, e);
    r->out = r->column ? ses_alloc_array(r->n_out, sizeof *r->out, e) : NULL;
    if (!r->out) return false;
    for (size_t k = 0; k < r->n_out; k++) {
        r->column[k] = k;
        if (r->want && !find_column(r, r->want[k], &r->column[k], e)) return false;
    }
    r->bound = true;
    return true;
}

/* Reads the header, or the first row, which the first ses_records_next returns. */
static bool begin(ses_records *r, ses_err *e)
{
    bool found;
    if (!read_row(r, &found, e)) return false;
    if (!found) return ses_fail(e, SES_EFORMAT, "the file is empty");
    r->expected = r->n;
    r->pending = !r->header;
    if (r->header) {
        r->name = ses_alloc_array(r->n, sizeof *r->name, e);
        if (!r->name) return false;
        for (; r->n_names < r->n; r->n_names++) {
            const range *p = &r->field[r->n_names];
            r->name[r->n_names] = ses_strndup(r->bytes.data + p->begin, p->n, e);
            if (!r->name[r->n_names]) return false;
        }
    }
    return bind(r, e);
}

static bool select_fields(ses_records *r, ses_err *e)
{
    r->row_failed = true;
    if (!r->ragged && r->n != r->expected) {
        ses_fail(e, SES_EFORMAT, "%zu field%s, the %s has %zu%s", r->n, r->n == 1 ? "" : "s",
                 r->header ? "header" : "first row", r->expected,
                 r->quotes || r->n > r->expected ? "" : " (does the file contain quoted line ends?)");
        return at_line(r, e);
    }
    for (size_t k = 0; k < r->n_out; k++) {
        size_t c = r->column[k];
        if (c >= r->n) {
            ses_fail(e, SES_EFORMAT, "%zu field%s, field %zu requested", r->n, r->n == 1 ? "" : "s", c + 1);
            return at_line(r, e);
        }
        r->out[k] = (ses_string){ r->bytes.data + r->field[c].begin, r->field[c].n };
    }
    r->row_failed = false;
    return true;
}

/* ---- JSON lines ---- */

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
    return at_line(r, e);
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

/* Finds a key, or a path "a.b" through nested objects. */
static const ses_json *lookup(const ses_json *v, const char *name)
{
    const ses_json *found = ses_json_get(v, name);
    while (!found && v) {
        char key[256];
        size_t n = strcspn(name, ".");
        if (n >= sizeof key) return NULL;
        memcpy(key, name, n);
        key[n] = 0;
        v = ses_json_get(v, key);
        if (!name[n]) return v;
        name += n + 1;
    }
    return found;
}

static bool next_json(ses_records *r, bool *found, ses_err *e)
{
    const char *s = NULL;
    size_t n = 0;
    do
        if (!next_start(r, &s, &n, e)) return false;
    while (s && is_blank(s, n));
    *found = s != NULL;
    ses_json_free(r->doc);
    r->doc = NULL;
    r->json_text = (ses_string){ s, n };
    if (!s) return true;
    r->row_failed = true; /* until the fields are known */
    r->doc = ses_json_parse_line(s, n, e);
    if (!r->doc) return at_line(r, e);
    const ses_json *root = ses_json_root(r->doc);
    if (ses_json_type_of(root) != SES_JSON_OBJECT) {
        ses_fail(e, SES_EFORMAT, "%s, expected an object {...}", ses_json_type_name(ses_json_type_of(root)));
        return at_line(r, e);
    }
    if (!r->bound && !bind_keys(r, root, e)) return false;
    r->bytes.len = r->n = 0;
    for (size_t k = 0; k < r->n_want; k++) {
        const ses_json *v = lookup(root, r->want[k]);
        size_t from = r->bytes.len;
        if (!v) return fail_no_key(r, root, r->want[k], e);
        bool as_json =
            (r->all_keys && is_nested(v)) || (r->keep_arrays && ses_json_type_of(v) == SES_JSON_ARRAY);
        if (!(as_json ? put_nested(r, v, e) : put_json(r, v, 0, e))) {
            ses_wrap(e, "field \"%s\"", ses_quoted_of(r->want[k], strlen(r->want[k])).s);
            return at_line(r, e);
        }
        if (!end_field(r, from, e)) return at_line(r, e);
    }
    for (size_t k = 0; k < r->n; k++)
        r->out[k] = (ses_string){ r->bytes.data + r->field[k].begin, r->field[k].n };
    r->row_failed = false;
    return true;
}

static bool begin_json(ses_records *r, ses_err *e)
{
    bool found;
    if (!next_json(r, &found, e)) return false;
    if (!found) return ses_fail(e, SES_EFORMAT, "the file is empty");
    return r->pending = true;
}

/* ---- ranges ---- */

/* Whether a quoted field is open after a line; open: whether one is before it. As `split` reads fields. */
static bool ends_in_quotes(const ses_records *r, const char *s, size_t n, bool open)
{
    size_t i = 0;
    for (;;) {
        if (!open && i < n && s[i] == '"') open = true, i++;
        while (open) {
            const char *quote = i < n ? memchr(s + i, '"', n - i) : NULL;
            if (!quote) return true;
            i = (size_t)(quote - s) + 1;
            if (i < n && s[i] == '"')
                i++;
            else
                open = false;
        }
        const char *stop = i < n ? memchr(s + i, r->delimiter, n - i) : NULL;
        if (!stop) return false;
        i = (size_t)(stop - s) + 1;
    }
}

/* Reads rows with quotes up to the first that starts at byte `to` or later. */
static bool pass_rows(ses_records *r, uint64_t to, ses_err *e)
{
    bool open = false;
    const char *s = "";
    size_t n;
    while (s && (open || ses_text_reader_offset(&r->lines) < to)) {
        if (!ses_text_reader_next(&r->lines, &s, &n, e)) return false;
        if (s) open = ends_in_quotes(r, s, n, open);
    }
    return true;
}

bool ses_records_set_range(ses_records *r, const char *path, uint64_t begin, uint64_t end, ses_err *e)
{
    r->end = end;
    if (r->pending && r->offset >= begin && r->offset < end) return true;
    r->pending = false; /* the first row is in another range */
    bool quotes = r->quotes && r->format != SES_TABLE_JSONL;
    return quotes ? pass_rows(r, begin, e) : ses_text_reader_skip(&r->lines, path, begin, e);
}

/* ---- the reader ---- */

static ses_table_format format_of(const char *path)
{
    if (ses_input_stream_has_suffix(path, ".csv")) return SES_TABLE_CSV;
    return ses_is_json_lines_name(path) ? SES_TABLE_JSONL : SES_TABLE_TSV;
}

static ses_records *make(const char *path, const ses_records_options *o, ses_err *e)
{
    static const ses_records_options none;
    ses_records *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    if (!o) o = &none;
    r->format = o->format ? o->format : format_of(path);
    r->delimiter = o->delimiter ? o->delimiter : r->format == SES_TABLE_CSV ? ',' : '\t';
    r->quotes = o->quotes == SES_QUOTES_ON || (o->quotes == SES_QUOTES_AUTO && r->format == SES_TABLE_CSV);
    r->lines.encoding = o->encoding;
    r->keep_arrays = o->keep_arrays;
    r->ragged = o->ragged;
    r->header = !o->no_header;
    r->max_row = o->max_row ? o->max_row : MAX_ROW;
    if (!o->columns) return r;
    r->want = ses_alloc_array(o->n_columns, sizeof *r->want, e);
    for (; r->want && r->n_want < o->n_columns; r->n_want++) {
        r->want[r->n_want] = ses_strdup(o->columns[r->n_want], e);
        if (!r->want[r->n_want]) break;
    }
    if (r->want && r->n_want == o->n_columns) return r;
    ses_records_free(r);
    return NULL;
}

static bool start(ses_records *r, ses_err *e)
{
    return r->format == SES_TABLE_JSONL ? begin_json(r, e) : begin(r, e);
}

uint64_t ses_records_consumed(const ses_records *r)
{
    return r->lines.in ? ses_input_stream_consumed(r->lines.in) : 0;
}

ses_records *ses_records_open(const char *path, const ses_records_options *o, ses_err *e)
{
    ses_records *r = make(path, o, e);
    if (r && ses_text_reader_open(&r->lines, path, r->max_row, e) && start(r, e)) return r;
    ses_wrap(e, "%s", path);
    ses_records_free(r);
    return NULL;
}

ses_records *ses_records_from_text(const char *text, size_t n, const ses_records_options *o, ses_err *e)
{
    ses_records *r = make("", o, e);
    if (r) ses_text_reader_from_text(&r->lines, text, n, r->max_row);
    if (r && start(r, e)) return r;
    ses_records_free(r);
    return NULL;
}

void ses_records_free(ses_records *r)
{
    if (!r) return;
    for (size_t k = 0; k < r->n_want; k++) ses_free(r->want[k]);
    for (size_t k = 0; k < r->n_names; k++) ses_free(r->name[k]);
    ses_text_reader_free(&r->lines);
    ses_buf_free(&r->bytes);
    ses_json_free(r->doc);
    ses_free(r->want);
    ses_free(r->column);
    ses_free(r->name);
    ses_free(r->field);
    ses_free(r->out);
    ses_free(r);
}

bool ses_records_next(ses_records *r, const ses_string **row, ses_err *e)
{
    bool found = true, json = r->format == SES_TABLE_JSONL;
    *row = NULL;
    r->row_failed = false;
    if (r->pending)
        r->pending = false;
    else if (!(json ? next_json(r, &found, e) : read_row(r, &found, e)))
        return false;
    if (!found) return true;
    if (!json && !select_fields(r, e)) return false;
    *row = r->out;
    return true;
}

bool ses_records_row_failed(const ses_records *r) { return r->row_failed; }
size_t ses_records_field_count(const ses_records *r) { return r->n_out; }
/* Counting the skipped lines later does not change the reader for its caller. */
uint64_t ses_records_line(const ses_records *r) { return count_line((ses_records *)r); }
uint64_t ses_records_line_read(const ses_records *r) { return r->line; }
uint64_t ses_records_offset(const ses_records *r) { return r->offset; }
const ses_json *ses_records_json(const ses_records *r) { return r->doc ? ses_json_root(r->doc) : NULL; }

const char *ses_records_column_name(const ses_records *r, size_t i)
{
    if (i >= r->n_out) return NULL;
    if (r->format == SES_TABLE_JSONL) return r->want[i];
    return r->column[i] < r->n_names ? r->name[r->column[i]] : NULL;
}

ses_table_format ses_records_format(const ses_records *r) { return r->format; }
char ses_records_delimiter(const ses_records *r) { return r->delimiter; }
size_t ses_records_name_count(const ses_records *r) { return r->n_names; }
const char *ses_records_name(const ses_records *r, size_t i) { return i < r->n_names ? r->name[i] : NULL; }
ses_string ses_records_json_text(const ses_records *r) { return r->json_text; }
size_t ses_records_source_count(const ses_records *r) { return r->doc ? 0 : r->n; }

ses_string ses_records_source_field(const ses_records *r, size_t i)
{
    return i < r->n ? (ses_string){ r->bytes.data + r->field[i].begin, r->field[i].n } : (ses_string){ 0 };
}
