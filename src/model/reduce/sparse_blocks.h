/* Magnitude pruning of dense weights in blocks of four consecutive inputs of one output, the blocks that
 * products with sparse int8 weights skip. Ownership and threads: as sesame/unstable/store.h. */
#ifndef SES_MODEL_SPARSE_BLOCKS_H
#define SES_MODEL_SPARSE_BLOCKS_H

#include "sesame/unstable/store.h"

typedef struct ses_sparse_blocks {
    int64_t blocks, zero; /* blocks of all weights that are stored in 8 bits; zero blocks */
} ses_sparse_blocks;

/* Sets the blocks with the smallest sums of squares to zero, the same share of each weight that is stored in
 * 8 bits (in the layers; not heads and embeddings). The store is on the CPU, not open for training,
 * and has values (no_packing). The values of a mapped file are copied first. Fails with SES_EARG if no weight
 * is stored in 8 bits, with SES_ENOMEM. */
bool ses_prune_blocks(ses_store *s, double share, ses_err *e);

/* Counts the zero blocks of these weights. */
ses_sparse_blocks ses_count_blocks(const ses_store *s);

#endif
