/* Chooses the weights and their ranks, and computes the factors: one matrix per thread at a time. */
#include "factorize.h"

#include "base/alloc.h"
#include "math/svd.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- options ---- */

static bool check_options(const ses_factorize_options *o, ses_err *e)
{
    int set = (o->rank != 0) + (o->ratio != 0) + (o->energy != 0);
    if (set > 1) return ses_fail(e, SES_EARG, "rank, ratio and energy exclude each other: set one of them");
    if (!set && !o->embeddings)
        return ses_fail(e, SES_EARG, "no rank, ratio or energy, and no rank of the token table: set one");
    if (o->rank < 0 || o->embeddings < 0)
        return ses_fail(e, SES_EARG, "a rank of %lld, expected at least 1",
                        (long long)(o->rank < 0 ? o->rank : o->embeddings));
    if (o->ratio && !(o->ratio > 0 && o->ratio < 1))
        return ses_fail(e, SES_EARG, "a ratio of %g, expected above 0 and below 1", o->ratio);
    if (o->energy && !(o->energy > 0 && o->energy <= 1))
        return ses_fail(e, SES_EARG, "an energy of %g, expected above 0 and at most 1", o->energy);
    return true;
}

static bool check_model(const ses_model *m, const ses_factorize_options *o, ses_err *e)
{
    const char *why = ses_low_rank_unsupported(m->desc, &m->c);
    if (m->c.low_rank)
        return ses_fail(e, SES_EARG,
                        "the model is factorized already (\"sesame_low_rank\" in config.json): factorize the "
                        "original model");
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "a model of type %s cannot be factorized: %s", m->desc->name,
                        why);
    why = o->embeddings ? ses_low_rank_unsupported_table(m->desc, &m->c) : NULL;
    if (why)
        return ses_fail(e, SES_EUNSUPPORTED, "the token table of a model of type %s cannot be factorized: %s",
                        m->desc->name, why);
    const char *unmerged = ses_adapter_unmerged(m->adapter);
    return !unmerged ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "%s cannot be merged into the weights: factorize the base model instead", unmerged);
}

/* ---- choosing ---- */

static int64_t full_rank(const ses_factors *x) { return x->out < x->in ? x->out : x->in; }

/* The largest rank whose factors have fewer parameters than the weight. */
static int64_t largest_rank(const ses_factors *x) { return (x->out * x->in - 1) / (x->out + x->in); }

static bool is_chosen(const ses_param *p, ses_factorize_part only)
{
    const char *at = strstr(p->name, "layer.");
    bool ffn = strstr(p->name, ".ffn.") != NULL,
         attention = strstr(p->name, ".attn.") || strstr(p->name, ".cross.");
    if (!p->dense || ses_rank(p->tensor) != 2 || !at || (at != p->name && at[-1] != '.')) return false;
    return (attention && only != SES_FACTORIZE_FFN) || (ffn && only != SES_FACTORIZE_ATTENTION);
}

static bool add_table(ses_factorization *f, const ses_factorize_options *o, ses_err *e)
{
    const ses_store *s = f->m->store;
    size_t i = 0;
    while (i < ses_store_count(s) && ses_store_at(s, i)->tensor != f->m->stack[0].token) i++;
    if (i == ses_store_count(s)) return ses_fail(e, SES_EUNSUPPORTED, "the model has no token table");
    const ses_tensor *t = f->m->stack[0].token;
    ses_factors *x = &f->item[f->n++];
    *x = (ses_factors){ .param = i, .out = t->dim[0], .in = t->dim[1], .is_table = true };
    if (!ses_model_tensor_name(f->m, i, x->name, sizeof x->name)) return false;
    if (o->embeddings > full_rank(x))
        return ses_fail(e, SES_EARG, "a rank of %lld for the token table [%lld, %lld], expected at most %lld",
                        (long long)o->embeddings, (long long)x->out, (long long)x->in,
                        (long long)full_rank(x));
    if (o->embeddings > largest_rank(x) && !o->even_if_larger)
        return ses_fail(
            e, SES_EARG, "a rank of %lld makes the token table [%lld, %lld] larger: expected at most %lld",
            (long long)o->embeddings, (long long)x->out, (long long)x->in, (long long)largest_rank(x));
    return true;
}

