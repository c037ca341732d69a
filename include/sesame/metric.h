/* Metrics: scores of predictions, computed as the established tools do (docs/TRAINING.md names the tool for
 * each metric). A metric reads some fields of a ses_evaluation and appends one or more named scores:
 *
 *     ses_evaluation v = { .n = 4, .true_labels = labels, .pred_labels = pred, .n_labels = 2 };
 *     ses_scores s = { 0 };
 *     if (ses_metric_run("f1", &v, NULL, &s, &e)) ses_scores_find(&s, "f1_macro", &x);
 *     ses_scores_free(&s);
 *
 * Ownership: the evaluation's arrays belong to the caller and are only read; ses_scores is freed by
 * ses_scores_free. Threads: no state is kept between calls, so several threads may compute metrics at once.
 * Failure: false, with the reason in e. */
#ifndef SESAME_METRIC_H
#define SESAME_METRIC_H

#include "sesame/base.h"

SES_BEGIN_DECLS

typedef struct ses_metric ses_metric;

/* True values and predictions. Fields a metric does not read may be NULL. */
typedef struct ses_evaluation {
    size_t n; /* examples */

    /* [n], or [cu[n]] if cu is set; a true label of SES_IGNORE_INDEX is skipped */
    const int32_t *true_labels, *pred_labels;
    const size_t *cu; /* [n + 1], for tags: example i has labels cu[i] .. cu[i + 1] - 1 */
    size_t n_labels;
    const char *const *labels; /* [n_labels] names; NULL: their numbers (entity metrics need names) */

    const uint8_t *true_sets, *pred_sets; /* [n, n_labels] multi-label: 1 if the label applies */

    const double *true_reals, *pred_reals; /* [n] regression */

    const double *nll; /* [n] negative log likelihood, natural logarithm, summed over an example's tokens */
    const int64_t *n_nll; /* [n] tokens in that sum */

    const char *const *pred_texts; /* [n], UTF-8 */
    const char *const *ref_texts; /* [ref_cu[n]] reference texts: accepted answers, summaries, translations */
    const size_t *ref_cu;         /* [n + 1]; NULL: one reference text per example */
    const int64_t *groups;        /* [n]: equal numbers are answers of one question, or a minimal pair */
    const double *no_answer; /* [n], or NULL: no-answer probability (squad_v2 finds the best threshold) */
    const int64_t *n_words;  /* [n] words of the text whose nll is given; NULL: unknown */
} ses_evaluation;

typedef struct ses_score {
    char name[64];
    double value;     /* NaN: undefined, e.g. a correlation with a constant */
    double low, high; /* bounds of the confidence interval; NaN: no bootstrap */
} ses_score;

/* Scores in the order they were added. Zero-initialize before the first use; more metrics append. */
typedef struct ses_scores {
    ses_score *item;
    size_t n, cap;
    bool failed; /* out of memory */
} ses_scores;

/* Writes the score of this name to *value; false if there is none. */
bool ses_scores_find(const ses_scores *s, const char *name, double *value);
/* Frees the scores and zeroes the struct. */
void ses_scores_free(ses_scores *s);

/* Percentile bootstrap over examples. The same seed gives the same bounds on every machine. */
typedef struct ses_bootstrap {
    int64_t resamples; /* 0: no bootstrap */
    double level;      /* confidence level, e.g. 0.95 */
    uint64_t seed;
} ses_bootstrap;

/* Appends the scores of the metric `name` (see ses_metric_at) to out. b: NULL for no confidence intervals.
 * Fails with SES_EARG on an unknown name, missing fields or labels out of range; out is then unchanged. */
bool ses_metric_run(const char *name, const ses_evaluation *v, const ses_bootstrap *b, ses_scores *out,
                    ses_err *e);

/* The fields of ses_evaluation that a metric reads. */
typedef enum {
    SES_METRIC_LABELS, /* true_labels, pred_labels, n_labels */
    SES_METRIC_TAGS,   /* the same, with cu and label names */
    SES_METRIC_SETS,   /* true_sets, pred_sets, n_labels */
    SES_METRIC_REALS,  /* true_reals, pred_reals */
    SES_METRIC_NLL,    /* nll, n_nll */
    SES_METRIC_TEXTS,  /* pred_texts, ref_texts */
    SES_METRIC_GROUPS  /* true_labels, pred_labels, n_labels, groups */
} ses_metric_kind;

/* Lists the metrics: the name of the i-th, NULL past the last. description and kind may be NULL. The strings
 * are static. */
const char *ses_metric_at(size_t i, const char **description, ses_metric_kind *kind);

/* Whether a score improves as it falls: "loss", "mlm_loss", "mse", "perplexity"; false for unknown names. */
bool ses_metric_lower_is_better(const char *score);

/* Fills the confusion matrix: counts[t * n_labels + p] is the number of examples (or tags) of true label t
 * predicted as p. counts has n_labels^2 elements. Fails with SES_EARG if labels are missing or out of
 * range. */
bool ses_confusion_matrix(const ses_evaluation *v, int64_t *counts, ses_err *e);

SES_END_DECLS

#endif
