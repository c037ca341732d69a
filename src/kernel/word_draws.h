/* Draws of skip-gram and CBOW: subsampling, windows, negative samples. The same source for CPU and GPU.
 * Random numbers are SplitMix64 (Steele et al. 2014) of a counter, functions of the pass and the position in
 * the text. */
#ifndef SES_KERNEL_WORD_DRAWS_H
#define SES_KERNEL_WORD_DRAWS_H

#include "kernel.h"

#define SES_WORD_GOLDEN 0x9e3779b97f4a7c15u

enum { SES_WORD_POSITION_BITS = 20 };

SES_HD static inline uint64_t ses_word_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Random numbers of one position: 2^SES_WORD_POSITION_BITS counters, two numbers of each. */
typedef struct ses_word_draws {
    uint64_t state, left;
    bool has_left;
} ses_word_draws;

SES_HD static inline ses_word_draws ses_word_draws_of(uint64_t start, int64_t position)
{
    ses_word_draws d = { start + ((uint64_t)position << SES_WORD_POSITION_BITS) * SES_WORD_GOLDEN, 0, false };
    return d;
}

SES_HD static inline uint32_t ses_word_draw(ses_word_draws *d)
{
    d->has_left = !d->has_left;
    if (!d->has_left) return (uint32_t)d->left;
    d->left = ses_word_mix(d->state += SES_WORD_GOLDEN);
    return (uint32_t)(d->left >> 32);
}

/* Subsampling: keeps a word if a random number is below its limit; UINT32_MAX: always. */
SES_HD static inline bool ses_word_keeps(uint32_t limit, uint64_t start, int64_t position)
{
    return limit == UINT32_MAX ||
           (uint32_t)(ses_word_mix(start + (uint64_t)position * SES_WORD_GOLDEN) >> 32) < limit;
}

/* Largest distance of a context, 1 to window, in kept words. */
SES_HD static inline int64_t ses_word_half(ses_word_draws *d, int64_t window)
{
    return 1 + (int64_t)((uint64_t)ses_word_draw(d) * (uint64_t)window >> 32);
}

/* The word of a random number: its high part selects the cell, the rest is compared with the threshold. */
SES_HD static inline int32_t ses_sampling_draw(const ses_sampling_cell *cell, size_t n, uint32_t random)
{
    uint64_t at = (uint64_t)random * n;
    const ses_sampling_cell *c = &cell[at >> 32];
    return (uint32_t)at < c->threshold ? (int32_t)(at >> 32) : c->alias;
}

/* ---- merging: u steps of size s, one after another, cover the part m(u) = 1 - exp(-u s) of the way to an
 * optimum. k workers that take u / k steps each from the same start cover k m(u / k) together: this is
 * the factor that makes it m(u), about 1 for rows with few steps and 1 / k for rows with many. ---- */

SES_HD static inline float ses_word_scale(float size, int64_t uses, int64_t k)
{
    float steps = size * (float)uses;
    return steps < 0.02f ? 1 : expm1f(-steps) / ((float)k * expm1f(-steps / (float)k));
}

/* ---- steps of ses_word_rounds ---- */

/* Position of step `step` of a round; -1: past the end of its part. */
SES_HD static inline int64_t ses_word_position(const ses_word_rounds *r, int64_t round, int64_t step)
{
    int64_t part = step / r->part_words;
    int64_t at = r->n * part / r->parts + round * r->part_words + step % r->part_words;
    return at < r->n * (part + 1) / r->parts ? at : -1;
}

/* Contexts of position p towards one side: the next `half` kept words of the sentence. Returns how many. */
SES_HD static inline int32_t ses_word_contexts(const ses_word_rounds *r, int64_t p, int64_t half, int side,
                                               int32_t *in)
{
    int32_t n = 0;
    for (int64_t q = p + side; n < half && q >= 0 && q < r->n && r->id[q] >= 0; q += side)
        if (ses_word_keeps(r->keep[r->id[q]], r->keep_start, q)) in[n++] = r->id[q];
    return n;
}

/* Outputs as 2 row + label. A sample that is an output already is left out. */
SES_HD static inline int32_t ses_word_outputs(const ses_word_rounds *r, int32_t word, ses_word_draws *d,
                                              int32_t *out)
{
    int32_t base = (int32_t)(2 * r->in_rows), n = 0;
    if (r->path) {
        for (int64_t i = r->path_start[word]; i < r->path_start[word + 1]; i++) out[n++] = base + r->path[i];
        return n;
    }
    out[n++] = base + 2 * word + 1;
    for (int32_t k = 1; k < r->outputs; k++) {
        int32_t row = base + 2 * ses_sampling_draw(r->negatives, (size_t)r->words, ses_word_draw(d)), i = 0;
        while (i < n && out[i] >> 1 != row >> 1) i++;
        if (i == n) out[n++] = row;
    }
    return n;
}

/* Rows of the step at position p: in [2 window], out [outputs]. n_in 0: no step. */
SES_HD static inline void ses_word_step_rows(const ses_word_rounds *r, int64_t p, int32_t *in, int32_t *n_in,
                                             int32_t *out, int32_t *n_out)
{
    *n_in = *n_out = 0;
    if (p < 0 || r->id[p] < 0 || !ses_word_keeps(r->keep[r->id[p]], r->keep_start, p)) return;
    ses_word_draws d = ses_word_draws_of(r->step_start, p);
    int64_t half = ses_word_half(&d, r->window);
    *n_in = ses_word_contexts(r, p, half, -1, in);
    *n_in += ses_word_contexts(r, p, half, 1, in + *n_in);
    if (*n_in) *n_out = ses_word_outputs(r, r->id[p], &d, out);
}

#endif