static bool add_weights(ses_factorization *f, const ses_factorize_options *o, ses_err *e)
{
    const ses_store *s = f->m->store;
    int64_t widest = 0;
    for (size_t i = 0; i < f->m->first_head_param; i++) {
        const ses_param *p = ses_store_at(s, i);
        if (!is_chosen(p, o->only)) continue;
        ses_factors *x = &f->item[f->n];
        bool turned = p->layout == SES_IN_OUT;
        *x = (ses_factors){ .param = i, .out = p->tensor->dim[turned], .in = p->tensor->dim[!turned] };
        if (!ses_low_rank_key(f->m, p->name, x->name, sizeof x->name)) continue;
        if (full_rank(x) > widest) widest = full_rank(x);
        f->n++;
    }
    if (!f->n) return ses_fail(e, SES_EUNSUPPORTED, "the model has no dense layers to factorize");
    return o->rank <= widest || ses_fail(e, SES_EARG, "a rank of %lld, expected at most %lld",
                                         (long long)o->rank, (long long)widest);
}

/* ---- factors ---- */

typedef struct work {
    const ses_factorization *f;
    const ses_factorize_options *o;
    size_t first; /* first weight of this round */
    ses_err *err; /* [threads] */
} work;

static double *read_weight(const ses_factorization *f, const ses_factors *x, ses_err *e)
{
    const ses_param *p = ses_store_at(f->m->store, x->param);
    double *w = ses_alloc_array((size_t)x->out * (size_t)x->in, sizeof *w, e);
    bool turned = !x->is_table && p->layout == SES_IN_OUT;
    for (int64_t i = 0; w && i < x->out; i++)
        for (int64_t j = 0; j < x->in; j++)
            w[i * x->in + j] = (double)p->tensor->f[turned ? j * x->out + i : i * x->in + j];
    return w;
}

/* The rank; energy [count]: of the parts that are known. */
static int64_t choose_rank(const ses_factorize_options *o, const ses_factors *x, const double *energy,
                           int64_t count, double all)
{
    enum { STEP = 8 }; /* products are fastest if the rank is a multiple of it */
    double sum = 0;
    int64_t r = 0;
    if (x->is_table) return o->embeddings;
    if (o->rank) return o->rank < full_rank(x) ? o->rank : full_rank(x);
    if (o->ratio) {
        r = (int64_t)(o->ratio * (double)(x->out * x->in) / (double)(x->out + x->in));
        return r >= 2 * STEP ? r / STEP * STEP : r > 0 ? r : 1;
    }
    while (r < count && sum < o->energy * all) sum += energy[r++];
    bool enough = sum >= o->energy * all * (1 - 1e-12) || r == full_rank(x);
    return !enough ? full_rank(x) + 1 : r ? r : 1; /* more than the known ones */
}

/* The sum of left[r]' right[r] as factors: both vectors get the same length. */
static bool split(ses_factors *x, const ses_kernels *k, const double *left, const double *right, ses_err *e)
{
    x->a = ses_alloc_array((size_t)(x->rank * x->in), sizeof *x->a, e);
    x->b = x->a ? ses_alloc_array((size_t)(x->out * x->rank), sizeof *x->b, e) : NULL;
    if (!x->b) return false;
    for (int64_t r = 0; r < x->rank; r++) {
        const double *u = left + r * x->out, *v = right + r * x->in;
        double lu = sqrt(k->dot_double(u, u, x->out)), lv = sqrt(k->dot_double(v, v, x->in));
        double by = lu > 0 && lv > 0 ? sqrt(lv / lu) : 0;
        for (int64_t j = 0; by > 0 && j < x->in; j++) x->a[r * x->in + j] = (ses_real)(v[j] / by);
        for (int64_t i = 0; i < x->out; i++) x->b[i * x->rank + r] = (ses_real)(by * u[i]);
    }
    return true;
}

/* Number of singular values that are needed. */
static int64_t values_needed(const ses_factorize_options *o, const ses_factors *x)
{
    int64_t most = o->even_if_larger ? full_rank(x) : largest_rank(x);
    if (x->is_table) return o->embeddings;
    if (o->rank || o->ratio) {
        int64_t r = choose_rank(o, x, NULL, 0, 0);
        return r <= most ? r : 0;
    }
    return most;
}

