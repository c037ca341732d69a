/* Interface of a metric. measure() reduces each example to a row of numbers once; finish() turns rows, all or
 * a bootstrap resample of them, into scores. So a bootstrap never processes the texts again.
 * ses_metric_run owns the ses_example_stats and frees it. One thread per evaluation. */
#ifndef SES_METRIC_METRIC_IMPL_H
#define SES_METRIC_METRIC_IMPL_H

#include "base/str.h"
#include "sesame/metric.h"

typedef struct ses_example_stats {
    const ses_evaluation *v;
    double *x; /* [n, width], zero-initialized */
    size_t n, width;
    double *work; /* [n_work] scratch of finish() */
    size_t n_work;
    const char **name; /* [names] entity types; they point into the label names */
    size_t *name_len;
    size_t names;
} ses_example_stats;

/* The rows to score: all, or a resample with replacement. */
typedef struct ses_resample {
    const uint32_t *at; /* [n] row numbers; NULL: all rows in order */
    size_t n;
} ses_resample;

static inline const double *ses_example_stats_at(const ses_example_stats *r, const ses_resample *p, size_t i)
{
    return r->x + (p->at ? p->at[i] : i) * r->width;
}

struct ses_metric {
    const char *name, *description;
    ses_metric_kind kind;
    bool (*measure)(const ses_metric *m, ses_example_stats *r, ses_err *e);
    void (*finish)(const ses_example_stats *r, const ses_resample *p, ses_scores *out);
    const char *negative;        /* its scores that may be below 0, '|' between; NULL: none */
    const char *lower_is_better; /* its scores that improve as they fall, '|' between; NULL: none */
    const void *settings;        /* distinguishes metrics that share their functions; NULL: the default */
};

/* Allocates x [n, width] and work [work]. */
bool ses_example_stats_new(ses_example_stats *r, size_t width, size_t work, ses_err *e);
void ses_scores_put(ses_scores *s, double value, const char *fmt, ...) SES_PRINTF(3, 4);

/* sum[j]: the sum of column j over the rows of p. */
void ses_example_stats_sum(const ses_example_stats *r, const ses_resample *p, double *sum);

/* A label's name, escaped for use in a score's name. */
typedef struct ses_label_name {
    char s[40];
} ses_label_name;
ses_label_name ses_label_name_of(const ses_evaluation *v, size_t label);

/* Checks that all labels are in range. ses_metric_run calls it before measure(). */
bool ses_labels_check(const ses_evaluation *v, ses_err *e);

/* Precision, recall and F1 from counts; 0 / 0 is 0. */
typedef struct ses_prf {
    double p, r, f;
} ses_prf;
static inline ses_prf ses_prf_compute(double correct, double predicted, double actual)
{
    ses_prf x = { predicted > 0 ? correct / predicted : 0, actual > 0 ? correct / actual : 0, 0 };
    if (predicted + actual > 0) x.f = 2 * correct / (predicted + actual);
    return x;
}

/* Micro, macro and weighted averages over the classes that occur; count [n, 3]: correct, predicted, actual.
 */
void ses_scores_put_averages(ses_scores *out, const double *count, size_t n);

#define SES_METRIC(name) extern const ses_metric ses_metric_##name;
#include "metrics.def"
#undef SES_METRIC

#endif
