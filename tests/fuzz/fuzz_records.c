/* Rows of TSV, CSV and JSON lines: the first byte selects the options. */
#include "fuzz.h"
#include "sesame/table.h"

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
    return 0;
}