/* left [count, out], right [count, in], energy [count] of w; w is the sum of all parts, *all of energies. */
static bool decompose(const work *j, const ses_factors *x, const double *w, int64_t count, double *energy,
                      double *all, double *left, double *right, ses_err *e)
{
    const ses_kernels *k = &j->f->m->dev->k;
    const ses_input_moments *moments = x->is_table ? NULL : j->o->moments;
    if (moments) {
        double *s = ses_input_moments_of(moments, ses_store_at(j->f->m->store, x->param)->name, x->in, e);
        bool ok = s && ses_svd_weighted(k, w, s, x->out, x->in, count, energy, all, left, right, e);
        ses_free(s);
        return ok;
    }
    *all = k->dot_double(w, w, x->out * x->in);
    if (!ses_svd(k, w, x->out, x->in, count, energy, left, right, e)) return false;
    for (int64_t r = 0; r < count; r++) {
        for (int64_t i = 0; i < x->in; i++) right[r * x->in + i] *= energy[r];
        energy[r] *= energy[r];
    }
    return true;
}

static bool factorize_one(const work *j, ses_factors *x, ses_err *e)
{
    int64_t count = values_needed(j->o, x);
    if (count < 1) return true;
    size_t c = (size_t)count;
    double *w = read_weight(j->f, x, e),
           *energy = w ? ses_alloc_array(c * (size_t)(x->out + x->in + 1), sizeof *energy, e) : NULL,
           *left = energy ? energy + c : NULL, *right = left ? left + c * (size_t)x->out : NULL, all = 0,
           kept = 0;
    bool ok = energy && decompose(j, x, w, count, energy, &all, left, right, e);
    int64_t rank = ok ? choose_rank(j->o, x, energy, count, all) : 0;
    if (ok && rank <= count) {
        x->rank = rank;
        for (int64_t r = 0; r < rank; r++) kept += energy[r];
        x->energy = all > 0 ? fmin(kept / all, 1) : 1;
        ok = split(x, &j->f->m->dev->k, left, right, e);
    }
    ses_free(w), ses_free(energy);
    return ok || ses_wrap(e, "%s", x->name);
}

static void run_chunk(void *ctx, int64_t i, void *scratch)
{
    const work *j = ctx;
    (void)scratch;
    factorize_one(j, &j->f->item[j->first + (size_t)i], &j->err[i]);
}

static bool factorize_all(const ses_factorization *f, const ses_factorize_options *o, ses_err *e)
{
    ses_thread_pool *pool = f->m->dev->exec.pool;
    size_t threads = (size_t)ses_thread_pool_size(pool);
    ses_err *err = ses_alloc_array(threads, sizeof *err, e);
    bool ok = err != NULL;
    for (size_t at = 0; ok && at < f->n; at += threads) {
        size_t n = f->n - at < threads ? f->n - at : threads;
        if (o->progress) o->progress(o->progress_ctx, (int64_t)at, (int64_t)f->n);
        ses_parallel_for(pool, (int64_t)n, run_chunk, &(work){ f, o, at, err });
        for (size_t i = 0; i < n && ok; i++)
            if (err[i].code) ok = ses_fail(e, err[i].code, "%s", err[i].msg);
    }
    ses_free(err);
    return ok;
}

static bool count_parameters(ses_factorization *f, ses_err *e)
{
    size_t changed = 0;
    f->before = f->after = ses_store_element_count(f->m->store);
    for (size_t i = 0; i < f->n; i++) {
        const ses_factors *x = &f->item[i];
        if (!x->rank) continue;
        changed++;
        f->after += x->rank * (x->out + x->in) - x->out * x->in;
    }
    return changed || ses_fail(e, SES_EARG,
                               "no weight becomes smaller: a weight [out, in] needs a rank below out in / "
                               "(out + in); choose a smaller rank or energy");
}

bool ses_factorize(ses_factorization *f, const ses_model *m, const ses_factorize_options *o, ses_err *e)
{
    *f = (ses_factorization){ .m = m };
    if (!check_options(o, e) || !check_model(m, o, e)) return false;
    f->item = ses_alloc_array(ses_store_count(m->store) + 1, sizeof *f->item, e);
    bool layers = o->rank || o->ratio || o->energy;
    return f->item && (!layers || add_weights(f, o, e)) && (!o->embeddings || add_table(f, o, e)) &&
           factorize_all(f, o, e) && count_parameters(f, e);
}

void ses_factorization_free(ses_factorization *f)
{
    for (size_t i = 0; i < f->n; i++) ses_free(f->item[i].a), ses_free(f->item[i].b);
    ses_free(f->item);
    *f = (ses_factorization){ 0 };
}
