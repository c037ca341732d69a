/* Softmax regression and MLPs on frozen vectors: choice of C, online coding, accuracy. */
#include "probe_fit.h"

#include "base/alloc.h"
#include "probe_mlp.h"
#include "sesame/unstable/logreg.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

enum { CHOICE_ROWS = 16384, CHUNK = 256, MIN_ROWS = 16 };

/* A probe in training: one of the two. */
typedef struct probe {
    const ses_probe_fit_options *o;
    size_t width, classes;
    ses_logreg linear;
    ses_probe_mlp *mlp;
    double c;
    bool *seen; /* [classes]: labels of the training data */
} probe;

size_t ses_probe_block_ends(size_t n, size_t end[SES_PROBE_BLOCKS])
{
    static const double percent[SES_PROBE_BLOCKS] = { 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100 };
    size_t count = 0;
    for (size_t i = 0; i < SES_PROBE_BLOCKS; i++) {
        size_t at = (size_t)floor(percent[i] / 100 * (double)n);
        if (i + 1 == SES_PROBE_BLOCKS) at = n;
        if (at > 0 && (!count || at > end[count - 1])) end[count++] = at;
    }
    return count;
}

double ses_probe_code(double p, size_t n, size_t classes)
{
    return log2(((double)n * p + 1) / (double)(n + classes));
}

void ses_probe_bits_add(ses_probe_bits *b, double p, size_t n, const bool *seen, size_t y, size_t classes)
{
    double smooth = -ses_probe_code(p, n, classes);
    b->smooth += smooth;
    b->plain += seen[y] ? -log2(p) : smooth;
    b->lacking += !seen[y];
}

void ses_wilson_interval(double k, double n, double *low, double *high)
{
    const double z = 1.959963984540054;
    double p = n > 0 ? k / n : 0, scale = n > 0 ? 1 / (1 + z * z / n) : 0;
    double middle = n > 0 ? (p + z * z / (2 * n)) * scale : 0.5,
           half = n > 0 ? z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) * scale : 0.5;
    *low = fmax(0, middle - half), *high = fmin(1, middle + half);
}

/* ---- prediction ---- */

typedef struct prediction {
    const probe *p;
    const ses_probe_set *set;
    size_t first, n;      /* rows */
    float *probability;   /* [n, classes] of an MLP; NULL: softmax regression */
    double *correct;      /* [chunks] */
    ses_probe_bits *bits; /* [chunks]: code of the labels; NULL: not wanted */
    size_t trained_on;    /* examples before the rows */
} prediction;

static void predict_chunk(void *ctx, int64_t chunk, void *scratch)
{
    const prediction *r = ctx;
    double *p = scratch;
    size_t classes = r->p->classes, begin = (size_t)chunk * CHUNK,
           end = begin + CHUNK < r->n ? begin + CHUNK : r->n;
    for (size_t i = begin; i < end; i++) {
        int32_t y = r->set->y[r->first + i];
        size_t best = 0;
        if (r->probability)
            for (size_t k = 0; k < classes; k++) p[k] = (double)r->probability[i * classes + k];
        else
            ses_logreg_predict(&r->p->linear, r->set->x + (r->first + i) * r->p->width, p);
        for (size_t k = 1; k < classes; k++)
            if (p[k] > p[best]) best = k;
        r->correct[chunk] += y >= 0 && best == (size_t)y;
        if (r->bits && y >= 0)
            ses_probe_bits_add(&r->bits[chunk], p[y], r->trained_on, r->p->seen, (size_t)y, classes);
    }
}

/* Rows first .. first + n - 1: the number predicted correctly; bits, if not NULL: the code of their labels
 * after training on `trained_on` examples. */
static bool evaluate(const probe *p, const ses_probe_set *set, size_t first, size_t n, size_t trained_on,
                     double *correct, ses_probe_bits *bits, ses_err *e)
{
    size_t chunks = (n + CHUNK - 1) / CHUNK;
    double *sum = ses_alloc_array(chunks + 1, sizeof *sum, e);
    prediction r = { .p = p, .set = set, .first = first, .n = n, .correct = sum, .trained_on = trained_on };
    bool ok = sum && (!bits || (r.bits = ses_alloc_array(chunks + 1, sizeof *r.bits, e)));
    if (ok && p->mlp) {
        r.probability = ses_alloc_array(n * p->classes + 1, sizeof *r.probability, e);
        ok = r.probability && ses_probe_mlp_predict(p->mlp, set->x + first * p->width, n, r.probability, e);
    }
    if (ok) ses_parallel_for(p->o->dev->exec.pool, (int64_t)chunks, predict_chunk, &r);
    *correct = 0;
    if (bits) *bits = (ses_probe_bits){ 0 };
    for (size_t i = 0; ok && i < chunks; i++) {
        *correct += sum[i];
        if (!bits) continue;
        bits->smooth += r.bits[i].smooth, bits->plain += r.bits[i].plain, bits->lacking += r.bits[i].lacking;
    }
    ses_free(r.probability);
    ses_free(r.bits);
    ses_free(sum);
    return ok;
}

/* ---- training ---- */

static bool has_two_classes(const int32_t *y, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (y[i] != y[0]) return true;
    return false;
}

