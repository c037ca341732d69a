/* Integrated gradients (Sundararajan et al. 2017) on the token vectors: the gradient along the straight line
 * from a baseline to the input, by Gauss-Legendre quadrature, times their difference. The baseline has
 * padding tokens between the special tokens. */
#include "explain.h"

#include <math.h>
#include <string.h>

enum { MAX_STEPS = 400 };
static const double max_delta = 0.05; /* fraction of the difference of the scores */

/* Nodes and weights on [0, 1]: roots of the Legendre polynomial by Newton's method. */
static void gauss_legendre(int64_t n, double *node, double *weight)
{
    static const double pi = 3.14159265358979323846;
    for (int64_t i = 0; i < n; i++) {
        double x = cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), slope = 1;
        for (int k = 0; k < 100; k++) {
            double p0 = 1, p1 = x;
            for (int64_t j = 2; j <= n; j++) {
                double p2 = ((2 * (double)j - 1) * x * p1 - ((double)j - 1) * p0) / (double)j;
                p0 = p1, p1 = p2;
            }
            slope = (double)n * (x * p1 - p0) / (x * x - 1);
            double step = p1 / slope;
            x -= step;
            if (fabs(step) < 1e-15) break;
        }
        node[n - 1 - i] = (1 + x) / 2;
        weight[n - 1 - i] = 1 / ((1 - x * x) * slope * slope);
    }
}

/* The baseline's ids: special tokens stay. */
static int32_t *baseline_ids(ses_explain *x, int k, ses_err *e)
{
    const ses_explain_side *s = &x->side[k];
    int32_t id = ses_explain_baseline(x);
    if (id < 0) { /* the default */
        id = x->m->c.pad_id >= 0 ? (int32_t)x->m->c.pad_id : x->config.role[SES_ROLE_UNK];
        if (id < 0) id = x->config.role[SES_ROLE_EOS];
        if (!k && !x->repeated)
            ses_report_note(x->call->report, "The tokenizer has no padding token: the baseline is \"%s\".",
                            id >= 0 ? ses_explain_token_name(x, id, e) : "");
    }
    if (id < 0) {
        ses_fail(e, SES_EARG, "the tokenizer has no token for a baseline");
        return NULL;
    }
    int32_t *ids = ses_arena_array(&x->mem, (size_t)s->n + 1, sizeof *ids, e);
    for (int64_t i = 0; ids && i < s->n; i++) ids[i] = s->special[i] ? s->id[i] : id;
    return ids;
}

typedef struct path {
    ses_real *from[SES_EXPLAIN_SIDES], *to[SES_EXPLAIN_SIDES]; /* token vectors */
    ses_real *at[SES_EXPLAIN_SIDES], *grad[SES_EXPLAIN_SIDES]; /* [steps, vectors, width] */
    double *node, *weight, *score;
} path;

/* One pass over n steps and both ends. */
static bool integrate(ses_explain *x, path *h, int64_t n, ses_err *e)
{
    ses_explain_pass p = { .n = n + 2, .label = "integrating", .score = h->score };
    gauss_legendre(n, h->node, h->weight);
    h->node[n] = 0, h->node[n + 1] = 1;
    for (int k = 0; k < ses_explain_vector_sides(x); k++) {
        int64_t count = ses_explain_vectors(x, k) * x->width[k];
        for (int64_t i = 0; i < n + 2; i++)
            for (int64_t j = 0; j < count; j++) {
                double a = (double)h->from[k][j], b = (double)h->to[k][j];
                /* the ends exactly */
                h->at[k][i * count + j] = i == n + 1 ? h->to[k][j] : (ses_real)(a + h->node[i] * (b - a));
            }
        p.embeds[k] = h->at[k], p.grad[k] = h->grad[k];
    }
    return ses_explain_run(x, &p, e);
}

/* Sums gradient times difference by token. */
static double attribute(ses_explain *x, const path *h, int k, int64_t n, double *out)
{
    int64_t rows = ses_explain_vectors(x, k), C = x->width[k];
    double total = 0;
    for (int64_t t = 0; t < rows; t++) {
        out[t] = 0;
        for (int64_t j = t * C; j < (t + 1) * C; j++) {
            double g = 0;
            for (int64_t i = 0; i < n; i++) g += h->weight[i] * (double)h->grad[k][i * rows * C + j];
            out[t] += g * ((double)h->to[k][j] - (double)h->from[k][j]);
        }
        total += out[t];
    }
    return total;
}

static bool try_steps(ses_explain *x, path *h, int64_t n, ses_err *e)
{
    ses_mark mark = ses_arena_mark(&x->mem);
    size_t k = (size_t)n + 2;
    double *echo = ses_arena_array(&x->mem, (size_t)x->side[0].n + 1, sizeof *echo, e), total = 0;
    h->node = ses_arena_array(&x->mem, k, sizeof *h->node, e);
    h->weight = ses_arena_array(&x->mem, k, sizeof *h->weight, e);
    h->score = ses_arena_array(&x->mem, k, sizeof *h->score, e);
    bool ok = echo && h->node && h->weight && h->score;
    for (int s = 0; ok && s < ses_explain_vector_sides(x); s++) {
        size_t count = k * (size_t)(ses_explain_vectors(x, s) * x->width[s]);
        h->at[s] = ses_arena_array(&x->mem, count, sizeof(ses_real), e);
        h->grad[s] = h->at[s] ? ses_arena_array(&x->mem, count, sizeof(ses_real), e) : NULL;
        ok = h->grad[s] != NULL;
    }
    ok = ok && integrate(x, h, n, e);
    for (int s = 0; ok && s < ses_explain_vector_sides(x); s++)
        total += attribute(x, h, s, n, s && x->echo ? echo : x->value[s]);
    if (ok) {
        ses_explain_fold_echo(x, echo);
        x->base_score = h->score[n], x->score = h->score[n + 1];
        x->delta = total - (x->score - x->base_score);
        x->steps = n;
    }
    ses_arena_rewind(&x->mem, mark);
    return ok;
}

static bool run(ses_explain *x, ses_err *e)
{
    path h = { 0 };
    ses_explain_variant base = { { NULL } };
    for (int k = 0; k < SES_EXPLAIN_SIDES; k++)
        if (x->side[k].n && !(base.id[k] = baseline_ids(x, k, e))) return false;
    if (!ses_explain_embed(x, &base, h.from, e) || !ses_explain_embed(x, NULL, h.to, e)) return false;
    for (int64_t n = x->args->steps;; n *= 2) {
        if (!try_steps(x, &h, n, e)) return false;
        double difference = fabs(x->score - x->base_score);
        if (2 * n > MAX_STEPS || fabs(x->delta) <= max_delta * difference) return true;
    }
}

const ses_explain_method ses_explain_ig = {
    .description = "Integrated gradients: the values and the score of the baseline add up to the score.",
    .run = run,
};
