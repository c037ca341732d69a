/* Rows of CSV, TSV and JSON lines: the kept fields of the input, then the results. */
#include "row_writer.h"

#include "base/alloc.h"
#include "cli/shard/shard_plan.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        ses_row_args, keep, "keep", NULL, "auto|csv|tsv|jsonl",
        "write each input row with all its fields and its result; auto: in the format of the input; --csv: "
        "a table",
        .implicit_value = "auto", .alias = "csv=csv"),
    SES_OPT_TEXT(
        ses_row_args, prefix, "result-prefix", "TEXT",
        "with --keep: begin the names of result columns with TEXT; default: none, or 'predicted_' if "
        "the input has a column of this name"),
    SES_OPT_TEXT(ses_row_args, output, "output", "FILE",
                 "write results to FILE, complete or not at all; its ending gives the format: .csv, .tsv, "
                 ".json, .jsonl; vectors: .npy",
                 .letter = 'o', .common = true),
    SES_OPT_TEXT(ses_row_args, to, "to", "FILE", "the same as --output"),
    SES_OPT_FLAG(ses_row_args, overwrite, "overwrite", "replace an existing --output file"),
    SES_OPT_SHARD(ses_row_args, shard),
};
const ses_opt_table ses_row_options = { opt, SES_LEN(opt), "output" };

bool ses_row_args_ends(const ses_row_args *a, const char *ending)
{
    size_t n = a->to ? strlen(a->to) : 0, k = strlen(ending);
    return n > k && !strcasecmp(a->to + n - k, ending);
}

bool ses_row_args_resolve(ses_row_args *a, ses_err *e)
{
    if (a->output && a->to) return ses_fail(e, SES_EUSAGE, "--output and --to are the same option: give one");
    if (a->output) a->to = a->output;
    a->output = NULL;
    if (a->keep >= 0) return true;
    a->array = ses_row_args_ends(a, ".json");
    if (a->array && a->shard)
        return ses_fail(e, SES_EUSAGE, "--shard: JSON arrays cannot be concatenated: name the files .jsonl");
    if (ses_row_args_ends(a, ".csv")) a->keep = SES_ROWS_CSV;
    if (ses_row_args_ends(a, ".tsv")) a->keep = SES_ROWS_TSV;
    return true;
}

static const char default_prefix[] = "predicted_";

void ses_rows_open(ses_row_writer *w, const ses_row_args *a, bool keep_going)
{
    *w = (ses_row_writer){
        .format = (ses_row_format)a->keep, .prefix = a->prefix, .has_errors = keep_going, .array = a->array
    };
}

bool ses_rows_active(const ses_row_writer *w) { return (int)w->format >= 0; }

void ses_rows_free(ses_row_writer *w)
{
    for (size_t i = 0; i < w->n_names; i++) ses_free(w->name[i]);
    for (size_t i = 0; i < w->n_columns; i++) ses_free(w->column[i]);
    ses_free(w->column);
    ses_buf_free(&w->kept);
    ses_buf_free(&w->line);
    *w = (ses_row_writer){ .format = (ses_row_format)-1 };
}

/* ---- columns ---- */

static bool add_result(ses_row_writer *w, const char *name, ses_err *e)
{
    if (w->n_names == SES_MAX_RESULT_COLUMNS) return ses_fail(e, SES_EARG, "too many result columns");
    w->name[w->n_names] = ses_strdup(name, e);
    return w->name[w->n_names] && ++w->n_names;
}

static bool add_column(ses_row_writer *w, const char *name, size_t n, ses_err *e)
{
    if (!ses_array_reserve(&w->column, &w->column_cap, w->n_columns + 1, sizeof *w->column, e)) return false;
    w->column[w->n_columns] = ses_strndup(name, n, e);
    return w->column[w->n_columns] && ++w->n_columns;
}

static bool has_column(const ses_row_writer *w, const char *name)
{
    for (size_t i = 0; i < w->n_columns; i++)
        if (!strcmp(w->column[i], name)) return true;
    return false;
}

