/* Rows kept by --keep: the output, read back, has the same number of rows. The first byte selects formats
 * and options. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "cli/pipeline/row_writer.h"
#include "fuzz_command.h"
#include "io/text_reader.h"

static const char *const results[] = { "label", "score" };

static bool put(ses_row_writer *w, bool failed, ses_err *e)
{
    if (failed) return ses_rows_put_error(w, "a \"bad\", row", e);
    ses_json_writer *object = ses_json_writer_new(0, e);
    MUST(object);
    ses_json_begin_object(object);
    ses_json_member_string(object, "label", "x,\"y\"");
    ses_json_member_real(object, "score", 0.5);
    ses_json_end_object(object);
    return ses_rows_put(w, object, e);
}

/* Writes up to two pending rows; returns the number of rows written. */
static size_t write_rows(ses_row_writer *w, ses_records *r, bool has_errors, ses_err *e)
{
    const ses_string *row;
    size_t kept = 0, written = 0;
    while (!e->code && ses_records_next(r, &row, e) && row) {
        ses_err why = { 0 };
        if (!ses_rows_keep_record(w, r, &why)) {
            MUST(why.code == SES_EFORMAT || why.code == SES_EARG);
            if (!has_errors || !ses_rows_keep_none(w, e)) break;
        }
        kept++;
        if (kept - written == 2 && put(w, has_errors && written % 3 == 1, e)) written++;
    }
    while (!e->code && written < kept && put(w, false, e)) written++;
    ses_err ignored = { 0 };
    MUST(e->code || ses_rows_end(w, &ignored) || ignored.code == SES_EFORMAT);
    return written;
}

/* The output has as many rows, each with its result or error. */
static void check(const char *text, size_t n, ses_row_format format, bool no_header, char delimiter,
                  size_t rows)
{
    ses_records_options o = { .format = format == SES_ROWS_JSONL ? SES_TABLE_JSONL
                                        : format == SES_ROWS_CSV ? SES_TABLE_CSV
                                                                 : SES_TABLE_TSV,
                              .no_header = no_header,
                              .delimiter = format == SES_ROWS_JSONL ? 0 : delimiter };
    ses_err e = { 0 };
    const ses_string *row = NULL;
    size_t found = 0;
    /* The reader refuses a first cell with the first bytes of a Parquet file; TSV has no quotes. */
    if (!n || (format != SES_ROWS_JSONL && ses_text_binary_format(text, n))) return;
    if (format != SES_ROWS_JSONL) {
        ses_records *r = ses_records_from_text(text, n, &o, &e);
        while (r && ses_records_next(r, &row, &e) && row) found++;
        ses_records_free(r);
        MUST(!e.code && found == rows);
        return;
    }
    for (const char *end = text + n; text < end; found++) {
        const char *lf = memchr(text, '\n', (size_t)(end - text));
        MUST(lf);
        ses_json_doc *d = ses_json_parse_line(text, (size_t)(lf - text), &e);
        MUST(d && ses_json_type_of(ses_json_root(d)) == SES_JSON_OBJECT && ses_json_len(ses_json_root(d)));
        ses_json_free(d);
        text = lf + 1;
    }
    MUST(found == rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    bool no_header = data[0] & 16, has_errors = data[0] & 32;
    ses_records_options o = { .format = (ses_table_format)(1 + data[0] % 3), .no_header = no_header };
    ses_row_args a = { .keep = 1 + (data[0] >> 2) % 3 };
    ses_row_writer w;
    ses_err e = { 0 };
    ses_records *r = ses_records_from_text((const char *)data + 1, n - 1, &o, &e);
    if (!r) return 0;
    FILE *file = tmpfile();
    MUST(file);
    int before = fuzz_stdout_to(file);
    ses_rows_open(&w, &a, has_errors);
    MUST(ses_rows_set_results(&w, results, 2, &e));
    size_t rows = write_rows(&w, r, has_errors, &e);
    fuzz_stdout_back(before);
    size_t size;
    char *text = fuzz_read_back(file, &size);
    check(text, size, (ses_row_format)a.keep, !w.has_header, w.delimiter, rows);
    free(text);
    fclose(file);
    ses_rows_free(&w);
    ses_records_free(r);
    return 0;
}
