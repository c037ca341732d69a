/* Rows of TSV, CSV and JSON lines: the first byte selects the options. */
#include "base/hash.h"
#include "fuzz.h"
#include "io/records_range.h"

static void drain(ses_records *r, size_t most)
{
    const ses_string *row = NULL;
    ses_err e = { 0 };
    uint64_t line = 0;
    size_t rows = 0;
    bool ok = true;
    while (r && (ok = ses_records_next(r, &row, &e)) && row) {
        MUST(++rows <= most && ses_records_line(r) >= line);
        line = ses_records_line(r);
        for (size_t k = 0; k < ses_records_field_count(r); k++) MUST(strlen(row[k].p) == row[k].n);
    }
    MUST(ok == !e.code);
    MUST(ok || e.code == SES_EFORMAT || e.code == SES_EARG);
    ses_records_free(r);
}

/* Hashes the rows that start in bytes [begin, end); false: a row cannot be read. */
static bool hash_rows(const char *text, size_t n, const ses_records_options *o, uint64_t begin, uint64_t end,
                      uint64_t *hash)
{
    const ses_string *row = NULL;
    ses_records *r = ses_records_from_text(text, n, o, NULL);
    bool ok = r && (!begin || ses_records_set_range(r, "", begin, end, NULL));
    if (ok && !begin && end < UINT64_MAX) ok = ses_records_set_range(r, "", 0, end, NULL);
    while (ok && (ok = ses_records_next(r, &row, NULL)) && row) {
        MUST(ses_records_offset(r) >= begin && ses_records_offset(r) < end);
        for (size_t k = 0; k < ses_records_field_count(r); k++) {
            uint64_t pair[2] = { *hash, ses_hash((ses_hash_key){ 1, 2 }, row[k].p, row[k].n) };
            *hash = ses_hash((ses_hash_key){ 1, 2 }, pair, sizeof pair);
        }
    }
    ses_records_free(r);
    return ok;
}

/* The rows of two parts are the rows of the whole. */
static void check_parts(const char *text, size_t n, const ses_records_options *o, uint64_t border)
{
    uint64_t whole = 0, parts = 0;
    if (!hash_rows(text, n, o, 0, UINT64_MAX, &whole)) return;
    MUST(hash_rows(text, n, o, 0, border, &parts));
    MUST(hash_rows(text, n, o, border, UINT64_MAX, &parts));
    MUST(whole == parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    const char *columns[] = { data[0] & 32 ? "b" : "2", "1" };
    ses_records_options o = { .format = (ses_table_format)(1 + data[0] % 3),
                              .quotes = data[0] & 4 ? SES_QUOTES_ON : SES_QUOTES_AUTO,
                              .no_header = data[0] & 8,
                              .ragged = data[0] & 16,
                              .max_row = data[0] & 128 ? 16 : 0 };
    if (data[0] & 64) o.columns = columns, o.n_columns = 2;
    ses_err e = { 0 };
    ses_records *r = ses_records_from_text((const char *)data + 1, n - 1, &o, &e);
    MUST(r || e.code == SES_EFORMAT || e.code == SES_EARG);
    drain(r, n);
    uint64_t border = 1 + (n > 2 ? (uint64_t)(data[1] * 256 + data[2]) % (n - 1) : 0);
    check_parts((const char *)data + 1, n - 1, &o, border);
    return 0;
}
