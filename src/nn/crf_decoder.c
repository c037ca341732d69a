/* Decoding of a CRF: see crf_decoder.h. */
#include "crf_decoder.h"

#include "base/alloc.h"
#include "nn.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

/* A parameter of the CRF as doubles; NULL with no error: the store has none. */
static double *read_param(const ses_store *s, const char *name, ses_arena *mem, ses_err *e)
{
    const ses_param *p = ses_store_find(s, name);
    if (!p) return NULL;
    int64_t n = ses_count(p->tensor);
    double *out = ses_arena_array(mem, (size_t)n, sizeof *out, e);
    ses_real *x = out ? ses_alloc_array((size_t)n, sizeof *x, e) : NULL;
    bool ok = x && ses_device_read(ses_store_device(s), p->tensor, 0, n, x, e);
    for (int64_t i = 0; ok && i < n; i++) out[i] = (double)x[i];
    ses_free(x);
    return ok ? out : NULL;
}

static void forbid(ses_crf_decoder *d, ses_tag_scheme scheme, const char *const *label)
{
    for (int64_t i = 0; i < d->labels; i++) {
        ses_tag a = ses_tag_parse(label[i], strlen(label[i]));
        if (!ses_tag_allowed(scheme, NULL, &a)) d->start[i] = -INFINITY;
        if (!ses_tag_allowed(scheme, &a, NULL)) d->end[i] = -INFINITY;
        for (int64_t j = 0; j < d->labels; j++) {
            ses_tag b = ses_tag_parse(label[j], strlen(label[j]));
            if (!ses_tag_allowed(scheme, &a, &b)) d->trans[i * d->labels + j] = -INFINITY;
        }
    }
}

bool ses_crf_decoder_init(ses_crf_decoder *d, const ses_store *s, ses_tag_scheme scheme,
                          const char *const *label, size_t n, ses_arena *mem, bool *found, ses_err *e)
{
    *d = (ses_crf_decoder){ .labels = (int64_t)n };
    *found = ses_store_find(s, SES_CRF_TRANSITIONS) != NULL;
    if (!*found) return true;
    d->trans = read_param(s, SES_CRF_TRANSITIONS, mem, e);
    d->start = d->trans ? read_param(s, SES_CRF_START, mem, e) : NULL;
    d->end = d->start ? read_param(s, SES_CRF_END, mem, e) : NULL;
    if (!d->end) return false;
    if (ses_count(ses_store_find(s, SES_CRF_START)->tensor) != d->labels)
        return ses_fail(e, SES_EARG, "the CRF and its labels differ in number");
    if (scheme != SES_TAGS_PLAIN && label) forbid(d, scheme, label);
    return true;
}

typedef struct chain {
    const ses_crf_decoder *d;
    const float *x;
    const int32_t *row;
    int64_t n;
    bool free_steps; /* forbidden steps cost nothing instead */
} chain;

static double score(const chain *c, int64_t t, int64_t label)
{
    return (double)c->x[(c->row ? c->row[t] : t) * c->d->labels + label];
}

static double step(const chain *c, double s) { return c->free_steps && s == -INFINITY ? 0 : s; }

/* The best path; its score. work: [2 L], back: [n, L]. */
static double viterbi(const chain *c, double *work, int32_t *back, int32_t *best)
{
    int64_t L = c->d->labels;
    double *now = work, *next = work + L;
    for (int64_t j = 0; j < L; j++) now[j] = step(c, c->d->start[j]) + score(c, 0, j);
    for (int64_t t = 1; t < c->n; t++) {
        double top = -INFINITY;
        for (int64_t j = 0; j < L; j++) {
            int64_t from = 0;
            double s = now[0] + step(c, c->d->trans[j]);
            for (int64_t i = 1; i < L; i++) {
                double other = now[i] + step(c, c->d->trans[i * L + j]);
                if (other > s) s = other, from = i;
            }
            back[t * L + j] = (int32_t)from;
            next[j] = s + score(c, t, j);
            top = fmax(top, next[j]);
        }
        /* a common term changes no path, and sums stay small */
        for (int64_t j = 0; j < L; j++) now[j] = top > -INFINITY ? next[j] - top : next[j];
    }
    int64_t at = 0;
    for (int64_t j = 0; j < L; j++) {
        now[j] += step(c, c->d->end[j]);
        if (now[j] > now[at]) at = j;
    }
    double s = now[at];
    for (int64_t t = c->n - 1; t >= 0; t--) {
        best[t] = (int32_t)at;
        if (t) at = back[t * L + at];
    }
    return s;
}

