/* Reference sampling of a column per row of logits (Gumbel-max). */
#include "kernel/chunking.h"
#include "kernel/kernel.h"

#include <math.h>

typedef struct sample_args {
    int32_t *sampled;
    const ses_real *a;
    int64_t rows, cols;
    double temperature;
    ses_rng_key key;
} sample_args;

static void chunk_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const sample_args *d = ctx;
    ses_range r = ses_chunk(d->rows, ses_chunk_rows(d->cols), chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        uint32_t block[4];
        double best = -INFINITY;
        d->sampled[i] = 0;
        for (int64_t j = 0; j < d->cols; j++) {
            uint64_t at = (uint64_t)(i * d->cols + j);
            if (j == 0 || at % 4 == 0) ses_philox(block, d->key, at / 4);
            double u = (block[at % 4] + 0.5) * 0x1p-32, score = d->a[at] / d->temperature - log(-log(u));
            if (score > best) best = score, d->sampled[i] = (int32_t)j;
        }
    }
}

void ses_k_sample_ref(ses_exec *x, int32_t *sampled, const ses_real *a, int64_t rows, int64_t cols,
                      double temperature, ses_rng_key key)
{
    sample_args d = { sampled, a, rows, cols, temperature, key };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), chunk_rows, &d);
}
