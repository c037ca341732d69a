/* BART's noise functions (Lewis et al. 2020): masking, deletion, infilling, permutation and rotation. */
#include "noise.h"

bool ses_noised_text_init(ses_noised_text *t, const ses_passage *p, ses_err *e)
{
    t->id.n = t->starts.n = t->source_pos.n = 0;
    for (int64_t i = 0; i < p->n; i++)
        if (!ses_ints_push(&t->id, p->id[i], e) || !ses_ints_push(&t->starts, p->starts[i], e) ||
            !ses_ints_push(&t->source_pos, (int32_t)i, e))
            return false;
    return true;
}

void ses_noised_text_free(ses_noised_text *t)
{
    ses_ints *all[] = { &t->id,         &t->starts,         &t->source_pos, &t->old_id,
                        &t->old_starts, &t->old_source_pos, &t->order };
    for (size_t i = 0; i < SES_LEN(all); i++) ses_ints_free(all[i]);
}

/* Makes the current text the old one, and the new text empty. */
static void swap_buffers(ses_noised_text *t)
{
    ses_ints id = t->old_id, starts = t->old_starts, from = t->old_source_pos;
    t->old_id = t->id, t->old_starts = t->starts, t->old_source_pos = t->source_pos;
    t->id = id, t->starts = starts, t->source_pos = from;
    t->id.n = t->starts.n = t->source_pos.n = 0;
}

static bool copy(ses_noised_text *t, int64_t begin, int64_t end, ses_err *e)
{
    return ses_ints_append(&t->id, t->old_id.p + begin, end - begin, e) &&
           ses_ints_append(&t->starts, t->old_starts.p + begin, end - begin, e) &&
           ses_ints_append(&t->source_pos, t->old_source_pos.p + begin, end - begin, e);
}

static bool put_mask(ses_noised_text *t, int32_t mask, ses_err *e)
{
    return ses_ints_push(&t->id, mask, e) && ses_ints_push(&t->starts, SES_STARTS_WORD, e) &&
           ses_ints_push(&t->source_pos, -1, e);
}

/* Start positions of the parts that begin with any of the flags (0: every token), and the end, in
 * t->order. */
static bool find_parts(ses_noised_text *t, const ses_ints *starts, int flags, ses_err *e)
{
    t->order.n = 0;
    for (size_t i = 0; i < starts->n; i++)
        if ((i == 0 || !flags || (starts->p[i] & flags)) && !ses_ints_push(&t->order, (int32_t)i, e))
            return false;
    return ses_ints_push(&t->order, (int32_t)starts->n, e);
}

bool ses_noise_permute(ses_noised_text *t, ses_rng_stream *d, ses_err *e)
{
    swap_buffers(t);
    if (!find_parts(t, &t->old_starts, SES_STARTS_SENTENCE | SES_STARTS_DOCUMENT, e)) return false;
    int64_t n = (int64_t)t->order.n - 1;
    if (!ses_ints_append(&t->order, NULL, n, e)) return false;
    int32_t *begin = t->order.p, *order = t->order.p + n + 1;
    for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
    ses_draw_shuffle(d, order, n);
    for (int64_t i = 0; i < n; i++)
        if (!copy(t, begin[order[i]], begin[order[i] + 1], e)) return false;
    return true;
}

bool ses_noise_rotate(ses_noised_text *t, ses_rng_stream *d, ses_err *e)
{
    swap_buffers(t);
    int64_t n = (int64_t)t->old_id.n, first = ses_draw_below(d, n);
    return copy(t, first, n, e) && copy(t, 0, first, e);
}

/* Masks or deletes rate * n tokens, stochastically rounded. Deletion keeps at least one token. */
static bool mask_or_delete(ses_noised_text *t, double rate, bool delete, int32_t mask, ses_rng_stream *d,
                           ses_err *e)
{
    swap_buffers(t);
    int64_t n = (int64_t)t->old_id.n, want = ses_draw_round(d, rate * (double)n);
    if (delete &&want > n - 1) want = n - 1;
    for (int64_t i = 0; i < n; i++) {
        bool chosen = ses_draw_unit(d) * (double)(n - i) < (double)want;
        want -= chosen;
        if (!chosen ? !copy(t, i, i + 1, e) : !delete &&!put_mask(t, mask, e)) return false;
        if (chosen && !delete) t->starts.p[t->starts.n - 1] = t->old_starts.p[i];
    }
    return true;
}

bool ses_noise_mask(ses_noised_text *t, double rate, int32_t mask, ses_rng_stream *d, ses_err *e)
{
    return mask_or_delete(t, rate, false, mask, d, e);
}

bool ses_noise_delete(ses_noised_text *t, double rate, ses_rng_stream *d, ses_err *e)
{
    return mask_or_delete(t, rate, true, 0, d, e);
}

/* Appends span lengths that sum to `words`, possibly 0, to t->order. */
static bool draw_lengths(ses_noised_text *t, int64_t words, double mean, ses_rng_stream *d, ses_err *e)
{
    while (words > 0) {
        int64_t len = ses_draw_poisson(d, mean);
        if (len > words) len = words;
        if (!ses_ints_push(&t->order, (int32_t)len, e)) return false;
        words -= len;
    }
    return true;
}

bool ses_noise_infill(ses_noised_text *t, double rate, double mean, bool tokens, int32_t mask,
                      ses_rng_stream *d, ses_err *e)
{
    const int begins = SES_STARTS_WORD | SES_STARTS_SENTENCE | SES_STARTS_DOCUMENT;
    swap_buffers(t);
    if (!find_parts(t, &t->old_starts, tokens ? 0 : begins, e)) return false;
    size_t first = t->order.n;
    int64_t words = (int64_t)first - 1, hidden = ses_draw_round(d, rate * (double)words);
    if (!draw_lengths(t, hidden, mean, d, e)) return false;
    const int32_t *begin = t->order.p, *len = t->order.p + first;
    /* Spans are in different gaps between the kept words, so that no two masks are adjacent. */
    int64_t spans = (int64_t)(t->order.n - first), gaps = words - hidden + 1, at = 0;
    for (int64_t g = 0, k = 0; g < gaps; g++) {
        bool here = k < spans && ses_draw_unit(d) * (double)(gaps - g) < (double)(spans - k);
        if (here) {
            if (!put_mask(t, mask, e)) return false;
            at += len[k++];
            for (; gaps - g - 1 < spans - k; k++) at += len[k]; /* more spans than gaps: merge them */
        }
        if (g + 1 < gaps && !copy(t, begin[at], begin[at + 1], e)) return false;
        at++;
    }
    return true;
}
