/* Reader of rows of TSV and CSV files; see records_json.c for JSON. */
#include "base/alloc.h"
#include "records_impl.h"
#include "table_text.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROW = 64 << 20 };

/* Counts the skipped lines, if there are any. */
static uint64_t count_line(ses_records *r)
{
    uint64_t after = r->lines.line - r->line;
    return r->line = ses_text_reader_line(&r->lines) - after;
}

bool ses_records_at_line(ses_records *r, ses_err *e)
{
    return ses_wrap(e, "line %llu", (unsigned long long)count_line(r));
}

bool ses_records_next_start(ses_records *r, const char **s, size_t *n, ses_err *e)
{
    r->offset = ses_text_reader_offset(&r->lines);
    *s = NULL;
    if (r->end && r->offset >= r->end) return true;
    if (!ses_text_reader_next(&r->lines, s, n, e)) return false;
    r->line = r->lines.line;
    return true;
}

/* ---- one row of a delimited file ---- */

bool ses_records_end_field(ses_records *r, size_t begin, ses_err *e)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        ses_field_range *p =
            cap <= SES_RECORDS_MAX_FIELDS ? ses_realloc_array(r->field, cap, sizeof *p, e) : NULL;
        if (!p)
            return ses_fail(e, cap > SES_RECORDS_MAX_FIELDS ? SES_EFORMAT : SES_ENOMEM, "more than %d fields",
                            (int)SES_RECORDS_MAX_FIELDS);
        r->field = p;
        r->cap = cap;
    }
    r->field[r->n++] = (ses_field_range){ begin, r->bytes.len - begin };
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
        if (!ses_records_end_field(r, begin, e)) return false;
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
        if (!ses_records_next_start(r, &s, &n, e)) return false;
    while (s && !n);
    *found = s != NULL;
    return !s || split(r, s, n, e) || ses_records_at_line(r, e);
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
        if (*p < '0' || *p > '9' || *x > SES_RECORDS_MAX_FIELDS) return false;
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

/* Reports that `want` is the name of columns i and k. */
static bool fail_two_columns(const char *want, size_t i, size_t k, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "two columns are named \"%s\": select one by its number, %zu or %zu",
                    ses_quoted_of(want, strlen(want)).s, i + 1, k + 1);
}

/* A column by its exact name, else by its name in any case; SIZE_MAX: none. */
static bool find_name(const ses_records *r, const char *want, bool exact, size_t *found, ses_err *e)
{
    *found = SIZE_MAX;
    for (size_t k = 0; k < r->n_names; k++) {
        if (exact ? strcmp(r->name[k], want) : !ses_is_column_name(r->name[k], want)) continue;
        if (*found != SIZE_MAX) return fail_two_columns(want, *found, k, e);
        *found = k;
    }
    return *found != SIZE_MAX || !exact || find_name(r, want, false, found, e);
}

static bool find_column(ses_records *r, const char *want, size_t *at, ses_err *e)
{
    size_t found, number;
    if (!find_name(r, want, true, &found, e)) return false;
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

/* Whether quotes enclose fields if this is the delimiter. */
static bool has_quotes(const ses_records *r, char delimiter)
{
    return r->quotes_option == SES_QUOTES_ON ||
           (r->quotes_option == SES_QUOTES_AUTO && (r->format == SES_TABLE_CSV || delimiter != '\t'));
}

/* The separator of the first rows, if it is not the usual one of the format. */
static bool find_delimiter(ses_records *r, ses_err *e)
{
    static const char known[] = "\t,;|";
    const char *s;
    size_t n;
    bool whole;
    if (!ses_text_reader_peek(&r->lines, 2, &s, &n, &whole, e)) return false;
    ses_row_sample sample = { s, n, whole };
    char found = 0;
    bool usual = false;
    for (const char *c = known; *c; c++) {
        bool fits = ses_row_sample_fits(&sample, *c, has_quotes(r, *c), r->ragged);
        if (*c == r->delimiter)
            usual = fits;
        else if (fits && found != '\t')
            found = found ? '?' : *c; /* '?': more than one */
    }
    if (usual || !found || found == '?') return true;
    r->delimiter = found;
    if (found != '\t') r->format = SES_TABLE_CSV;
    r->quotes = r->quotes_option != SES_QUOTES_OFF;
    return true;
}

/* Reads the header, or the first row, which the first ses_records_next returns. */
static bool begin(ses_records *r, ses_err *e)
{
    bool found;
    if (r->find_delimiter && !find_delimiter(r, e)) return false;
    if (!read_row(r, &found, e)) return false;
    if (!found) return ses_fail(e, SES_EFORMAT, "the file is empty");
    r->expected = r->n;
    r->pending = !r->header;
    if (r->header) {
        r->name = ses_alloc_array(r->n, sizeof *r->name, e);
        if (!r->name) return false;
        for (; r->n_names < r->n; r->n_names++) {
            const ses_field_range *p = &r->field[r->n_names];
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
        return ses_records_at_line(r, e);
    }
    for (size_t k = 0; k < r->n_out; k++) {
        size_t c = r->column[k];
        if (c >= r->n) {
            ses_fail(e, SES_EFORMAT, "%zu field%s, field %zu requested", r->n, r->n == 1 ? "" : "s", c + 1);
            return ses_records_at_line(r, e);
        }
        r->out[k] = (ses_string){ r->bytes.data + r->field[c].begin, r->field[c].n };
    }
    r->row_failed = false;
    return true;
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
    r->pending = false; /* the first row is in another ses_field_range */
    if (r->array) return ses_records_pass_elements(r, begin, e);
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
    r->quotes_option = o->quotes;
    r->quotes = has_quotes(r, r->delimiter);
    r->find_delimiter = !o->delimiter && (r->format == SES_TABLE_CSV || (!o->format && !o->no_header));
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
    return r->format == SES_TABLE_JSONL ? ses_records_begin_json(r, e) : begin(r, e);
}

uint64_t ses_records_consumed(const ses_records *r)
{
    if (!r->lines.in) return 0;
    double stored = (double)ses_input_stream_consumed(r->lines.in);
    double read = (double)r->lines.offset, all = read + (double)r->lines.left;
    return (uint64_t)(all > 0 ? stored * (read / all) : stored); /* without the lines in the buffer */
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
    ses_buf_free(&r->element);
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
    else if (!(json ? ses_records_next_json(r, &found, e) : read_row(r, &found, e)))
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
