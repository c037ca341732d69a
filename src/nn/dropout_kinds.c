/* Dropout that recurrent models share over time or over whole tokens. Random numbers depend on the sequence's
 * or the token's number in the batch, or on the vocabulary entry. */
#include "nn.h"

#include "base/rng.h"

/* 0, or `keep`, with probability rate. */
static ses_real draw(ses_rng_key key, uint64_t i, double rate, double keep)
{
    return (ses_real)((double)ses_rand_unit(key, i) < rate ? 0 : keep);
}

static ses_tensor *scale_tokens(ses_forward_ctx *p, ses_tensor *x, const ses_real *weight, int64_t n)
{
    ses_tensor *w = weight ? ses_tape_input(p->tape, weight, SES_DIM(n)) : NULL;
    return w ? ses_scale_rows(p->tape, x, w) : NULL;
}

ses_tensor *ses_dropout_locked(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, double rate)
{
    ses_tape *t = p->tape;
    ses_rng_key key = ses_tape_rng_key(t);
    if (rate == 0 || !x || !ses_tape_training(t)) return x;
    int64_t C = ses_cols(x);
    ses_real *mask = ses_tape_host_alloc(t, (size_t)(q->seqs * C), sizeof *mask);
    int32_t *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row);
    if (!mask || !row) return NULL;
    for (int64_t i = 0; i < q->seqs * C; i++) mask[i] = draw(key, (uint64_t)i, rate, 1 / (1 - rate));
    for (int64_t s = 0; s < q->seqs; s++)
        for (int32_t i = q->host_cu_seqlens[s]; i < q->host_cu_seqlens[s + 1]; i++) row[i] = (int32_t)s;
    return ses_mul(
        t, x, ses_gather(t, ses_tape_input(t, mask, SES_DIM(q->seqs, C)), ses_tape_ints(t, row, q->tokens)));
}

ses_tensor *ses_dropout_tokens(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, double rate,
                               bool rescale)
{
    ses_rng_key key = ses_tape_rng_key(p->tape);
    if (rate == 0 || !x || !ses_tape_training(p->tape)) return x;
    ses_real *weight = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *weight);
    for (int64_t i = 0; weight && i < q->tokens; i++)
        weight[i] = draw(key, (uint64_t)i, rate, rescale ? 1 / (1 - rate) : 1);
    return scale_tokens(p, x, weight, q->tokens);
}

ses_tensor *ses_dropout_types(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, double rate)
{
    ses_rng_key key = ses_tape_rng_key(p->tape);
    if (rate == 0 || !x || !ses_tape_training(p->tape)) return x;
    ses_real *weight = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *weight);
    for (int64_t i = 0; weight && i < q->tokens; i++)
        weight[i] = draw(key, (uint64_t)q->host_ids[i], rate, 1 / (1 - rate));
    return scale_tokens(p, x, weight, q->tokens);
}
