/* Classifiers of texts without a neural encoder: majority class, Naive Bayes, NB-SVM, bags of vectors,
 * fastText. A method is one file classifier_NAME.c and one line in classifiers.def.
 *
 * Ownership: a ses_classifier owns what it has learned; jobs borrow everything. Threads: training uses the
 * threads of job->pool and gives the same bits for any number of them; scores may be computed by several
 * threads at once. */
#ifndef SES_VECTORS_CLASSIFIER_H
#define SES_VECTORS_CLASSIFIER_H

#include "base/opt_table.h"
#include "base/thread_pool.h"
#include "sesame/json.h"
#include "vectors/word_split.h"

typedef struct ses_classifier_kind ses_classifier_kind;

/* How often a feature counts that occurs several times in a text. */
typedef enum { SES_COUNT_DEFAULT, SES_COUNT_ONCE, SES_COUNT_ALL } ses_feature_counts;

/* Settings of all methods. A zeroed field is the method's default. A method reads the settings of its list,
 * the others are refused if they are given. */
typedef struct ses_classifier_settings {
    int words;                    /* 0: SES_WORDS_TEXT, 1: SES_WORDS_BLANK */
    int64_t ngrams;               /* features are n-grams of 1 to N words */
    int64_t min_count;            /* least count of a feature in the training texts */
    int counts;                   /* ses_feature_counts */
    double alpha;                 /* added to the counts of features */
    double beta;                  /* nb-svm: interpolation of weights with their mean magnitude */
    double c;                     /* inverse regularization strength */
    const char *vectors;          /* file of word vectors */
    int64_t dim;                  /* columns of vectors that are trained */
    int64_t buckets;              /* rows for hashed n-grams */
    int64_t min_chars, max_chars; /* lengths of character n-grams */
    int64_t negatives;            /* negative samples */
    const char *loss;
    double epochs, lr;
    struct {
        bool words, ngrams, min_count, counts, alpha, beta, c, vectors, dim, buckets, min_chars, max_chars,
            negatives;
        bool loss, epochs, lr;
    } given;
} ses_classifier_settings;

ses_words_rule ses_classifier_words(const ses_classifier_settings *s);
/* Reads the member "words" of config.json's "classifier". */
bool ses_classifier_read_words(const ses_json *config, ses_words_rule *rule, ses_err *e);

/* Options of the settings, except loss, epochs and lr, which `sesame finetune` has for models too. */
extern const ses_opt_table ses_classifier_option_table;

typedef struct ses_classifier_job {
    const ses_string *text; /* [n], valid UTF-8 */
    const int32_t *label;   /* [n]: 0 .. n_labels - 1 */
    size_t n, n_labels;
    ses_classifier_settings settings;
    uint64_t seed;
    ses_thread_pool *pool; /* NULL: the calling thread only */
    /* Called from the calling thread now and then: done of total steps; loss NaN: unknown. False: stop
     * (SES_EINTR or the error in e). May be NULL. */
    bool (*progress)(void *ctx, int64_t done, int64_t total, double loss);
    void *ctx;
} ses_classifier_job;

/* The texts are labeled; the loss of training, if the method has one, is stored in *loss (NaN before). */
struct ses_classifier_kind {
    const char *name, *summary;
    const char *settings; /* names of the options it reads, '|' between; "": none */
    /* Trains on the job's texts: at least one text; at least two classes occur, unless one_class. */
    void *(*train)(const ses_classifier_job *job, double *loss, ses_err *e);
    bool one_class; /* can be trained if all texts have the same label */
    /* Reads what save has written. config: config.json, which has passed the checks of ses_classifier_open;
     * a method's own members are in its object "classifier". */
    void *(*open)(const char *dir, const ses_json *config, size_t n_labels, ses_err *e);
    /* Writes files into folder dir, and members of the object "classifier" of config.json with w. */
    bool (*save)(const void *self, const char *dir, ses_json_writer *w, ses_err *e);
    /* Writes the natural logarithms of the class probabilities [n_labels] of one text. */
    bool (*log_probabilities)(const void *self, ses_string text, double *out, ses_err *e);
    int64_t (*parameters)(const void *self); /* learned numbers; NULL: not counted */
    int64_t (*features)(const void *self);   /* words and n-grams with a weight or vector; NULL: none */
    void (*free)(void *self);                /* self may be NULL */
};

#define SES_CLASSIFIER(name) extern const ses_classifier_kind ses_classifier_##name;
#include "classifiers.def"
#undef SES_CLASSIFIER

/* The i-th method; NULL past the last. */
const ses_classifier_kind *ses_classifier_at(size_t i);
/* The method of this name. NULL: unknown, with the names that exist in e (SES_EUSAGE). */
const ses_classifier_kind *ses_classifier_find(const char *name, ses_err *e);

/* ---- a trained classifier ---- */

typedef struct ses_classifier {
    const ses_classifier_kind *kind;
    void *self; /* the method's */
    size_t n_labels;
    double train_loss; /* NaN: the method has none */
} ses_classifier;

/* Fails with SES_EUSAGE for a setting the method does not read. */
bool ses_classifier_check_settings(const ses_classifier_kind *k, const ses_classifier_settings *s,
                                   ses_err *e);
/* Trains a classifier. Fails for texts of a single class unless the method allows it. */
ses_classifier *ses_classifier_train(const ses_classifier_kind *k, const ses_classifier_job *job, ses_err *e);
void ses_classifier_free(ses_classifier *c); /* c may be NULL */

/* model_type in the config.json of a classifier's folder */
#define SES_CLASSIFIER_MODEL_TYPE "sesame_classifier"
/* Whether a config.json is that of a classifier. */
bool ses_classifier_is_config(const ses_json *config);
/* Whether a folder holds a classifier, or a file is a model of fastText, with or without labels. False if a
 * config.json cannot be read. */
bool ses_classifier_is_dir(const char *dir);
/* The config.json of a classifier's folder; of a file of fastText (.bin, .ftz) the config that such a folder
 * would have. NULL on failure. Free with ses_json_free. */
ses_json_doc *ses_classifier_config_open(const char *path, ses_err *e);
/* Opens the folder of a classifier or a file of fastText; config: its config.json. Fails for an unknown
 * method, another version of the format, and files that are incomplete or do not fit together. */
ses_classifier *ses_classifier_open(const char *dir, const ses_json *config, ses_err *e);
/* Writes config.json with the labels [n_labels], and the files of the method, into a folder that exists. */
bool ses_classifier_save(const ses_classifier *c, const char *dir, const char *const *labels, ses_err *e);

/* The log probabilities [n, n_labels] of n texts. pool NULL: on the calling thread. */
bool ses_classifier_run(const ses_classifier *c, const ses_string *text, size_t n, ses_thread_pool *pool,
                        double *out, ses_err *e);
/* How many of n texts that are not empty are classified as an empty text: none of their words is known. */
bool ses_classifier_count_unknown(const ses_classifier *c, const ses_string *text, size_t n, size_t *unknown,
                                  ses_err *e);

#endif
