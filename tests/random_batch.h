/* Random batches for tests that apply to all architectures. */
#ifndef TESTS_RANDOM_BATCH_H
#define TESTS_RANDOM_BATCH_H

#include "base/rng.h"
#include "model/model_desc.h"

#include <string.h>

enum { RANDOM_SEQS = 6, RANDOM_TOKENS = 9 }; /* sequences, tokens of each: at most */

/* A random batch: ids, and for encoder-decoders a target as long as the input. */
typedef struct random_batch {
    int32_t cu[RANDOM_SEQS + 1], ids[RANDOM_SEQS * RANDOM_TOKENS], target[RANDOM_SEQS * RANDOM_TOKENS];
    ses_batch batch;
} random_batch;

static inline void random_batch_draw(random_batch *x, const ses_model *m, bool pair, uint32_t round)
{
    ses_rng_key key = { .seed = 11, .step = round };
    int64_t seqs = 1 + ses_rand32(key, 0) % RANDOM_SEQS, vocab = ses_model_vocab_size(m),
            source_vocab = ses_model_source_vocab_size(m);
    memset(x, 0, sizeof *x);
    for (int64_t s = 0; s < seqs; s++)
        x->cu[s + 1] = x->cu[s] + 1 + (int32_t)(ses_rand32(key, 1 + (uint64_t)s) % RANDOM_TOKENS);
    for (int32_t t = 0; t < x->cu[seqs]; t++) {
        x->ids[t] = (int32_t)(ses_rand32(key, 100 + (uint64_t)t) % (uint32_t)source_vocab);
        x->target[t] = (int32_t)(ses_rand32(key, 500 + (uint64_t)t) % (uint32_t)vocab);
    }
    x->batch = (ses_batch){ .seqs = seqs, .tokens = x->cu[seqs], .cu_seqlens = x->cu, .ids = x->ids };
    if (pair) x->batch.target_cu_seqlens = x->cu, x->batch.target_ids = x->target;
}

#endif
