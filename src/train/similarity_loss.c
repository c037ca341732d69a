/* Losses of sentence embeddings, composed of ops. */
#include "similarity_loss.h"

#include "nn/nn.h"

/* Texts from .. to - 1 of every example, grouped by their index in the example: [n * (to - from), W]. */
static ses_tensor *texts(ses_tape *t, ses_tensor *x, int64_t n, int64_t group, int64_t from, int64_t to)
{
    int32_t *row = ses_tape_host_alloc(t, (size_t)(n * (to - from)), sizeof *row);
    for (int64_t k = from; row && k < to; k++)
        for (int64_t i = 0; i < n; i++) row[(k - from) * n + i] = (int32_t)(i * group + k);
    return row ? ses_gather(t, x, ses_tape_ints(t, row, n * (to - from))) : NULL;
}

/* n equal values, of shape dim. */
static ses_tensor *filled(ses_tape *t, double value, int64_t n, const int64_t dim[SES_MAX_DIM])
{
    ses_real *a = ses_tape_host_alloc(t, (size_t)n, sizeof *a);
    for (int64_t i = 0; a && i < n; i++) a[i] = (ses_real)value;
    return a ? ses_tape_input(t, a, dim) : NULL;
}

/* Dot products of rows: [N, 1]. */
static ses_tensor *dots(ses_tape *t, ses_tensor *a, ses_tensor *b)
{
    ses_tensor *one = a ? filled(t, 1, ses_cols(a), SES_DIM(1, ses_cols(a))) : NULL;
    return one ? ses_linear(t, ses_mul(t, a, b), one, NULL, SES_ACT_NONE, SES_OUT_IN) : NULL;
}

static ses_tensor *minus(ses_tape *t, ses_tensor *a, ses_tensor *b)
{
    return ses_add(t, a, ses_scale(t, b, -1));
}

/* s - x, x [N, 1] */
static ses_tensor *from_number(ses_tape *t, double s, ses_tensor *x)
{
    return x ? minus(t, filled(t, s, ses_rows(x), SES_DIM(ses_rows(x), 1)), x) : NULL;
}

static ses_tensor *mean(ses_tape *t, ses_tensor *x)
{
    if (!x) return NULL;
    const int32_t cu[] = { 0, (int32_t)ses_rows(x) };
    return ses_reshape(t, ses_pool_rows(t, x, ses_tape_ints(t, cu, 2), SES_POOL_MEAN), SES_DIM(1));
}

static ses_tensor *cosines(ses_tape *t, ses_tensor *x, int64_t n)
{
    return dots(t, ses_l2_normalize(t, texts(t, x, n, 2, 0, 1)),
                ses_l2_normalize(t, texts(t, x, n, 2, 1, 2)));
}

ses_tensor *ses_loss_softmax(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *b, const int32_t *label,
                             int64_t n)
{
    ses_tensor *u = texts(t, x, n, 2, 0, 1), *v = texts(t, x, n, 2, 1, 2), *d = minus(t, u, v);
    ses_tensor *apart =
        ses_add(t, ses_activate(t, d, SES_ACT_RELU), ses_activate(t, ses_scale(t, d, -1), SES_ACT_RELU));
    bool products = u && w && ses_cols(w) == 4 * ses_cols(u);
    ses_tensor *all = products ? ses_concat(t, 4, (ses_tensor *const[]){ u, v, apart, ses_mul(t, u, v) })
                               : ses_concat(t, 3, (ses_tensor *const[]){ u, v, apart });
    ses_tensor *y = ses_linear(t, all, w, b, SES_ACT_NONE, SES_OUT_IN);
    return ses_cross_entropy(t, y, ses_tape_ints(t, label, n));
}

ses_tensor *ses_loss_cosine(ses_tape *t, ses_tensor *x, const ses_real *target, int64_t n)
{
    return ses_target_loss(t, cosines(t, x, n), ses_tape_input(t, target, SES_DIM(n)), SES_LOSS_MSE);
}

ses_tensor *ses_loss_contrastive(ses_tape *t, ses_tensor *x, const ses_real *y, int64_t n, double margin)
{
    ses_tensor *d = from_number(t, 1, cosines(t, x, n));
    ses_tensor *near = ses_activate(t, from_number(t, margin, d), SES_ACT_RELU);
    ses_real *rest = ses_tape_host_alloc(t, (size_t)n, sizeof *rest);
    for (int64_t i = 0; rest && i < n; i++) rest[i] = 1 - y[i];
    if (!rest) return NULL;
    ses_tensor *same = ses_scale_rows(t, ses_mul(t, d, d), ses_tape_input(t, y, SES_DIM(n))),
               *apart = ses_scale_rows(t, ses_mul(t, near, near), ses_tape_input(t, rest, SES_DIM(n)));
    return ses_scale(t, mean(t, ses_add(t, same, apart)), 0.5);
}

/* |a - b| = (a - b) . (a - b) / |a - b|; its gradient is that of the norm. */
static ses_tensor *distance(ses_tape *t, ses_tensor *a, ses_tensor *b)
{
    ses_tensor *d = minus(t, a, b);
    return dots(t, d, ses_l2_normalize(t, d));
}

ses_tensor *ses_loss_triplet(ses_tape *t, ses_tensor *x, int64_t n, double margin)
{
    ses_tensor *a = texts(t, x, n, 3, 0, 1), *p = texts(t, x, n, 3, 1, 2), *no = texts(t, x, n, 3, 2, 3);
    ses_tensor *gap = minus(t, distance(t, a, no), distance(t, a, p));
    return mean(t, ses_activate(t, from_number(t, margin, gap), SES_ACT_RELU));
}

ses_tensor *ses_loss_in_batch_negatives(ses_tape *t, ses_tensor *x, int64_t n, int64_t group, double scale)
{
    ses_tensor *first = ses_l2_normalize(t, texts(t, x, n, group, 0, 1)),
               *all = ses_l2_normalize(t, texts(t, x, n, group, 1, group));
    int32_t *labels = ses_tape_host_alloc(t, (size_t)n, sizeof *labels);
    for (int64_t i = 0; labels && i < n; i++) labels[i] = (int32_t)i;
    if (!labels) return NULL;
    ses_tensor *cos = ses_linear(t, first, all, NULL, SES_ACT_NONE, SES_OUT_IN);
    return ses_cross_entropy(t, ses_scale(t, cos, scale), ses_tape_ints(t, labels, n));
}
