/* A linear model over bags of n-grams, which Naive Bayes, NB-SVM and logistic regression share: they differ
 * in how they find the weights. Files: config.json has the rule of words and the kind of features, vocab.txt
 * the n-grams, model.safetensors weight [rows, features], bias [rows] and, for TF-IDF, idf [features], in
 * f64. */
#ifndef SES_VECTORS_BAG_MODEL_H
#define SES_VECTORS_BAG_MODEL_H

#include "bag.h"
#include "classifier.h"

typedef enum { SES_FEATURE_COUNT, SES_FEATURE_BINARY, SES_FEATURE_TFIDF } ses_feature_value;
typedef enum {
    SES_LINK_SOFTMAX, /* probabilities are the softmax of the scores; one row: of 0 and its score */
    SES_LINK_RATIO    /* one against the rest: probabilities are proportional to the rows' sigmoids */
} ses_link;

typedef struct ses_bag_model {
    ses_bag_vocab vocab;
    ses_feature_value value;
    ses_link link;
    size_t n_labels, rows; /* rows: 1 for two labels, or n_labels */
    double *weight;        /* [rows, features] */
    double *bias;          /* [rows] */
    double *idf;           /* [features]; NULL: not TF-IDF */
} ses_bag_model;

/* The model of a job, with settings and vocabulary, and the bags of its texts. Counts are 1 if value is
 * SES_FEATURE_BINARY. Free both; b even on failure. Weights are allocated, zero. */
ses_bag_model *ses_bag_model_new(const ses_classifier_job *job, ses_feature_value value, size_t rows,
                                 ses_bags *b, ses_err *e);

/* The functions of a ses_classifier_kind; self is a ses_bag_model. */
void *ses_bag_model_open(const char *dir, const ses_json *config, size_t n_labels, ses_err *e);
bool ses_bag_model_save(const void *self, const char *dir, ses_json_writer *w, ses_err *e);
bool ses_bag_model_log_probabilities(const void *self, ses_string text, double *out, ses_err *e);
int64_t ses_bag_model_parameters(const void *self);
int64_t ses_bag_model_features(const void *self);
void ses_bag_model_free(void *self);

/* Names and shapes of tensors in a file that others wrote: the doubles of tensor `name`, [rows, cols] or, if
 * rows is 0, [cols]. NULL: absent, or of another shape. Free with ses_free. */
struct ses_safetensors;
double *ses_tensor_doubles(const struct ses_safetensors *s, const char *name, size_t rows, size_t cols,
                           ses_err *e);

/* Log probabilities from the scores of a model's rows. */
void ses_scores_to_log_probabilities(ses_link link, const double *score, size_t rows, size_t n_labels,
                                     double *out);

#endif
