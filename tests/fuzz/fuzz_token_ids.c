/* A line of token ids, as `sesame detokenize` reads it. Accepted ids, written as numbers and as a JSON array,
 * are read again as the same ids. */
#include "base/alloc.h"
#include "base/str.h"
#include "cli/cmd/token_ids.h"
#include "fuzz.h"

static void check_again(const ses_token_ids *ids, const char *open, const char *between, const char *close)
{
    ses_err e = { 0 };
    ses_buf b = { 0 };
    ses_token_ids again = { 0 };
    ses_buf_puts(&b, open);
    for (size_t i = 0; i < ids->n; i++) ses_buf_appendf(&b, "%s%d", i ? between : "", ids->id[i]);
    ses_buf_puts(&b, close);
    MUST(ses_buf_ok(&b, &e) && ses_token_ids_read(&again, b.data ? b.data : "", b.len, &e));
    MUST(again.n == ids->n && (!ids->n || !memcmp(again.id, ids->id, ids->n * sizeof *ids->id)));
    ses_free(again.id);
    ses_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_token_ids ids = { 0 };
    bool ok = ses_token_ids_read(&ids, (const char *)data, n, &e);
    MUST(ok ? e.code == SES_OK : e.code == SES_EFORMAT || e.code == SES_EARG);
    MUST(!ok || ids.n <= n);
    if (ok) {
        bool negative = false; /* only JSON has signs */
        for (size_t i = 0; i < ids.n; i++) negative |= ids.id[i] < 0;
        if (!negative) check_again(&ids, " ", ",\t", "\r");
        check_again(&ids, "{\"ids\": [", ", ", "]}");
    }
    ses_free(ids.id);
    return 0;
}
