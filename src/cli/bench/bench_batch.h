/* Batches of invented ids and labels for any model class. Ownership: free with ses_bench_batch_free. */
#ifndef SES_CLI_BENCH_BATCH_H
#define SES_CLI_BENCH_BATCH_H

#include "base/arena.h"
#include "run/batch_builder.h"

enum { SES_BENCH_LABEL_EVERY = 7 }; /* one token of 7 has a label in masked language models: about 15 % */

/* A batch as --load describes it. */
typedef struct ses_bench_load {
    int64_t seqs, len;
    const int64_t *lengths; /* one per sequence, instead of len; NULL: all equal */
} ses_bench_load;

/* "8x128" or "12+7+30". *lengths: memory of l->lengths, which the caller frees, even after an error. */
bool ses_bench_load_parse(const char *text, ses_bench_load *l, int64_t **lengths, ses_err *e);

typedef struct ses_bench_batch {
    ses_batch batch;
    ses_batch_builder in;
    ses_arena mem;
} ses_bench_batch;

/* Sequences of these lengths; a decoder beside an encoder reads targets of the same lengths. With `labels`,
 * the batch has labels for every head: masked language models predict one token of 7, other heads all tokens,
 * sequences or questions. */
bool ses_bench_batch_fill(ses_bench_batch *b, const ses_model *m, const int64_t *length, int64_t seqs,
                          bool labels, ses_err *e);
void ses_bench_batch_free(ses_bench_batch *b);

#endif
