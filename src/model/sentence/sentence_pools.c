/* Pooling modes of sentence encoders. */
#include "sentence_impl.h"

#include <math.h>

int32_t *ses_sentence_single_token(const ses_pooled_tokens *f, ses_tape *t, ses_sentence_pool mode)
{
    const ses_batch *b = f->b;
    int32_t *row = ses_tape_host_alloc(t, (size_t)b->seqs, sizeof *row);
    for (int64_t s = 0; row && s < b->seqs; s++) {
        int32_t begin = b->cu_seqlens[s], end = b->cu_seqlens[s + 1], first = begin + f->skipped[s];
        row[s] = mode == SES_SENTENCE_POOL_LAST ? (first == end ? SES_IGNORE_INDEX : end - 1)
                 : first == end                 ? begin
                                                : first;
    }
    return row;
}

/* Weighted mean; token i of the sequence (from 1, including the prompt) has weight i. */
ses_tensor *ses_sentence_pool_weighted(const ses_pooled_tokens *f, ses_tape *t)
{
    ses_real *w = ses_tape_host_alloc(t, (size_t)ses_rows(f->x), sizeof *w);
    for (int64_t s = 0; w && s < f->b->seqs; s++) {
        int32_t begin = f->host_cu[s], n = f->host_cu[s + 1] - begin;
        double first = f->skipped[s] + 1, sum = n * (first + (n - 1) / 2.0);
        for (int32_t i = 0; i < n; i++) w[begin + i] = (ses_real)((first + i) * n / sum);
    }
    if (!w) return NULL;
    ses_tensor *weight = ses_tape_input(t, w, SES_DIM(ses_rows(f->x)));
    return ses_pool_rows(t, ses_scale_rows(t, f->x, weight), f->cu, SES_POOL_MEAN);
}

/* Sum divided by the square root of the length. */
ses_tensor *ses_sentence_pool_sqrt(const ses_pooled_tokens *f, ses_tape *t)
{
    int64_t seqs = f->b->seqs;
    ses_real *w = ses_tape_host_alloc(t, (size_t)seqs, sizeof *w);
    if (!w) return NULL;
    for (int64_t s = 0; s < seqs; s++) w[s] = (ses_real)sqrt((double)(f->host_cu[s + 1] - f->host_cu[s]));
    return ses_scale_rows(t, ses_pool_rows(t, f->x, f->cu, SES_POOL_MEAN),
                          ses_tape_input(t, w, SES_DIM(seqs)));
}

ses_tensor *ses_sentence_pool_max(const ses_pooled_tokens *f, ses_tape *t)
{
    return ses_pool_rows(t, f->x, f->cu, SES_POOL_MAX);
}

ses_tensor *ses_sentence_pool_mean(const ses_pooled_tokens *f, ses_tape *t)
{
    return ses_pool_rows(t, f->x, f->cu, SES_POOL_MEAN);
}

static ses_tensor *gather(const ses_pooled_tokens *f, ses_tape *t, ses_sentence_pool mode)
{
    const int32_t *row = ses_sentence_single_token(f, t, mode);
    return row ? ses_gather(t, f->all, ses_tape_ints(t, row, f->b->seqs)) : NULL;
}

ses_tensor *ses_sentence_pool_first(const ses_pooled_tokens *f, ses_tape *t)
{
    return gather(f, t, SES_SENTENCE_POOL_FIRST);
}

ses_tensor *ses_sentence_pool_last(const ses_pooled_tokens *f, ses_tape *t)
{
    return gather(f, t, SES_SENTENCE_POOL_LAST);
}