static const char *first_clash(const ses_row_writer *w)
{
    for (size_t i = 0; i < w->n_names; i++)
        if (has_column(w, w->name[i])) return w->name[i];
    return NULL;
}

static bool prepend(ses_row_writer *w, const char *prefix, ses_err *e)
{
    for (size_t i = 0; i < w->n_names; i++) {
        ses_buf b = { 0 };
        ses_buf_appendf(&b, "%s%s", prefix, w->name[i]);
        char *name = ses_buf_ok(&b, e) ? ses_strdup(b.data, e) : NULL;
        ses_buf_free(&b);
        if (!name) return false;
        ses_free(w->name[i]);
        w->name[i] = name;
    }
    return true;
}

/* Forgets the columns of a first row that cannot be kept. */
static bool forget_columns(ses_row_writer *w)
{
    while (w->n_columns) ses_free(w->column[--w->n_columns]);
    return w->is_named = false;
}

/* Result columns get a prefix if the input has a column of the same name: nothing is lost. Called when the
 * columns of both are known. */
static bool name_results(ses_row_writer *w, ses_err *e)
{
    if (!w->is_named || !w->n_names) return true;
    const char *prefix = w->prefix ? w->prefix : first_clash(w) ? default_prefix : "";
    if (*prefix && !prepend(w, prefix, e)) return false;
    const char *clash = first_clash(w);
    return !clash ||
           ses_fail(e, SES_EARG,
                    "the input has a column \"%s\", the name of a result; choose another --result-prefix",
                    ses_quoted_of(clash, strlen(clash)).s);
}

bool ses_rows_set_results(ses_row_writer *w, const char *const *name, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!add_result(w, name[i], e)) return false;
    w->n_results = n;
    return (!w->has_errors || add_result(w, "error", e)) && name_results(w, e);
}

static bool check_unique(const ses_row_writer *w, ses_err *e)
{
    for (size_t i = 0; i < w->n_columns; i++)
        for (size_t k = i + 1; k < w->n_columns; k++)
            if (!strcmp(w->column[i], w->column[k]))
                return ses_fail(e, SES_EFORMAT,
                                "two columns are named \"%s\": JSON lines need different names",
                                ses_quoted_of(w->column[i], strlen(w->column[i])).s);
    return true;
}

/* ---- fields ---- */

/* A field of CSV is quoted if necessary; TSV has no quotes. A row must not be an empty line. */
static bool put_field(const ses_row_writer *w, ses_buf *out, const char *s, size_t n, bool alone, ses_err *e)
{
    bool breaks = n && (memchr(s, '\n', n) || memchr(s, w->delimiter, n));
    bool tsv = w->format == SES_ROWS_TSV, quote = n && (memchr(s, '"', n) || memchr(s, '\r', n));
    if (tsv && (breaks || (n && s[n - 1] == '\r')))
        return ses_fail(e, SES_EFORMAT,
                        "a field contains a tab or a line end, which TSV cannot express; use --keep csv or "
                        "--keep jsonl");
    if (tsv || (!breaks && !quote && !(alone && !n))) {
        ses_buf_append(out, s, n);
        return ses_buf_ok(out, e);
    }
    ses_buf_put(out, '"');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"') ses_buf_put(out, '"');
        ses_buf_put(out, s[i]);
    }
    ses_buf_put(out, '"');
    return ses_buf_ok(out, e);
}

static bool put_json_string(ses_buf *out, const char *s, size_t n, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    size_t len;
    if (w) ses_json_put_stringn(w, s, n);
    const char *text = w ? ses_json_writer_text(w, &len, e) : NULL;
    if (text) ses_buf_append(out, text, len);
    ses_json_writer_free(w);
    return text && ses_buf_ok(out, e);
}

