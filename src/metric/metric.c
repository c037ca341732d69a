/* The list of metrics, running one, bootstrap confidence intervals, confusion matrices. */
#include "metric_impl.h"
#include "score_range.h"

#include "base/suggest.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ses_metric *const table[] = {
#define SES_METRIC(name) &ses_metric_##name,
#include "metrics.def"
#undef SES_METRIC
};

const char *ses_metric_at(size_t i, const char **description, ses_metric_kind *kind)
{
    if (i >= SES_LEN(table)) return NULL;
    if (description) *description = table[i]->description;
    if (kind) *kind = table[i]->kind;
    return table[i]->name;
}

bool ses_metric_lower_is_better(const char *score)
{
    size_t len = strlen(score);
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (table[i]->lower_is_better && ses_list_has(table[i]->lower_is_better, score)) return true;
    return len > 5 && !strcmp(score + len - 5, "_loss"); /* "mlm_loss": the loss of an objective */
}

double ses_metric_least(const char *score)
{
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (table[i]->negative && ses_list_has(table[i]->negative, score)) return -INFINITY;
    return 0;
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < SES_LEN(table) ? table[i]->name : NULL;
}

static const ses_metric *find(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (!strcmp(table[i]->name, name)) return table[i];
    ses_fail_unknown(e, SES_EARG, "metric", (ses_string){ name, strlen(name) }, name_at, NULL);
    return NULL;
}

bool ses_scores_find(const ses_scores *s, const char *name, double *value)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->item[i].name, name)) return *value = s->item[i].value, true;
    return false;
}

void ses_scores_free(ses_scores *s)
{
    ses_free(s->item);
    *s = (ses_scores){ 0 };
}

void ses_scores_put(ses_scores *s, double value, const char *fmt, ...)
{
    if (s->failed) return;
    s->failed = !ses_array_reserve(&s->item, &s->cap, s->n + 1, sizeof *s->item, NULL);
    if (s->failed) return;
    ses_score *x = &s->item[s->n++];
    *x = (ses_score){ .value = value, .low = NAN, .high = NAN };
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(x->name, sizeof x->name, fmt, ap);
    va_end(ap);
}

bool ses_example_stats_new(ses_example_stats *r, size_t width, size_t work, ses_err *e)
{
    size_t count;
    if (!ses_mul_size(r->n, width, &count))
        return ses_fail(e, SES_ENOMEM, "%zu examples of %zu values", r->n, width);
    r->width = width;
    r->n_work = work;
    r->x = ses_alloc_array(count, sizeof *r->x, e);
    r->work = r->x ? ses_alloc_array(work, sizeof *r->work, e) : NULL;
    return r->work != NULL;
}

static void stats_free(ses_example_stats *r)
{
    ses_free(r->x);
    ses_free(r->work);
    ses_free(r->name);
    ses_free(r->name_len);
}

void ses_example_stats_sum(const ses_example_stats *r, const ses_resample *p, double *sum)
{
    for (size_t j = 0; j < r->width; j++) sum[j] = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        for (size_t j = 0; j < r->width; j++) sum[j] += x[j];
    }
}

ses_label_name ses_label_name_of(const ses_evaluation *v, size_t label)
{
    ses_label_name name;
    if (v->labels && v->labels[label])
        ses_quote(name.s, sizeof name.s, v->labels[label], strlen(v->labels[label]));
    else
        snprintf(name.s, sizeof name.s, "%zu", label);
    return name;
}

bool ses_labels_check(const ses_evaluation *v, ses_err *e)
{
    size_t n = v->cu ? v->cu[v->n] : v->n;
    for (size_t i = 0; i < n; i++) {
        if (v->true_labels[i] == SES_IGNORE_INDEX) continue;
        const int32_t both[2] = { v->true_labels[i], v->pred_labels[i] };
        for (int k = 0; k < 2; k++)
            if (both[k] < 0 || (size_t)both[k] >= v->n_labels)
                return ses_fail(e, SES_EARG, "%s label %d of item %zu: expected 0 to %zu",
                                k ? "predicted" : "true", (int)both[k], i, v->n_labels - 1);
    }
    return true;
}

static bool check(const ses_metric *m, const ses_evaluation *v, ses_err *e)
{
    bool complete = false;
    switch (m->kind) {
    case SES_METRIC_LABELS: complete = v->true_labels && v->pred_labels && v->n_labels; break;
    case SES_METRIC_TAGS:
        complete = v->true_labels && v->pred_labels && v->n_labels && v->cu && v->labels;
        break;
    case SES_METRIC_SETS: complete = v->true_sets && v->pred_sets && v->n_labels; break;
    case SES_METRIC_REALS: complete = v->true_reals && v->pred_reals; break;
    case SES_METRIC_NLL: complete = v->nll && v->n_nll; break;
    case SES_METRIC_TEXTS: complete = v->pred_texts && v->ref_texts; break;
    case SES_METRIC_GROUPS:
        complete = v->true_labels && v->pred_labels && v->n_labels && v->groups && !v->cu;
        break;
    }
    if (!v->n) return ses_fail(e, SES_EARG, "no examples to evaluate");
    if (v->n > UINT32_MAX) return ses_fail(e, SES_EARG, "%zu examples; expected at most 4294967295", v->n);
    if (!complete) return ses_fail(e, SES_EARG, "the evaluation lacks the fields this metric reads");
    bool has_labels = m->kind <= SES_METRIC_TAGS || m->kind == SES_METRIC_GROUPS;
    return !has_labels || ses_labels_check(v, e);
}