/* log(sum_i exp(a[i])), or -INFINITY */
static double log_sum(const double *a, int64_t n)
{
    double max = a[0], sum = 0;
    for (int64_t i = 1; i < n; i++) max = fmax(max, a[i]);
    if (max == -INFINITY) return max;
    for (int64_t i = 0; i < n; i++) sum += exp(a[i] - max);
    return max + log(sum);
}

/* a [n] become logarithms of probabilities. */
static void normalize(double *a, int64_t n)
{
    double sum = log_sum(a, n);
    for (int64_t i = 0; sum > -INFINITY && i < n; i++) a[i] -= sum;
}

/* log(sum_i exp(a[i] + s[i * stride])), or -INFINITY. terms: [n] */
static double log_steps(const chain *c, const double *a, const double *s, int64_t stride, int64_t n,
                        double *terms)
{
    for (int64_t i = 0; i < n; i++) terms[i] = a[i] + step(c, s[i * stride]);
    return log_sum(terms, n);
}

/* Forward and backward algorithm with logarithms of probabilities, so that scores may differ by any amount.
 * They are normalized at each token. alpha: [n, L], work: [3 L]. */
static void marginals(const chain *c, double *alpha, double *work, float *out)
{
    int64_t L = c->d->labels;
    double *beta = work, *right = work + L, *terms = work + 2 * L;
    for (int64_t t = 0; t < c->n; t++) {
        double *a = alpha + t * L;
        for (int64_t j = 0; j < L; j++)
            a[j] = score(c, t, j) +
                   (t ? log_steps(c, a - L, c->d->trans + j, L, L, terms) : step(c, c->d->start[j]));
        normalize(a, L);
    }
    for (int64_t j = 0; j < L; j++) beta[j] = step(c, c->d->end[j]);
    for (int64_t t = c->n - 1; t >= 0; t--) {
        for (int64_t j = 0; j < L; j++) terms[j] = alpha[t * L + j] + beta[j];
        normalize(terms, L);
        for (int64_t j = 0; j < L; j++) out[t * L + j] = (float)exp(terms[j]);
        for (int64_t j = 0; j < L; j++) right[j] = beta[j] + score(c, t, j);
        for (int64_t i = 0; i < L; i++) beta[i] = log_steps(c, right, c->d->trans + i * L, 1, L, terms);
        normalize(beta, L);
    }
}

bool ses_crf_decode(const ses_crf_decoder *d, const float *x, const int32_t *row, int64_t n, int32_t *best,
                    float *marginal, ses_err *e)
{
    chain c = { .d = d, .x = x, .row = row, .n = n };
    size_t cells;
    if (n <= 0) return true;
    if (!ses_mul_size((size_t)n, (size_t)d->labels, &cells))
        return ses_fail(e, SES_ENOMEM, "too many labels");
    double *work = ses_alloc_array(3 * (size_t)d->labels, sizeof *work, e);
    int32_t *back = work ? ses_alloc_array(cells, sizeof *back, e) : NULL;
    double *alpha = back && marginal ? ses_alloc_array(cells, sizeof *alpha, e) : NULL;
    bool ok = back && (!marginal || alpha);
    if (ok && viterbi(&c, work, back, best) == -INFINITY) {
        c.free_steps = true;
        viterbi(&c, work, back, best);
    }
    if (ok && marginal) marginals(&c, alpha, work, marginal);
    ses_free(work);
    ses_free(back);
    ses_free(alpha);
    return ok;
}
