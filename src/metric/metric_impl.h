/* Inside of a metric: it turns every example into a row of numbers once, and rows, all or a resample of them,
 * into scores. A bootstrap so costs no second look at texts. */
#ifndef SES_TRAIN_METRIC_H
#define SES_TRAIN_METRIC_H

#include "base/str.h"
#include "sesame/metric.h"

typedef struct ses_example_stats {
    const ses_evaluation *v;
    double *x; /* [n, width], zeroed when made */
    size_t n, width;
    double *work; /* room that finish asked for */
    size_t n_work;
    const char **name; /* of an entity's types; borrowed from label names */
    size_t *name_len;
    size_t names;
} ses_example_stats;

/* Which rows count, one by one: all, or those drawn. */
typedef struct ses_resample {
    const uint32_t *at; /* NULL: all in order */
    size_t n;
} ses_resample;

static inline const double *ses_example_stats_at(const ses_example_stats *r, const ses_resample *p, size_t i)
{
    return r->x + (p->at ? p->at[i] : i) * r->width;
}

struct ses_metric {
    const char *name, *what;
    ses_metric_kind kind;
    bool (*measure)(const ses_metric *m, ses_example_stats *r, ses_err *e);
    void (*finish)(const ses_example_stats *r, const ses_resample *p, ses_scores *out);
    const void *settings; /* of a family's member */
};

bool ses_example_stats_new(ses_example_stats *r, size_t width, size_t work, ses_err *e);
void ses_scores_put(ses_scores *s, double value, const char *fmt, ...) SES_PRINTF(3, 4);

/* Sums of the picked rows, column by column. */
void ses_example_stats_sum(const ses_example_stats *r, const ses_resample *p, double *sum);

/* "LABEL", fit for the name of a score. */
typedef struct ses_label_name {
    char s[40];
} ses_label_name;
ses_label_name ses_label_name_of(const ses_evaluation *v, size_t label);

/* The range of labels is checked once, before any metric looks. */
bool ses_labels_check(const ses_evaluation *v, ses_err *e);

/* Precision, recall and F1 from counts; 0 where there is nothing to divide by. */
typedef struct ses_prf {
    double p, r, f;
} ses_prf;
static inline ses_prf ses_prf_compute(double right, double predicted, double actual)
{
    ses_prf x = { predicted > 0 ? right / predicted : 0, actual > 0 ? right / actual : 0, 0 };
    if (predicted + actual > 0) x.f = 2 * right / (predicted + actual);
    return x;
}

/* Averages over the classes that occur, from their counts (right, predicted, actual) [n, 3]. */
void ses_scores_put_averages(ses_scores *out, const double *count, size_t n);

#define SES_METRIC(name) extern const ses_metric ses_metric_##name;
#include "metrics.def"
#undef SES_METRIC

#endif
