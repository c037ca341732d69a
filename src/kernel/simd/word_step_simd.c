/* Vectorized steps of word vectors, see ses_word_step. Products of a few inputs with a group of outputs fill
 * the lanes of one vector, so that sums and sigmoids are computed for all of them at once. */
#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

enum { GROUP = VF_LANES == 16 ? 8 : 4 }; /* outputs that are kept in registers */

/* Coefficients of a group of outputs: g [n][width], n = 1 for a bag. */
typedef struct group {
    float *const *y;
    float *g;
    int64_t width;
} group;

typedef struct step {
    const ses_word_step *s;
    float *const *x; /* s->x, or the mean of a bag */
    int64_t n;
    float *grad; /* NULL: inputs are updated; else receives the gradient of the only input */
    group group[SES_WORD_STEP_MAX];
    int64_t groups;
    float g[SES_WORD_STEP_MAX * SES_WORD_STEP_MAX + VF_LANES];
} step;

/* acc[i * tj + j] = partial products of x[i] and y[j]; the others are 0. */
VF_INLINE void products(const int ti, const int tj, const float *const *x, float *const *y, int64_t cols,
                        vf acc[VF_LANES])
{
    for (int k = 0; k < VF_LANES; k++) acc[k] = vf_zero();
    int64_t c = 0;
    for (; c + VF_LANES <= cols; c += VF_LANES) {
        vf b[GROUP];
        for (int j = 0; j < tj; j++) b[j] = vf_load(y[j] + c);
        for (int i = 0; i < ti; i++) {
            vf a = vf_load(x[i] + c);
            for (int j = 0; j < tj; j++) acc[i * tj + j] = vf_fma(a, b[j], acc[i * tj + j]);
        }
    }
    if (c == cols) return;
    for (int i = 0; i < ti; i++) {
        vf a = vf_load_part(x[i] + c, cols - c);
        for (int j = 0; j < tj; j++)
            acc[i * tj + j] = vf_fma(a, vf_load_part(y[j] + c, cols - c), acc[i * tj + j]);
    }
}

/* Probabilities that are not yet in the loss: their product, so that one logarithm serves several. Each is at
 * least e^-MAX_LOGIT. */
typedef struct product {
    vf p;
    int factors;
    double loss;
} product;

enum { MAX_LOGIT = 20, FACTORS = 4 };

VF_INLINE void settle(product *q)
{
    if (!q->factors) return;
    q->loss -= vf_sum_double(vf_log(q->p));
    q->p = vf_set1(1);
    q->factors = 0;
}

/* Coefficients of a group with tj outputs, ti inputs at a time. */
VF_INLINE void group_coefficients(const int ti, const int tj, step *t, const group *w, const float *sign,
                                  product *q)
{
    vf rate = vf_set1(t->s->rate), one = vf_set1(1);
    for (int64_t i = 0; i < t->n; i += ti) {
        const float *x[VF_LANES];
        vf acc[VF_LANES], s = vf_load(sign);
        int64_t valid = (t->n - i < ti ? t->n - i : ti) * tj;
        for (int k = 0; k < ti; k++) x[k] = t->x[i + k < t->n ? i + k : t->n - 1];
        products(ti, tj, x, w->y, t->s->cols, acc);
        vf z = vf_mul(s, vf_sum_each(acc)); /* logit of the correct label; bounds keep NaN */
        z = vf_min(vf_set1(80), vf_max(vf_set1(-MAX_LOGIT), z));
        vf e = vf_exp_bounded(vf_sub(vf_zero(), z)), p = vf_div(one, vf_add(one, e));
        vf_store(w->g + i * tj, vf_mul(vf_mul(s, rate), vf_mul(e, p)));
        q->p = vf_mul(q->p, vf_pad(p, one, valid));
        if (++q->factors == FACTORS) settle(q);
    }
}

#define TI_OF(tj) (VF_LANES / (tj) < 4 ? VF_LANES / (tj) : 4)
#define WIDTH_CASE(tj)                                        \
    case tj:                                                  \
        if (t->n == 1)                                        \
            group_coefficients(1, tj, t, w, sign, q);         \
        else                                                  \
            group_coefficients(TI_OF(tj), tj, t, w, sign, q); \
        break

static void coefficients(step *t, const group *w, const float *label, product *q)
{
    float sign[VF_LANES];
    for (int k = 0; k < VF_LANES; k++) sign[k] = label[k % w->width] > 0 ? 1 : -1;
    switch (w->width) {
        WIDTH_CASE(1);
        WIDTH_CASE(2);
        WIDTH_CASE(3);
        WIDTH_CASE(4);
#if VF_LANES == 16
        WIDTH_CASE(5);
        WIDTH_CASE(6);
        WIDTH_CASE(7);
        WIDTH_CASE(8);
#endif
    }
}

