/* Sampled softmax. Column 0 of the logits belongs to the label of the row, the other columns to the
 * negatives. If the label is a negative itself, that column is the label's and column 0 is left out, which
 * equals TensorFlow's removal of accidental hits. */
#include "sampled_softmax.h"

#include <math.h>

static double probability(int64_t vocab, int32_t id)
{
    return log((id + 2.0) / (id + 1.0)) / log((double)vocab + 1);
}

double ses_log_uniform_expected(const ses_log_uniform *s, int32_t id)
{
    return -expm1((double)s->tries * log1p(-probability(s->vocab, id)));
}

ses_log_uniform ses_log_uniform_draw(ses_tape *t, ses_rng_key key, int64_t n, int64_t vocab)
{
    int32_t *id = ses_tape_host_alloc(t, (size_t)n, sizeof *id),
            *at = ses_tape_host_alloc(t, (size_t)vocab, sizeof *at);
    ses_log_uniform s = { .id = id, .at = at, .vocab = vocab };
    if (!id || !at) return (ses_log_uniform){ 0 };
    for (; s.n < n; s.tries++) {
        uint32_t bits[4];
        ses_philox(bits, key, (uint64_t)s.tries);
        double u = ((double)bits[0] + (double)(bits[1] >> 12) * 0x1p-20) * 0x1p-32; /* [0, 1), 52 bits */
        int32_t k = (int32_t)(exp(u * log((double)vocab + 1)) - 1);
        if (k >= vocab) k = (int32_t)vocab - 1;
        if (at[k]) continue;
        id[s.n++] = k;
        at[k] = (int32_t)s.n;
    }
    return s;
}

/* A column of host values. */
static ses_tensor *column(ses_tape *t, const ses_real *x, int64_t n)
{
    return x ? ses_tape_input(t, x, SES_DIM(n, 1)) : NULL;
}

static ses_tensor *ones(ses_tape *t, int64_t rows, int64_t cols)
{
    ses_real *x = ses_tape_host_alloc(t, (size_t)(rows * cols), sizeof *x);
    for (int64_t i = 0; x && i < rows * cols; i++) x[i] = 1;
    return x ? ses_tape_input(t, x, SES_DIM(rows, cols)) : NULL;
}

/* Rows of the bias as a column, plus `more`. */
static ses_tensor *biases(ses_tape *t, const ses_dense *out, ses_tensor *ids, ses_tensor *more)
{
    if (!out->b) return more;
    ses_tensor *all = ses_reshape(t, out->b, SES_DIM(ses_count(out->b), 1));
    return ses_add(t, ses_gather(t, all, ids), more);
}

/* x w[id]' + b[id] - log(expected): [rows of x, s->n]. */
static ses_tensor *negatives(ses_tape *t, ses_tensor *x, const ses_dense *out, const ses_log_uniform *s)
{
    ses_real *correct = ses_tape_host_alloc(t, (size_t)s->n, sizeof *correct);
    for (int64_t i = 0; correct && i < s->n; i++)
        correct[i] = (ses_real)-log(ses_log_uniform_expected(s, s->id[i]));
    ses_tensor *ids = ses_tape_ints(t, s->id, s->n), *b = biases(t, out, ids, column(t, correct, s->n));
    b = b ? ses_reshape(t, b, SES_DIM(s->n)) : NULL;
    return b ? ses_linear(t, x, ses_gather(t, out->w, ids), b, SES_ACT_NONE, SES_OUT_IN) : NULL;
}

ses_tensor *ses_sampled_softmax(ses_tape *t, ses_tensor *x, const ses_dense *out, const int32_t *label,
                                int64_t n, const ses_log_uniform *s)
{
    static const ses_real left_out = -1e30f;
    ses_real *correct = ses_tape_host_alloc(t, (size_t)n, sizeof *correct);
    int32_t *target = ses_tape_host_alloc(t, (size_t)n, sizeof *target);
    if (!correct || !target || !s->id || !x) return NULL;
    for (int64_t r = 0; r < n; r++) {
        bool hit = s->at[label[r]] != 0;
        correct[r] = hit ? left_out : (ses_real)-log(ses_log_uniform_expected(s, label[r]));
        target[r] = s->at[label[r]]; /* column 0: the label's own */
    }
    ses_tensor *ids = ses_tape_ints(t, label, n), *b = biases(t, out, ids, column(t, correct, n));
    ses_tensor *products = ses_mul(t, x, ses_gather(t, out->w, ids));
    ses_tensor *own =
        ses_add(t, ses_linear(t, products, ones(t, 1, ses_cols(x)), NULL, SES_ACT_NONE, SES_OUT_IN), b);
    ses_tensor *all = ses_concat(t, 2, (ses_tensor *const[]){ own, negatives(t, x, out, s) });
    return ses_cross_entropy(t, all, ses_tape_ints(t, target, n));
}
