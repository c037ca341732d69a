/* Sequences of token ids, as `sesame run --ids` reads them, one per line. The first byte selects the limits.
 * Accepted ids are within the limits, and the offsets of the sequences are in order. */
#include "base/alloc.h"
#include "cli/inspect/id_reader.h"
#include "fuzz.h"

static void check(const ses_ints *ids, const ses_ints *cu, int64_t seqs, int64_t vocab)
{
    for (int64_t i = 0; i < seqs; i++) MUST(cu->p[i] <= cu->p[i + 1]);
    MUST(!seqs || (size_t)cu->p[seqs] == ids->n);
    for (size_t i = 0; i < ids->n; i++) MUST(ids->p[i] >= 0 && ids->p[i] < vocab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    const ses_id_limits limit = { .vocab = 1000,
                                  .tokens = data[0] & 1 ? 8 : 100,
                                  .segments = data[0] & 2 ? 2 : 1,
                                  .target = data[0] & 4,
                                  .start = data[0] & 8 ? 5 : -1 };
    char *text = malloc(n), *files[] = { NULL };
    MUST(text);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    const char *ids[] = { text, "1 2 3" };
    ses_id_reader r = { .file = files };
    r.ids.item = ids, r.ids.n = 2;
    ses_id_batch all = { 0 };
    ses_id_read_status status;
    int errors = 0;
    for (size_t i = 0; i <= n + 2; i++) { /* a sequence has a byte at least */
        ses_err e = { 0 };
        int64_t seqs = all.seqs;
        size_t tokens = all.in.ids.n;
        status = ses_id_reader_next(&r, &limit, &all, &e);
        if (status == SES_ID_READ_END) break;
        MUST(status == SES_ID_READ_OK ? all.seqs == seqs + 1
                                      : all.seqs == seqs && all.in.ids.n == tokens && e.code != SES_OK);
        errors += status == SES_ID_READ_ERROR;
    }
    MUST(status == SES_ID_READ_END && (all.seqs || errors));
    check(&all.in.ids, &all.in.cu_seqlens, all.seqs, limit.vocab);
    if (limit.target) check(&all.in.target_ids, &all.in.target_cu_seqlens, all.seqs, limit.vocab);
    ses_id_batch_free(&all);
    ses_id_reader_close(&r);
    free(text);
    return 0;
}