/* Starts the next field of a table or member of an object. */
static bool put_name(ses_buf *out, size_t start, const char *name, ses_err *e)
{
    if (out->len > start + 1) ses_buf_puts(out, ", ");
    if (!put_json_string(out, name, strlen(name), e)) return false;
    ses_buf_puts(out, ": ");
    return ses_buf_ok(out, e);
}

/* ---- rows to keep ---- */

static size_t begin_row(ses_row_writer *w)
{
    size_t n = 0, start = w->kept.len;
    if (w->at && w->at > w->kept.len / 2) { /* drop the rows that are written */
        memmove(w->kept.data, w->kept.data + w->at, w->kept.len - w->at);
        w->kept.len = start = w->kept.len - w->at;
        w->at = 0;
    }
    ses_buf_append(&w->kept, &n, sizeof n);
    return start;
}

static bool end_row(ses_row_writer *w, size_t start, ses_err *e)
{
    if (!ses_buf_ok(&w->kept, e)) return false;
    size_t n = w->kept.len - start - sizeof n;
    memcpy(w->kept.data + start, &n, sizeof n);
    return true;
}

static void choose_format(ses_row_writer *w, ses_row_format input, char delimiter)
{
    if (w->format == SES_ROWS_AUTO) w->format = input;
    w->delimiter = w->format == SES_ROWS_TSV ? '\t' : w->format == input ? delimiter : ',';
}

static const ses_row_format format_of[] = {
    [SES_TABLE_TSV] = SES_ROWS_TSV, [SES_TABLE_CSV] = SES_ROWS_CSV, [SES_TABLE_JSONL] = SES_ROWS_JSONL
};

/* Names of the columns, or their numbers. */
static bool name_columns(ses_row_writer *w, const ses_records *r, ses_err *e)
{
    choose_format(w, format_of[ses_records_format(r)], ses_records_delimiter(r));
    w->has_header = ses_records_name_count(r) > 0;
    size_t n = w->has_header ? ses_records_name_count(r) : ses_records_source_count(r);
    for (size_t i = 0; i < n; i++) {
        char number[24];
        const char *name = ses_records_name(r, i);
        if (!name) snprintf(number, sizeof number, "%zu", i + 1), name = number;
        if (!add_column(w, name, strlen(name), e)) return false;
    }
    w->is_named = true;
    return ((w->format != SES_ROWS_JSONL || check_unique(w, e)) && name_results(w, e)) || forget_columns(w);
}

static bool check_columns(const ses_row_writer *w, const ses_records *r, ses_err *e)
{
    size_t n = ses_records_name_count(r);
    bool same = !n || n == w->n_columns;
    for (size_t i = 0; same && i < n; i++) same = !strcmp(ses_records_name(r, i), w->column[i]);
    if (!same) return ses_fail(e, SES_EFORMAT, "the header differs from that of the first file");
    return ses_records_source_count(r) <= w->n_columns ||
           ses_fail(e, SES_EFORMAT, "%zu fields, the columns to keep are %zu", ses_records_source_count(r),
                    w->n_columns);
}

static bool put_record(ses_row_writer *w, const ses_records *r, ses_err *e)
{
    bool json = w->format == SES_ROWS_JSONL;
    size_t from = w->kept.len;
    if (json) ses_buf_put(&w->kept, '{');
    for (size_t i = 0; i < w->n_columns; i++) {
        ses_string f = ses_records_source_field(r, i);
        if (!f.p) f = (ses_string){ "", 0 }; /* a short row */
        if (!json && i) ses_buf_put(&w->kept, w->delimiter);
        bool ok = json ? put_name(&w->kept, from, w->column[i], e) && put_json_string(&w->kept, f.p, f.n, e)
                       : put_field(w, &w->kept, f.p, f.n, w->n_columns + w->n_names == 1, e);
        if (!ok) return false;
    }
    return true;
}

