/* Metrics: numbers that say how good predictions are, counted as the usual tools count (docs/TRAINING.md
 * names the tool for each). A metric reads some fields of a ses_evaluation and gives one or more named
 * scores:
 *
 *     ses_evaluation v = { .n = 4, .gold = gold, .pred = pred, .n_labels = 2 };
 *     ses_scores s = { 0 };
 *     if (ses_metric_run("f1", &v, NULL, &s, &e)) ses_scores_find(&s, "f1_macro", &x);
 *     ses_scores_free(&s);
 *
 * Nothing is kept from call to call: several threads may measure at once. */
#ifndef SESAME_METRIC_H
#define SESAME_METRIC_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_metric ses_metric;

/* What was predicted and what is right; all arrays are the caller's, fields a metric does not read may be
 * NULL. */
typedef struct ses_evaluation {
    size_t n; /* examples */

    const int32_t *gold,
        *pred;        /* labels: [n], or with cu [cu[n]]; a gold one of SES_IGNORE_INDEX is left out */
    const size_t *cu; /* [n + 1] for tags: example i has labels cu[i] .. cu[i + 1] - 1 */
    size_t n_labels;
    const char *const *labels; /* [n_labels] names; NULL: their numbers (entities need names) */

    const uint8_t *gold_sets, *pred_sets; /* [n, n_labels]: 1 where the label applies */

    const double *gold_reals, *pred_reals; /* [n] numbers */

    const double *nll; /* [n] negative log likelihood, natural logarithm, summed over an example's tokens */
    const int64_t *n_nll; /* [n] tokens in that sum */

    const char *const *pred_texts; /* [n], UTF-8 */
    const char *const *gold_texts; /* [gold_cu[n]]: right answers */
    const size_t *gold_cu;         /* [n + 1]; NULL: one each */
    const double *no_answer; /* [n], or NULL: how sure there is none (squad_v2 finds the best threshold) */
} ses_evaluation;

typedef struct ses_score {
    char name[64];
    double value;     /* NaN where undefined: a correlation with a constant */
    double low, high; /* bounds of the confidence interval; NaN without a bootstrap */
} ses_score;

/* Scores in the order they were made. Zeroed: empty and ready; more metrics add theirs. */
typedef struct ses_scores {
    ses_score *item;
    size_t n, cap;
    bool failed; /* out of memory */
} ses_scores;

bool ses_scores_find(const ses_scores *s, const char *name, double *value);
void ses_scores_free(ses_scores *s); /* back to zero */

/* Percentile bootstrap over examples. The same seed gives the same bounds on every machine. */
typedef struct ses_bootstrap {
    int64_t resamples; /* 0: none */
    double level;      /* 0.95 */
    uint64_t seed;
} ses_bootstrap;

/* Appends the metric's scores. b may be NULL. On failure nothing is appended. */
bool ses_metric_run(const char *name, const ses_evaluation *v, const ses_bootstrap *b, ses_scores *out,
                    ses_err *e);

/* What the evaluation needs for a metric. */
typedef enum {
    SES_METRIC_LABELS, /* gold, pred, n_labels */
    SES_METRIC_TAGS,   /* the same with cu and label names */
    SES_METRIC_SETS,   /* gold_sets, pred_sets, n_labels */
    SES_METRIC_REALS,  /* gold_reals, pred_reals */
    SES_METRIC_NLL,    /* nll, n_nll */
    SES_METRIC_TEXTS   /* pred_texts, gold_texts */
} ses_metric_kind;

/* The i-th metric's name, what it is in one line, and its kind; NULL past the last. */
const char *ses_metric_at(size_t i, const char **what, ses_metric_kind *kind);

/* counts[g * n_labels + p]: examples (or tags) of label g predicted as p. */
bool ses_confusion_matrix(const ses_evaluation *v, int64_t *counts, ses_err *e);

SES_END_DECLS

#endif
