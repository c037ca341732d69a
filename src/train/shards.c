/* Shards: units of the flat buffers, dealt to ranks in consecutive runs of nearly equal size. */
#include "shards.h"

#include "base/alloc.h"
#include "kernel/chunking.h"
#include "nn/store_impl.h"
#include "tensor/device_impl.h"

enum { ALIGN_CELLS = SES_ALIGN / sizeof(ses_real) }; /* slices of parameters start on cache lines */

static int64_t cell_size(int64_t n)
{
    return (ses_partial_size(n) + ALIGN_CELLS - 1) / ALIGN_CELLS * ALIGN_CELLS;
}

static void add_unit(ses_shards *s, int64_t begin, int64_t end, int64_t size)
{
    s->unit[s->n_units++] = (ses_shard_unit){ begin, end, size, s->n_cells };
    s->n_cells += ses_chunks(end - begin, size);
}

static void add_cells(ses_shards *s, int64_t flat)
{
    int64_t size = cell_size(flat);
    for (int64_t at = 0; at < flat; at += size) add_unit(s, at, at + size < flat ? at + size : flat, size);
}

/* A unit per parameter, which reaches to the next one. */
static void add_tensors(ses_shards *s, const ses_store *store, int64_t flat)
{
    int64_t begin = 0;
    for (size_t i = 0; i <= ses_store_count(store); i++) {
        int64_t next = i < ses_store_count(store) ? ses_store_flat_offset(store, i) : flat;
        if (next <= begin) continue;
        add_unit(s, begin, next, cell_size(next - begin));
        begin = next;
    }
}

/* Number of runs of at most `max` elements that the units need; fills first_unit and border, if it is at most
 * s->size. */
static int64_t deal(ses_shards *s, int64_t max)
{
    int64_t runs = 0, used = max + 1;
    for (size_t i = 0; i < s->n_units; i++) {
        int64_t n = s->unit[i].end - s->unit[i].begin;
        if (used + n > max || i == 0) {
            if (runs < s->size) s->first_unit[runs] = i, s->border[runs] = s->unit[i].begin;
            runs++, used = 0;
        }
        used += n;
    }
    return runs;
}

/* The smallest largest shard, by bisection. Ranks left over own nothing. */
static void balance(ses_shards *s, int64_t flat)
{
    int64_t low = (flat + s->size - 1) / s->size, high = flat;
    for (size_t i = 0; i < s->n_units; i++)
        if (s->unit[i].end - s->unit[i].begin > low) low = s->unit[i].end - s->unit[i].begin;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (deal(s, middle) <= s->size)
            high = middle;
        else
            low = middle + 1;
    }
    for (int64_t r = deal(s, high); r <= s->size; r++) s->first_unit[r] = s->n_units, s->border[r] = flat;
}

bool ses_shards_init(ses_shards *s, const ses_store *store, bool whole_tensors, int rank, int size,
                     ses_err *e)
{
    int64_t flat = ses_store_flat(store).n;
    size_t max = ses_store_count(store) + 1;
    *s = (ses_shards){ .rank = rank, .size = size };
    if (max < SES_MAX_PARTIALS) max = SES_MAX_PARTIALS;
    s->unit = ses_alloc_array(max, sizeof *s->unit, e);
    s->first_unit = s->unit ? ses_alloc_array((size_t)size + 1, sizeof *s->first_unit, e) : NULL;
    s->border = s->first_unit ? ses_alloc_array((size_t)size + 1, sizeof *s->border, e) : NULL;
    if (!s->border) return false;
    if (whole_tensors)
        add_tensors(s, store, flat);
    else
        add_cells(s, flat);
    balance(s, flat);
    return true;
}

void ses_shards_free(ses_shards *s)
{
    ses_free(s->unit);
    ses_free(s->first_unit);
    ses_free(s->border);
}

int64_t ses_shards_first_cell(const ses_shards *s, int r)
{
    return s->first_unit[r] < s->n_units ? s->unit[s->first_unit[r]].first_cell : s->n_cells;
}

/* Consecutive units of equal cells are one call. */
void ses_shards_squares(const ses_shards *s, ses_device *dev, const ses_real *grad, double *part)
{
    size_t end = s->first_unit[s->rank + 1];
    for (size_t i = s->first_unit[s->rank], next; i < end; i = next) {
        const ses_shard_unit *u = &s->unit[i];
        for (next = i + 1;
             next < end && s->unit[next].size == u->size && (s->unit[next].begin - u->begin) % u->size == 0;)
            next++;
        dev->k_f32.sum_squares_parts(&dev->exec, part + u->first_cell, grad + u->begin,
                                     s->unit[next - 1].end - u->begin, u->size);
    }
}
