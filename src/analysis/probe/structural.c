/* Structural probes: predictions, losses, gradients, training. */
#include "structural.h"

#include "base/alloc.h"
#include "data/rng_stream.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 }; /* sentences predicted together */
enum { SITE_INIT = 1, SITE_ORDER = 2 };

bool ses_structural_gold_new(ses_structural_gold *g, const ses_treebank *trees, ses_err *e)
{
    size_t pairs = 0;
    *g = (ses_structural_gold){ .trees = trees };
    if (!(g->at = ses_alloc_array(trees->n, sizeof *g->at, e))) return false;
    for (size_t i = 0; i < trees->n; i++) g->at[i] = pairs, pairs += trees->tree[i].n * trees->tree[i].n;
    g->depth = ses_alloc_array(trees->words, sizeof *g->depth, e);
    g->distance = g->depth ? ses_alloc_array(pairs, sizeof *g->distance, e) : NULL;
    if (!g->distance) return false;
    for (size_t i = 0; i < trees->n; i++) {
        ses_tree_depths(&trees->tree[i], g->depth + trees->tree[i].first);
        ses_tree_distances(&trees->tree[i], g->distance + g->at[i]);
    }
    return true;
}

void ses_structural_gold_free(ses_structural_gold *g)
{
    ses_free(g->depth);
    ses_free(g->distance);
    ses_free(g->at);
    *g = (ses_structural_gold){ 0 };
}

/* ---- one pass over a batch of sentences ---- */

typedef struct pass {
    const ses_structural_probe *p;
    ses_device *dev;
    const ses_structural_set *set;
    size_t max_batch, max_words;
    const int32_t *index; /* sentences of the batch */
    size_t n, words;
    size_t *first;  /* [max_batch]: first row of each sentence */
    ses_real *x;    /* [max_words, width] */
    ses_real *t;    /* [max_words, rank]: B h */
    ses_real *dt;   /* its gradient */
    double *loss;   /* [max_batch] */
    double divisor; /* the gradient is of the sum of losses / divisor */
    bool want_grad;
    ses_structural_fn *fn; /* NULL: losses */
    void *ctx;
    ses_thread_pool **one; /* [max_batch]: a pool of one thread for the products of each sentence */
} pass;

static size_t longest_batch(const ses_treebank *t, size_t batch)
{
    size_t longest = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->tree[i].n > longest) longest = t->tree[i].n;
    return longest * batch < t->words ? longest * batch : t->words;
}

static bool pass_new(pass *a, const ses_structural_probe *p, ses_device *dev, const ses_structural_set *set,
                     size_t batch, bool want_grad, ses_err *e)
{
    const ses_treebank *t = set->gold->trees;
    *a = (pass){ .p = p, .dev = dev, .set = set, .want_grad = want_grad };
    a->max_batch = batch < t->n ? batch : t->n;
    a->max_words = longest_batch(t, a->max_batch);
    if (!(a->first = ses_alloc_array(a->max_batch, sizeof *a->first, e)) ||
        !(a->loss = ses_alloc_array(a->max_batch, sizeof *a->loss, e)) ||
        !(a->one = ses_alloc_array(a->max_batch, sizeof(void *), e)) ||
        !(a->x = ses_alloc_array(a->max_words * p->o.width, sizeof *a->x, e)) ||
        !(a->t = ses_alloc_array(a->max_words * p->o.rank, sizeof *a->t, e)) ||
        !(a->dt = ses_alloc_array(want_grad ? a->max_words * p->o.rank : 1, sizeof *a->dt, e)))
        return false;
    for (size_t i = 0; i < a->max_batch; i++)
        if (!(a->one[i] = ses_thread_pool_new(1, e))) return false;
    return true;
}

static void pass_free(pass *a)
{
    for (size_t i = 0; a->one && i < a->max_batch; i++) ses_thread_pool_free(a->one[i]);
    ses_free(a->one);
    ses_free(a->first);
    ses_free(a->loss);
    ses_free(a->x);
    ses_free(a->t);
    ses_free(a->dt);
}

/* Distances do not change if a vector is subtracted from all words; without their mean, the products below
 * lose fewer digits. */