/* Updates columns c .. of a group. dx [n]: changes of the inputs so far; NULL: this is the only group. */
VF_INLINE void update_part(const int tj, step *t, const group *w, int64_t c, int64_t left, vf *dx)
{
    vf old[GROUP], dy[GROUP];
    for (int j = 0; j < tj; j++) old[j] = vf_get(w->y[j] + c, left), dy[j] = vf_zero();
    for (int64_t i = 0; i < t->n; i++) {
        const float *g = w->g + i * tj;
        vf x = vf_get(t->x[i] + c, left), d = dx ? dx[i] : vf_zero();
        for (int j = 0; j < tj; j++) {
            vf gj = vf_set1(g[j]);
            dy[j] = vf_fma(gj, x, dy[j]);
            d = vf_fma(gj, old[j], d);
        }
        if (dx)
            dx[i] = d;
        else if (t->grad)
            vf_put(t->grad + c, d, left);
        else
            vf_put(t->x[i] + c, vf_add(x, d), left);
    }
    for (int j = 0; j < tj; j++) vf_put(w->y[j] + c, vf_add(old[j], dy[j]), left);
}

VF_INLINE void update_only_group(const int tj, step *t)
{
    int64_t cols = t->s->cols, c = 0;
    for (; c + VF_LANES <= cols; c += VF_LANES) update_part(tj, t, t->group, c, VF_LANES, NULL);
    if (c < cols) update_part(tj, t, t->group, c, cols - c, NULL);
}

static void update_groups(step *t)
{
    int64_t cols = t->s->cols;
    for (int64_t c = 0; c < cols; c += VF_LANES) {
        int64_t left = cols - c;
        vf dx[SES_WORD_STEP_MAX];
        for (int64_t i = 0; i < t->n; i++) dx[i] = vf_zero();
        for (int64_t k = 0; k < t->groups; k++) {
            const group *w = &t->group[k];
            switch (w->width) {
            case 1: update_part(1, t, w, c, left, dx); break;
            case 2: update_part(2, t, w, c, left, dx); break;
            case 3: update_part(3, t, w, c, left, dx); break;
            case 4: update_part(4, t, w, c, left, dx); break;
#if VF_LANES == 16
            case 5: update_part(5, t, w, c, left, dx); break;
            case 6: update_part(6, t, w, c, left, dx); break;
            case 7: update_part(7, t, w, c, left, dx); break;
            case 8: update_part(8, t, w, c, left, dx); break;
#endif
            }
        }
        if (t->grad)
            vf_put(t->grad + c, dx[0], left);
        else
            for (int64_t i = 0; i < t->n; i++)
                vf_put(t->x[i] + c, vf_add(vf_get(t->x[i] + c, left), dx[i]), left);
    }
}

static void update(step *t)
{
    if (t->groups > 1) {
        update_groups(t);
        return;
    }
    switch (t->group[0].width) {
    case 1: update_only_group(1, t); break;
    case 2: update_only_group(2, t); break;
    case 3: update_only_group(3, t); break;
    case 4: update_only_group(4, t); break;
#if VF_LANES == 16
    case 5: update_only_group(5, t); break;
    case 6: update_only_group(6, t); break;
    case 7: update_only_group(7, t); break;
    case 8: update_only_group(8, t); break;
#endif
    }
}

static double run(step *t)
{
    const ses_word_step *s = t->s;
    product q = { vf_set1(1), 0, 0 };
    float *g = t->g;
    t->groups = (s->m + GROUP - 1) / GROUP;
    for (int64_t k = 0; k < t->groups; k++) {
        int64_t from = s->m * k / t->groups, to = s->m * (k + 1) / t->groups;
        t->group[k] = (group){ s->y + from, g, to - from };
        coefficients(t, &t->group[k], s->label + from, &q);
        g += t->n * (to - from);
    }
    settle(&q);
    update(t);
    return q.loss;
}

double VF_NAME(ses_k_word_step)(const ses_word_step *s)
{
    step t;
    t.s = s, t.x = s->x, t.n = s->n, t.grad = NULL;
    return run(&t);
}

double VF_NAME(ses_k_bag_step)(const ses_word_step *s, float *scratch)
{
    step t;
    float *grad = scratch + s->cols;
    vf share = vf_set1(1 / (float)s->n);
    for (int64_t c = 0; c < s->cols; c += VF_LANES) {
        int64_t left = s->cols - c;
        vf sum = vf_get(s->x[0] + c, left);
        for (int64_t i = 1; i < s->n; i++) sum = vf_add(sum, vf_get(s->x[i] + c, left));
        vf_put(scratch + c, vf_mul(sum, share), left);
    }
    t.s = s, t.x = &scratch, t.n = 1, t.grad = grad;
    double loss = run(&t);
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t c = 0; c < s->cols; c += VF_LANES) {
            int64_t left = s->cols - c;
            vf_put(s->x[i] + c, vf_add(vf_get(s->x[i] + c, left), vf_get(grad + c, left)), left);
        }
    return loss;
}

void VF_NAME(ses_k_merge_rows)(float *row, const float *const *copy, int64_t n, float scale, int64_t cols)
{
    for (int64_t c = 0; c < cols; c += VF_LANES) {
        int64_t left = cols - c;
        vf old = vf_get(row + c, left), sum = vf_zero();
        for (int64_t k = 0; k < n; k++) sum = vf_add(sum, vf_sub(vf_get(copy[k] + c, left), old));
        vf_put(row + c, vf_fma(vf_set1(scale), sum, old), left);
    }
}
