/* Scores of predicted labels: precision and recall of the k best, F1, and points of the precision-recall
 * curve, as fastText's `test` and autotune compute them. */
#ifndef SES_VECTORS_FASTTEXT_METER_H
#define SES_VECTORS_FASTTEXT_METER_H

#include "fasttext_trainer.h"

typedef enum {
    SES_FASTTEXT_F1,
    SES_FASTTEXT_PRECISION_AT_RECALL,
    SES_FASTTEXT_RECALL_AT_PRECISION,
} ses_fasttext_metric_kind;

/* A metric by name: f1, f1:LABEL, precisionAtRecall:PERCENT[:LABEL], recallAtPrecision:PERCENT[:LABEL]. */
typedef struct ses_fasttext_metric {
    ses_fasttext_metric_kind kind;
    double at;         /* 0 to 1 */
    const char *label; /* with its prefix; points into the name; NULL: all labels */
} ses_fasttext_metric;

bool ses_fasttext_metric_parse(ses_fasttext_metric *m, const char *name, ses_err *e);

typedef struct ses_fasttext_counts {
    int64_t gold, predicted, hit;
} ses_fasttext_counts;

/* A predicted label, or a gold label that was not predicted (score -1). */
typedef struct ses_fasttext_outcome {
    float score;
    int32_t label;
    bool gold;
} ses_fasttext_outcome;

typedef struct ses_fasttext_meter {
    int64_t examples; /* with known labels and words */
    ses_fasttext_counts all;
    ses_fasttext_counts *label; /* [labels of the model] */
    ses_fasttext_outcome *outcome;
    size_t n, capacity;
} ses_fasttext_meter;

/* Predicts the k best labels of each text. *meter must be zeroed; free it even on failure. */
bool ses_fasttext_measure(const ses_fasttext_model *m, const ses_fasttext_texts *t, size_t k, float threshold,
                          ses_fasttext_meter *meter, ses_err *e);
void ses_fasttext_meter_free(ses_fasttext_meter *meter);
double ses_fasttext_precision(const ses_fasttext_counts *c); /* NaN: nothing predicted */
double ses_fasttext_recall(const ses_fasttext_counts *c);
double ses_fasttext_f1(const ses_fasttext_counts *c);
/* Fails for a label the model does not have. */
bool ses_fasttext_metric_score(const ses_fasttext_metric *metric, const ses_fasttext_model *m,
                               const ses_fasttext_meter *meter, double *score, ses_err *e);

#endif