/* Trains on the first n rows; softmax regression continues from its present weights. */
static bool train_on(probe *p, const ses_probe_set *train, size_t n, const ses_probe_set *dev, ses_err *e)
{
    memset(p->seen, 0, p->classes * sizeof *p->seen);
    for (size_t i = 0; i < n; i++) p->seen[train->y[i]] = true;
    if (p->o->hidden) {
        ses_probe_mlp_free(p->mlp);
        p->mlp = ses_probe_mlp_train(p->o, train, n, dev, p->width, p->classes, e);
        return p->mlp != NULL;
    }
    ses_logreg_options o = {
        .c = p->c, .tolerance = p->o->tolerance, .iterations = 500, .device = p->o->dev
    };
    return ses_logreg_fit(&p->linear, train->x, train->y, NULL, n, p->width, p->classes, &o, e);
}

/* C with the least loss on dev after training on the first rows. The candidates ascend: a loss that rises
 * ends the search. */
static bool choose_c(probe *p, const ses_probe_set *train, const ses_probe_set *dev, ses_err *e)
{
    size_t n = train->n < CHOICE_ROWS ? train->n : CHOICE_ROWS;
    double best = INFINITY, chosen = p->o->c[0];
    for (size_t i = 0; i < p->o->n_c && p->o->n_c > 1 && !p->o->hidden && has_two_classes(train->y, n); i++) {
        double correct;
        ses_probe_bits bits;
        p->c = p->o->c[i];
        if (!train_on(p, train, n, dev, e) || !evaluate(p, dev, 0, dev->n, n, &correct, &bits, e))
            return false;
        if (!(bits.smooth < best)) break;
        best = bits.smooth, chosen = p->c;
    }
    p->c = chosen;
    ses_logreg_free(&p->linear);
    return true;
}

/* Trains on growing parts, each from the weights of the part before; codes every part with the probe trained
 * on the parts before it. */
static bool train_in_blocks(probe *p, const ses_probe_set *train, const ses_probe_set *dev,
                            ses_probe_scores *out, ses_err *e)
{
    size_t end[SES_PROBE_BLOCKS], blocks = ses_probe_block_ends(train->n, end);
    bool trained = false, mdl = p->o->mdl;
    for (size_t b = 0; b < blocks; b++) {
        size_t first = b ? end[b - 1] : 0, n = end[b] - first;
        double uniform = (double)n * log2((double)p->classes), correct;
        ses_probe_bits bits = { uniform, uniform, 0 };
        if (mdl && trained && !evaluate(p, train, first, n, first, &correct, &bits, e)) return false;
        out->bits += bits.smooth, out->plain_bits += bits.plain, out->lacking += bits.lacking;
        bool last = b + 1 == blocks, wanted = mdl || (!p->o->hidden && end[b] >= CHOICE_ROWS / 4);
        if (!last && (!wanted || end[b] < MIN_ROWS || !has_two_classes(train->y, end[b]))) continue;
        if (!train_on(p, train, end[b], dev, e)) return false;
        trained = true;
    }
    out->compression = (double)train->n * log2((double)p->classes) / out->bits;
    if (!mdl) out->bits = out->plain_bits = out->compression = NAN;
    return true;
}

/* Training data with a single class, as control tasks of few words may be: it is always predicted. */
static void score_constant(const ses_probe_set *train, const ses_probe_set *dev, const ses_probe_set *test,
                           ses_probe_scores *out)
{
    double correct = 0;
    for (size_t i = 0; i < dev->n; i++) out->dev += (dev->y[i] == train->y[0]) / (double)dev->n;
    for (size_t i = 0; i < test->n; i++) correct += test->y[i] == train->y[0];
    out->accuracy = correct / (double)test->n;
    out->c = out->bits = out->plain_bits = out->compression = NAN;
    ses_wilson_interval(correct, (double)test->n, &out->low, &out->high);
}

bool ses_probe_fit(const ses_probe_fit_options *o, const ses_probe_set *train, const ses_probe_set *dev,
                   const ses_probe_set *test, size_t width, size_t classes, ses_probe_scores *out, ses_err *e)
{
    probe p = { .o = o, .width = width, .classes = classes };
    double correct, correct_dev;
    *out = (ses_probe_scores){ .f1 = NAN };
    if (!has_two_classes(train->y, train->n)) {
        score_constant(train, dev, test, out);
        return true;
    }
    p.seen = ses_alloc_array(classes, sizeof *p.seen, e);
    bool ok = p.seen && choose_c(&p, train, dev, e) && train_in_blocks(&p, train, dev, out, e) &&
              evaluate(&p, dev, 0, dev->n, 0, &correct_dev, NULL, e) &&
              evaluate(&p, test, 0, test->n, 0, &correct, NULL, e);
    if (ok) {
        out->c = o->hidden ? NAN : p.c;
        out->dev = correct_dev / (double)dev->n;
        out->accuracy = correct / (double)test->n;
        ses_wilson_interval(correct, (double)test->n, &out->low, &out->high);
    }
    ses_logreg_free(&p.linear);
    ses_probe_mlp_free(p.mlp);
    ses_free(p.seen);
    return ok;
}