/* ---- bootstrap ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear interpolation, as numpy.percentile. */
static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* Sets the bounds of each score. value[s * resamples + k]: score s of resample k; NaN is ignored. */
static void set_bounds(ses_score *item, size_t n, double *value, size_t resamples, double level)
{
    for (size_t s = 0; s < n; s++) {
        double *x = value + s * resamples;
        size_t n_valid = 0;
        for (size_t k = 0; k < resamples; k++)
            if (!isnan(x[k])) x[n_valid++] = x[k];
        if (!n_valid) continue;
        qsort(x, n_valid, sizeof *x, ascending);
        item[s].low = quantile(x, n_valid, (1 - level) / 2);
        item[s].high = quantile(x, n_valid, (1 + level) / 2);
    }
}

/* Stores the scores of resample k. A class may be absent from a resample, so scores are matched by name;
 * absent ones become NaN. */
static void store_resample(const ses_scores *drawn, const ses_score *item, size_t n, double *value,
                           size_t resamples, size_t k)
{
    for (size_t s = 0; s < n; s++) {
        bool aligned = s < drawn->n && !strcmp(drawn->item[s].name, item[s].name);
        double *to = &value[s * resamples + k];
        *to = NAN;
        if (aligned)
            *to = drawn->item[s].value;
        else
            ses_scores_find(drawn, item[s].name, to);
    }
}

static bool bootstrap(const ses_metric *m, const ses_example_stats *r, const ses_bootstrap *b,
                      ses_score *item, size_t n, ses_err *e)
{
    enum { SITE = 0x626f6f74 };
    size_t resamples = (size_t)b->resamples, count;
    if (!(b->level > 0 && b->level < 1))
        return ses_fail(e, SES_EARG, "confidence level %g; expected a value between 0 and 1", b->level);
    if (b->resamples < 2 || b->resamples > 1000000 || !ses_mul_size(n, resamples, &count))
        return ses_fail(e, SES_EARG, "%lld resamples; expected 2 to 1000000", (long long)b->resamples);
    uint32_t *at = ses_alloc_array(r->n, sizeof *at, e);
    double *value = at ? ses_alloc_array(count, sizeof *value, e) : NULL;
    ses_scores drawn = { 0 };
    bool ok = value != NULL;
    for (size_t k = 0; ok && k < resamples; k++) {
        ses_rng_key key = { b->seed, (uint32_t)k, SITE };
        for (size_t i = 0; i < r->n; i++) at[i] = (uint32_t)(((uint64_t)ses_rand32(key, i) * r->n) >> 32);
        drawn.n = 0;
        m->finish(r, &(ses_resample){ at, r->n }, &drawn);
        ok = !drawn.failed || ses_fail(e, SES_ENOMEM, "out of memory");
        if (ok) store_resample(&drawn, item, n, value, resamples, k);
    }
    if (ok) set_bounds(item, n, value, resamples, b->level);
    ses_scores_free(&drawn);
    ses_free(value);
    ses_free(at);
    return ok;
}

bool ses_metric_run(const char *name, const ses_evaluation *v, const ses_bootstrap *b, ses_scores *out,
                    ses_err *e)
{
    const ses_metric *m = find(name, e);
    if (!m) return false;
    ses_example_stats r = { .v = v, .n = v->n };
    size_t before = out->n;
    bool ok = check(m, v, e) && m->measure(m, &r, e);
    if (ok) m->finish(&r, &(ses_resample){ NULL, r.n }, out);
    if (ok && out->failed) ok = ses_fail(e, SES_ENOMEM, "out of memory");
    if (ok && b && b->resamples) ok = bootstrap(m, &r, b, out->item + before, out->n - before, e);
    stats_free(&r);
    if (ok) return true;
    out->n = before;
    out->failed = false;
    return ses_wrap(e, "metric %s", name);
}

bool ses_confusion_matrix(const ses_evaluation *v, int64_t *counts, ses_err *e)
{
    if (!v->true_labels || !v->pred_labels || !v->n_labels)
        return ses_fail(e, SES_EARG, "a confusion matrix needs labels");
    if (!ses_labels_check(v, e)) return false;
    memset(counts, 0, v->n_labels * v->n_labels * sizeof *counts);
    size_t n = v->cu ? v->cu[v->n] : v->n;
    for (size_t i = 0; i < n; i++)
        if (v->true_labels[i] != SES_IGNORE_INDEX)
            counts[(size_t)v->true_labels[i] * v->n_labels + (size_t)v->pred_labels[i]]++;
    return true;
}