bool ses_rows_keep_record(ses_row_writer *w, const ses_records *r, ses_err *e)
{
    if (ses_records_format(r) == SES_TABLE_JSONL)
        return ses_rows_keep_json(w, ses_records_json_text(r), ses_records_json(r), e);
    if (!(w->is_named || name_columns(w, r, e)) || !check_columns(w, r, e)) return false;
    size_t start = begin_row(w);
    if (put_record(w, r, e)) return end_row(w, start, e);
    w->kept.len = start;
    return false;
}

/* ---- JSON ---- */

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++;
    return p;
}

/* The end of the value at p; the text is valid JSON. */
static const char *value_end(const char *p, const char *end)
{
    int depth = 0;
    for (; p < end; p++) {
        if (*p == '"') {
            while (*++p != '"') p += *p == '\\';
        } else if (*p == '[' || *p == '{') {
            depth++;
        } else if (depth && (*p == ']' || *p == '}')) {
            depth--;
        } else if (!depth && strchr(",:]} \t\r\n", *p)) {
            return p;
        }
    }
    return p;
}

/* Bytes of member i's value in the text of its object; *at: where to look, the first time after '{'. */
static ses_string next_value(const char **at, const char *end)
{
    const char *p = skip_space(*at, end);
    if (p < end && *p == ',') p = skip_space(p + 1, end);
    p = skip_space(value_end(p, end), end); /* the key */
    const char *from = skip_space(p + 1, end);
    *at = value_end(from, end);
    return (ses_string){ from, (size_t)(*at - from) };
}

static size_t find_column(const ses_row_writer *w, const char *name, size_t first)
{
    for (size_t k = 0; k < w->n_columns; k++) {
        size_t i = (first + k) % w->n_columns; /* keys mostly have the same order */
        if (!strcmp(w->column[i], name)) return i;
    }
    return SIZE_MAX;
}

/* A value as a field: strings unquoted, null empty, others as they are in the file. */
static ses_string field_of(const ses_json *v, ses_string text)
{
    size_t n;
    const char *s = ses_json_string(v, &n);
    if (s) return (ses_string){ s, n };
    return ses_json_type_of(v) == SES_JSON_NULL ? (ses_string){ "", 0 } : text;
}

static bool fail_new_key(const char *key, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "key \"%s\" is not in the first row; use --keep jsonl",
                    ses_quoted_of(key, strlen(key)).s);
}

/* Members of an object as the fields of a table. */
static bool put_members(ses_row_writer *w, ses_string line, const ses_json *v, ses_err *e)
{
    ses_string *cell = ses_alloc_array(w->n_columns + 1, sizeof *cell, e);
    const char *at = memchr(line.p, '{', line.n), *end = line.p + line.n;
    bool ok = cell != NULL;
    at += at != NULL;
    for (size_t i = 0; ok && i < ses_json_len(v); i++) {
        const char *key = ses_json_key(v, i, NULL);
        size_t k = find_column(w, key, i);
        ses_string text = next_value(&at, end);
        if (k == SIZE_MAX)
            ok = fail_new_key(key, e);
        else
            cell[k] = field_of(ses_json_at(v, i), text);
    }
    for (size_t i = 0; ok && i < w->n_columns; i++) {
        if (i) ses_buf_put(&w->kept, w->delimiter);
        ok = put_field(w, &w->kept, cell[i].p ? cell[i].p : "", cell[i].n, false, e);
    }
    ses_free(cell);
    return ok;
}

static bool name_keys(ses_row_writer *w, const ses_json *v, ses_err *e)
{
    bool object = ses_json_type_of(v) == SES_JSON_OBJECT;
    choose_format(w, SES_ROWS_JSONL, ',');
    w->has_header = true;
    if (!object && !add_column(w, "text", 4, e)) return false;
    for (size_t i = 0; object && i < ses_json_len(v); i++) {
        size_t n;
        const char *key = ses_json_key(v, i, &n);
        bool ok = strlen(key) == n || ses_fail(e, SES_EFORMAT, "a key contains NUL");
        if (!ok || !add_column(w, key, n, e)) return forget_columns(w);
    }
    w->is_named = true;
    return name_results(w, e) || forget_columns(w);
}

