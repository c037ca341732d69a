/* Who owns which part of a store's flat buffers in distributed training.
 *
 * The flat buffers (store_impl.h) are divided into cells. Cells depend on the store and the kind of
 * optimizer, not on the number of ranks: the sum of squares of the gradient is computed cell by cell and
 * added in order, so the gradient norm has the same bits for any number of ranks. A rank owns consecutive
 * cells: it keeps the optimizer's state of these elements and updates them.
 *
 * Elementwise optimizers: at most 256 cells of equal size. Optimizers that need whole tensors: the cells of a
 * parameter have one owner.
 *
 * ses_shards_init allocates, ses_shards_free frees. One thread. */
#ifndef SES_TRAIN_SHARDS_H
#define SES_TRAIN_SHARDS_H

#include "sesame/unstable/store.h"

/* Elements begin .. end - 1 of the flat buffers, which one rank owns, in cells of `size` elements; the last
 * cell may be smaller. */
typedef struct ses_shard_unit {
    int64_t begin, end, size, first_cell;
} ses_shard_unit;

typedef struct ses_shards {
    int rank, size;
    ses_shard_unit *unit;        /* [n_units], consecutive */
    size_t n_units, *first_unit; /* [size + 1]: rank r owns units first_unit[r] .. first_unit[r + 1] - 1 */
    int64_t *border;             /* [size + 1]: rank r owns elements border[r] .. border[r + 1] - 1 */
    int64_t n_cells;
} ses_shards;

bool ses_shards_init(ses_shards *s, const ses_store *store, bool whole_tensors, int rank, int size,
                     ses_err *e);
void ses_shards_free(ses_shards *s);

/* The first cell of rank r; r = size: the number of cells. */
int64_t ses_shards_first_cell(const ses_shards *s, int r);

/* Queues the sums of squares of this rank's cells of grad, the flat gradient; part: [n_cells], device
 * memory. */
void ses_shards_squares(const ses_shards *s, ses_device *dev, const ses_real *grad, double *part);

/* This rank's elements. */
static inline int64_t ses_shards_begin(const ses_shards *s) { return s->border[s->rank]; }
static inline int64_t ses_shards_end(const ses_shards *s) { return s->border[s->rank + 1]; }

#endif