static void subtract_mean(ses_real *t, size_t n, size_t rank)
{
    enum { COLUMNS = 64 };
    for (size_t from = 0; from < rank; from += COLUMNS) {
        size_t columns = rank - from < COLUMNS ? rank - from : COLUMNS;
        ses_real mean[COLUMNS] = { 0 };
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < columns; k++) mean[k] += t[i * rank + from + k];
        for (size_t k = 0; k < columns; k++) mean[k] /= (ses_real)n;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < columns; k++) t[i * rank + from + k] -= mean[k];
    }
}

/* d [n, n]: products of the rows, then distances. */
static void squared_distances(pass *a, size_t s, ses_real *t, size_t n, ses_real *d)
{
    size_t rank = a->p->o.rank;
    ses_exec one = { .pool = a->one[s] };
    subtract_mean(t, n, rank);
    ses_gemm g = ses_gemm_nt(d, t, t, (int64_t)n, (int64_t)n, (int64_t)rank);
    a->dev->k_f32.gemm(&one, &g);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            if (i == j) continue;
            ses_real x = d[i * n + i] + d[j * n + j] - 2 * d[i * n + j];
            if (j > i) d[j * n + i] = d[i * n + j]; /* the same product: keeps the matrix symmetric */
            d[i * n + j] = x < 0 ? 0 : x;           /* NaN stays */
        }
}

static void finish_distances(ses_real *d, size_t n)
{
    for (size_t i = 0; i < n; i++) d[i * n + i] = 0;
}

/* d becomes the gradient: of the loss for the predictions, then with each row's sum on the diagonal,
 * so that the gradient of t is d t. */
static double distance_loss(ses_real *d, const int16_t *gold, size_t n, double divisor)
{
    double sum = 0, unit = -4 / ((double)(n * n) * divisor);
    for (size_t i = 0; i < n; i++) {
        double row = 0;
        for (size_t j = 0; j < n; j++) {
            double diff = (double)d[i * n + j] - gold[i * n + j];
            int sign = (diff > 0) - (diff < 0);
            sum += fabs(diff);
            row += sign;
            d[i * n + j] = (ses_real)(unit * sign);
        }
        d[i * n + i] = (ses_real)(-unit * row);
    }
    return sum / (double)(n * n);
}

static void one_distance(pass *a, size_t s, ses_real *d)
{
    const ses_structural_gold *gold = a->set->gold;
    size_t i = a->index[s], n = gold->trees->tree[i].n, rank = a->p->o.rank;
    ses_real *t = a->t + a->first[s] * rank;
    squared_distances(a, s, t, n, d);
    finish_distances(d, n);
    if (a->fn) {
        a->fn(a->ctx, i, d);
        return;
    }
    a->loss[s] = distance_loss(d, gold->distance + gold->at[i], n, a->divisor);
    if (!a->want_grad) return;
    ses_exec one = { .pool = a->one[s] };
    ses_gemm g = ses_gemm_nn(a->dt + a->first[s] * rank, d, t, (int64_t)n, (int64_t)rank, (int64_t)n);
    a->dev->k_f32.gemm(&one, &g);
}