/* The object without its closing brace, as it is in the file. */
static bool put_object(ses_row_writer *w, ses_string line, const ses_json *v, ses_err *e)
{
    for (size_t i = 0; i < w->n_names; i++)
        if (ses_json_get(v, w->name[i]))
            return ses_fail(e, SES_EFORMAT,
                            "key \"%s\" is the name of a result, but not in the first row; choose a "
                            "--result-prefix",
                            ses_quoted_of(w->name[i], strlen(w->name[i])).s);
    size_t n = line.n;
    while (n && line.p[n - 1] != '}') n--;
    n -= n > 0;
    while (n && strchr(" \t\r\n", line.p[n - 1])) n--;
    const char *p = skip_space(line.p, line.p + n);
    ses_buf_append(&w->kept, p, (size_t)(line.p + n - p));
    return ses_buf_ok(&w->kept, e);
}

/* A text as the column "text", the others empty. */
static bool put_text(ses_row_writer *w, ses_string text, ses_err *e)
{
    size_t column = find_column(w, "text", 0), from = w->kept.len;
    bool ok = true;
    if (w->format == SES_ROWS_JSONL) {
        ses_buf_put(&w->kept, '{');
        return put_name(&w->kept, from, "text", e) && put_json_string(&w->kept, text.p, text.n, e);
    }
    if (text.p && column == SIZE_MAX) return fail_new_key("text", e);
    for (size_t i = 0; ok && i < w->n_columns; i++) {
        if (i) ses_buf_put(&w->kept, w->delimiter);
        if (text.p && i == column) ok = put_field(w, &w->kept, text.p, text.n, false, e);
    }
    return ok;
}

bool ses_rows_keep_json(ses_row_writer *w, ses_string line, const ses_json *v, ses_err *e)
{
    ses_json_type type = ses_json_type_of(v);
    if (type != SES_JSON_OBJECT && type != SES_JSON_STRING)
        return ses_fail(e, SES_EFORMAT, "expected an object or a string, not %s", ses_json_type_name(type));
    if (!w->is_named && !name_keys(w, v, e)) return false;
    size_t start = begin_row(w);
    ses_string text = { 0 };
    text.p = ses_json_string(v, &text.n);
    bool ok = text.p                        ? put_text(w, text, e)
              : w->format == SES_ROWS_JSONL ? put_object(w, line, v, e)
                                            : put_members(w, line, v, e);
    if (!ok) w->kept.len = start;
    return ok && end_row(w, start, e);
}

bool ses_rows_keep_text(ses_row_writer *w, ses_string text, ses_err *e)
{
    if (!w->is_named && !name_keys(w, NULL, e)) return false;
    size_t start = begin_row(w);
    bool ok = put_text(w, text, e);
    if (!ok) w->kept.len = start;
    return ok && end_row(w, start, e);
}

bool ses_rows_keep_none(ses_row_writer *w, ses_err *e)
{
    if (!w->is_named) return ses_fail(e, SES_EFORMAT, "the first row gives the columns of --keep");
    size_t start = begin_row(w);
    if (w->format == SES_ROWS_JSONL) ses_buf_put(&w->kept, '{');
    bool ok = w->format == SES_ROWS_JSONL || put_text(w, (ses_string){ 0 }, e);
    return ok && end_row(w, start, e);
}

/* ---- output ---- */

static bool write_line(ses_row_writer *w, ses_err *e)
{
    ses_buf_put(&w->line, '\n');
    if (!ses_buf_ok(&w->line, e)) return false;
    return ses_stdout_write(w->line.data, w->line.len, e);
}

static bool put_header(ses_row_writer *w, ses_err *e)
{
    w->is_begun = true;
    if (w->format == SES_ROWS_JSONL || !w->has_header) return true;
    w->line.len = 0;
    for (size_t i = 0; i < w->n_columns + w->n_names; i++) {
        const char *name = i < w->n_columns ? w->column[i] : w->name[i - w->n_columns];
        if (i) ses_buf_put(&w->line, w->delimiter);
        if (!put_field(w, &w->line, name, strlen(name), w->n_columns + w->n_names == 1, e)) return false;
    }
    return write_line(w, e);
}

