/* Shared parts of the passes of attention, on the blocks of attention_blocks.h: bounds, dropout, biases by
 * distance. Each pass is a file of its own at the vector levels; attention_bf16.c has both. */
#ifndef SES_KERNEL_ATTENTION_SHARED_H
#define SES_KERNEL_ATTENTION_SHARED_H

#include "attention_blocks.h"
#include "base/alloc.h"
#include "kernel/attention_chunking.h"
#include "kernel/parallel_items.h"
#include "kernel/simd/vec/vecmath.h"

#include <math.h>

enum {
    MAX_DIM = 256, /* larger heads use the reference kernel */
    QUERIES = 128, /* queries per chunk; keys and values are packed once per chunk */
    /* keys per block: whole panels; a sequence of 512 tokens is one block */
    KEYS = 528 / BK_COLS * BK_COLS,
};

/* Dropout factors of VF_LANES elements: 0 or `scale`, depending on the random numbers at `draw`. */
static inline vf keep_factor(const uint32_t *draw, vi threshold, vf scale)
{
    return vf_select(vi_ge_unsigned(vi_load(draw), threshold), scale, vf_zero());
}

enum { DRAWS = KEYS + 31 + 8 * VF_LANES }; /* buffer size of draw_row */

/* Random numbers of query i for keys j .. j+n-1. Returns a pointer to the first. */
static inline const uint32_t *draw_row(uint32_t *buffer, const ses_attn *a, ses_attn_seq_head part, int64_t i,
                                       int64_t j, int64_t n)
{
    uint64_t first = ses_attn_draw_index(a, part, i, j & ~(int64_t)31) / 8;
    int64_t skipped = j % 32;
    for (int64_t at = 0; at < skipped + n; at += 8 * VF_LANES)
        vf_drop_keys(buffer + at, a->rng_key, first + (uint64_t)at / 8);
    return buffer + skipped;
}

/* out[t] = rel_bias at distance r + t from the query, for one head; 0 outside the table. */
static inline void rel_bias_row(float *out, const ses_attn *a, int64_t head, int64_t r, int64_t n)
{
    for (int64_t t = 0; t < n; t++, r++)
        out[t] = r > -a->max_seqlen_k && r < a->max_seqlen_k
                     ? a->rel_bias[(r + a->max_seqlen_k - 1) * a->heads + head]
                     : 0;
}

/* x in the lanes begin .. end-1, counted from element `at`; `other` in the remaining lanes. */
VF_INLINE vf select_lanes(vf x, vf other, int64_t begin, int64_t end, int64_t at)
{
    if (begin <= at && end >= at + VF_LANES) return x;
    int64_t low = begin - at, high = end - at;
    low = low < 0 ? 0 : tile_min(low, VF_LANES);
    high = high < 0 ? 0 : tile_min(high, VF_LANES);
    return vf_select(vm_part(low), other, vf_select(vm_part(high), x, other));
}

/* Chunk `index` of the forward pass of this level (attention_simd.c): int8 attention computes long sequences
 * with it. */
void VF_NAME(ses_attention_chunk)(ses_attn *a, int64_t index, void *scratch);

#endif