static double squared_norm(const ses_real *t, size_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = { 0 }, sum = 0;
    size_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += (double)t[k + j] * t[k + j];
    for (; k < n; k++) sum += (double)t[k] * t[k];
    for (size_t j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

static void one_depth(pass *a, size_t s, ses_real *out)
{
    const ses_structural_gold *gold = a->set->gold;
    size_t i = a->index[s], n = gold->trees->tree[i].n, rank = a->p->o.rank;
    const int16_t *depth = gold->depth + gold->trees->tree[i].first;
    const ses_real *t = a->t + a->first[s] * rank;
    double sum = 0;
    for (size_t w = 0; w < n; w++) {
        double norm = squared_norm(t + w * rank, rank);
        out[w] = (ses_real)norm;
        double diff = norm - depth[w];
        sum += fabs(diff);
        if (a->fn || !a->want_grad) continue;
        ses_real factor = (ses_real)(2 * ((diff > 0) - (diff < 0)) / ((double)n * a->divisor));
        ses_real *dt = a->dt + (a->first[s] + w) * rank;
        for (size_t k = 0; k < rank; k++) dt[k] = factor * t[w * rank + k];
    }
    a->loss[s] = sum / (double)n;
    if (a->fn) a->fn(a->ctx, i, out);
}

static void one_sentence(void *ctx, int64_t s, void *scratch)
{
    pass *a = ctx;
    if (a->p->o.kind == SES_STRUCTURAL_DEPTH)
        one_depth(a, (size_t)s, scratch);
    else
        one_distance(a, (size_t)s, scratch);
}

/* Runs the sentences index [n]: predictions, losses, gradients of t. Returns the sum of the losses. */
static double run_pass(pass *a, const int32_t *index, size_t n)
{
    const ses_treebank *trees = a->set->gold->trees;
    size_t width = a->p->o.width, rank = a->p->o.rank;
    a->index = index;
    a->n = n;
    a->words = 0;
    for (size_t s = 0; s < n; s++) {
        const ses_tree *t = &trees->tree[index[s]];
        memcpy(a->x + a->words * width, a->set->x + t->first * width, t->n * width * sizeof *a->x);
        a->first[s] = a->words;
        a->words += t->n;
    }
    ses_gemm g = ses_gemm_nt(a->t, a->x, a->p->b, (int64_t)a->words, (int64_t)rank, (int64_t)width);
    ses_exec x = ses_exec_f32(a->dev);
    a->dev->k_f32.gemm(&x, &g);
    ses_parallel_for(a->dev->exec.pool, (int64_t)n, one_sentence, a);
    double sum = 0;
    for (size_t s = 0; !a->fn && s < n; s++) sum += a->loss[s];
    return sum;
}

/* Runs all sentences in order. */
static bool run_all(pass *a, double *sum, ses_err *e)
{
    size_t n = a->set->gold->trees->n;
    int32_t *index = ses_alloc_array(a->max_batch, sizeof *index, e);
    if (!index) return false;
    *sum = 0;
    for (size_t from = 0; from < n; from += a->max_batch) {
        size_t count = n - from < a->max_batch ? n - from : a->max_batch;
        for (size_t s = 0; s < count; s++) index[s] = (int32_t)(from + s);
        *sum += run_pass(a, index, count);
    }
    ses_free(index);
    return true;
}

static void weight_gradient(pass *a, ses_real *grad, bool accumulate)
{
    ses_gemm g =
        ses_gemm_tn(grad, a->dt, a->x, (int64_t)a->p->o.rank, (int64_t)a->p->o.width, (int64_t)a->words);
    g.accumulate = accumulate;
    ses_exec x = ses_exec_f32(a->dev);
    a->dev->k_f32.gemm(&x, &g);
}

bool ses_structural_predict(const ses_structural_probe *p, ses_device *device, const ses_structural_set *set,
                            ses_structural_fn *fn, void *ctx, ses_err *e)
{
    pass a;
    double none;
    bool ok = pass_new(&a, p, device, set, BLOCK, false, e);
    a.fn = fn;
    a.ctx = ctx;
    ok = ok && run_all(&a, &none, e);
    pass_free(&a);
    return ok;
}

bool ses_structural_loss(const ses_structural_probe *p, ses_device *device, const ses_structural_set *set,
                         double *loss, ses_real *grad, ses_err *e)
{
    pass a;
    size_t n = set->gold->trees->n;
    bool ok = pass_new(&a, p, device, set, grad ? n : BLOCK, grad, e);
    a.divisor = (double)n;
    ok = ok && run_all(&a, loss, e);
    if (ok && grad) weight_gradient(&a, grad, false);
    *loss /= (double)n;
    pass_free(&a);
    return ok;
}

/* ---- training ---- */

ses_structural_options ses_structural_defaults(ses_structural_kind kind, size_t width)
{
    return (ses_structural_options){
        .kind = kind, .width = width, .rank = width, .rate = 1e-3, .batch = 20, .epochs = 40, .patience = 5
    };
}

typedef struct trainer {
    ses_structural_probe *p;
    pass train, dev;
    ses_real *grad, *m, *v, *best;
    int32_t *order;
    int64_t step;
    double rate;
} trainer;

static bool trainer_new(trainer *t, ses_structural_probe *p, ses_device *device,
                        const ses_structural_set *train, const ses_structural_set *dev, ses_err *e)
{
    size_t n = p->o.rank * p->o.width, epochs = (size_t)p->o.epochs;
    *t = (trainer){ .p = p, .rate = p->o.rate };
    bool ok = pass_new(&t->train, p, device, train, p->o.batch, true, e);
    ok = pass_new(&t->dev, p, device, dev, BLOCK, false, e) && ok;
    ok = ok && (t->grad = ses_alloc_array(n, sizeof *t->grad, e)) &&
         (t->m = ses_alloc_array(n, sizeof *t->m, e)) && (t->v = ses_alloc_array(n, sizeof *t->v, e)) &&
         (t->best = ses_alloc_array(n, sizeof *t->best, e)) &&
         (t->order = ses_alloc_array(train->gold->trees->n, sizeof *t->order, e)) &&
         (p->b = ses_alloc_array(n, sizeof *p->b, e)) &&
         (p->train = ses_alloc_array(epochs, sizeof *p->train, e)) &&
         (p->dev = ses_alloc_array(epochs, sizeof *p->dev, e));
    if (!ok) return false;
    ses_rng_key key = { p->o.seed, 0, SITE_INIT };
    for (size_t i = 0; i < n; i++) p->b[i] = (ses_real)(0.1 * (double)ses_rand_unit(key, i) - 0.05);
    memcpy(t->best, p->b, n * sizeof *p->b);
    return true;
}

static void trainer_free(trainer *t)
{
    pass_free(&t->train);
    pass_free(&t->dev);
    ses_free(t->grad);
    ses_free(t->m);
    ses_free(t->v);
    ses_free(t->best);
    ses_free(t->order);
}

static void adam_step(trainer *t)
{
    const ses_structural_options *o = &t->p->o;
    double steps = (double)++t->step;
    ses_adamw a = { .lr = t->rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .scale = 1 };
    a.correction1 = 1 / (1 - pow(a.beta1, steps));
    a.correction2 = 1 / (1 - pow(a.beta2, steps));
    ses_device *dev = t->train.dev;
    dev->k_f32.adamw(&dev->exec, t->p->b, t->grad, t->m, t->v, (int64_t)(o->rank * o->width), &a);
}

static void shuffle(trainer *t, int epoch)
{
    size_t n = t->train.set->gold->trees->n;
    ses_rng_stream draws = ses_rng_stream_of(t->p->o.seed, (uint64_t)epoch, SITE_ORDER);
    for (size_t i = 0; i < n; i++) t->order[i] = (int32_t)i;
    ses_draw_shuffle(&draws, t->order, (int64_t)n);
}

static double train_epoch(trainer *t, int epoch)
{
    size_t n = t->train.set->gold->trees->n, batch = t->train.max_batch;
    double sum = 0;
    shuffle(t, epoch);
    for (size_t from = 0; from < n; from += batch) {
        size_t count = n - from < batch ? n - from : batch;
        t->train.divisor = (double)count;
        sum += run_pass(&t->train, t->order + from, count);
        weight_gradient(&t->train, t->grad, false);
        adam_step(t);
    }
    return sum / (double)n;
}

static bool check_finite(double loss, int epoch, ses_err *e)
{
    return isfinite(loss) ||
           ses_fail(e, SES_EARG, "loss %g in epoch %d: the states are not finite numbers", loss, epoch);
}

static bool run_epochs(trainer *t, ses_err *e)
{
    ses_structural_probe *p = t->p;
    const ses_structural_options *o = &p->o;
    double best = INFINITY, n_dev = (double)t->dev.set->gold->trees->n;
    t->dev.divisor = 1;
    for (int epoch = 1; epoch <= o->epochs; epoch++) {
        double dev;
        p->train[epoch - 1] = train_epoch(t, epoch);
        if (!check_finite(p->train[epoch - 1], epoch, e) || !run_all(&t->dev, &dev, e)) return false;
        p->dev[epoch - 1] = dev / n_dev;
        p->epochs = epoch;
        if (p->dev[epoch - 1] < best - 1e-4) {
            best = p->dev[epoch - 1];
            p->best = epoch;
            memcpy(t->best, p->b, o->rank * o->width * sizeof *p->b);
        } else {
            t->rate /= 10;
            if (epoch - p->best >= o->patience) break;
        }
        if (o->progress && !o->progress(o->progress_ctx, epoch)) break;
    }
    return true;
}

bool ses_structural_train(ses_structural_probe *p, ses_device *device, const ses_structural_options *o,
                          const ses_structural_set *train, const ses_structural_set *dev, ses_err *e)
{
    trainer t;
    *p = (ses_structural_probe){ .o = *o };
    bool ok = trainer_new(&t, p, device, train, dev, e) && run_epochs(&t, e);
    if (ok) memcpy(p->b, t.best, o->rank * o->width * sizeof *p->b);
    trainer_free(&t);
    return ok;
}

void ses_structural_free(ses_structural_probe *p)
{
    ses_free(p->b);
    ses_free(p->train);
    ses_free(p->dev);
    *p = (ses_structural_probe){ 0 };
}