/* Copies the first row kept to the line. */
static bool take_row(ses_row_writer *w, ses_err *e)
{
    size_t n;
    if (!w->is_begun && !put_header(w, e)) return false;
    memcpy(&n, w->kept.data + w->at, sizeof n);
    w->line.len = 0;
    ses_buf_append(&w->line, w->kept.data + w->at + sizeof n, n);
    w->at += sizeof n + n;
    if (w->at == w->kept.len) w->at = w->kept.len = 0;
    return true;
}

static bool put_result(ses_row_writer *w, const char *text, size_t n, const ses_json *v, ses_err *e)
{
    const char *at = text + 1;
    if (ses_json_len(v) != w->n_results)
        return ses_fail(e, SES_EARG, "a result has %zu members, expected %zu", ses_json_len(v), w->n_results);
    for (size_t i = 0; i < w->n_results; i++) {
        ses_string value = next_value(&at, text + n);
        if (w->format == SES_ROWS_JSONL) {
            if (!put_name(&w->line, 0, w->name[i], e)) return false;
            ses_buf_append(&w->line, value.p, value.n);
            continue;
        }
        if (i || w->n_columns) ses_buf_put(&w->line, w->delimiter);
        value = field_of(ses_json_at(v, i), value);
        if (!put_field(w, &w->line, value.p, value.n, false, e))
            return ses_wrap(e, "result \"%s\"", w->name[i]);
    }
    if (w->format == SES_ROWS_JSONL)
        ses_buf_put(&w->line, '}');
    else if (w->n_names > w->n_results)
        ses_buf_put(&w->line, w->delimiter); /* no error */
    return write_line(w, e);
}

bool ses_rows_put(ses_row_writer *w, ses_json_writer *object, ses_err *e)
{
    size_t n;
    const char *text = ses_json_writer_text(object, &n, e);
    ses_json_doc *doc = text ? ses_json_parse(text, n, e) : NULL;
    bool ok = doc && take_row(w, e) && put_result(w, text, n, ses_json_root(doc), e);
    ses_json_free(doc);
    ses_json_writer_free(object);
    return ok;
}

bool ses_rows_put_error(ses_row_writer *w, const char *message, ses_err *e)
{
    if (!take_row(w, e)) return false;
    const char *name = w->name[w->n_results];
    if (w->format == SES_ROWS_JSONL) {
        if (!put_name(&w->line, 0, name, e) || !put_json_string(&w->line, message, strlen(message), e))
            return false;
        ses_buf_put(&w->line, '}');
    } else {
        for (size_t i = 0; i < w->n_names; i++)
            if (i || w->n_columns) ses_buf_put(&w->line, w->delimiter);
        if (!put_field(w, &w->line, message, strlen(message), false, e)) return false;
    }
    return write_line(w, e);
}

void ses_rows_continue(ses_row_writer *w)
{
    w->at = w->kept.len = 0;
    w->is_begun = true;
}

bool ses_rows_print(ses_row_writer *w, ses_json_writer *json, ses_err *e)
{
    size_t n;
    if (!w->array) return ses_json_writer_print(json, e);
    const char *text = ses_json_writer_text(json, &n, e);
    bool ok = text && ses_stdout_write(w->is_open ? ",\n" : "[\n", 2, e) && ses_stdout_write(text, n, e);
    w->is_open = true;
    ses_json_writer_free(json);
    return ok;
}

bool ses_rows_end(ses_row_writer *w, ses_err *e)
{
    const char *end = w->is_open ? "\n]\n" : "[]\n";
    if (w->array) return ses_stdout_write(end, strlen(end), e);
    return w->is_begun || !w->is_named || put_header(w, e);
}
