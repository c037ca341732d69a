/* Supervised training of fastText models: the mean of the rows of a text's words and n-grams predicts its
 * label.
 *
 * Two trainers share settings, dictionary and result. ses_fasttext_train_exact gives the bits of fastText
 * on one thread, quirks included. ses_fasttext_train (fasttext_trainer.h) is faster and has the same bits
 * for any number of threads. */
#ifndef SES_VECTORS_FASTTEXT_TRAIN_H
#define SES_VECTORS_FASTTEXT_TRAIN_H

#include "fasttext_model.h"

typedef struct ses_fasttext_options {
    ses_fasttext_settings set;
    double lr;
    int64_t min_count_label, seed;
    const char *label;      /* prefix of labels; NULL: "__label__" */
    const char *pretrained; /* text file of word vectors; NULL: none */
    /* Reports words read; false: stop. May be NULL. */
    bool (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
} ses_fasttext_options;

/* fastText's defaults for supervised training. */
ses_fasttext_options ses_fasttext_defaults(void);
/* Number of a loss by its name: softmax, ns, hs, ova or one-vs-all. */
bool ses_fasttext_loss_of(const char *name, int32_t *loss, ses_err *e);
const char *ses_fasttext_loss_name(int32_t loss);
/* Fails for settings out of range; sets bucket to 0 without n-grams. */
bool ses_fasttext_check(ses_fasttext_options *o, ses_err *e);

/* Trains on a file of lines with labels. *m must be zeroed; clear it even on failure. */
bool ses_fasttext_train_exact(const ses_fasttext_options *o, const char *path, ses_fasttext_model *m,
                              ses_err *e);
/* Continues with the matrices in memory of a model, for o->set.epoch epochs: the retraining of pruned
 * rows. */
bool ses_fasttext_retrain_exact(const ses_fasttext_options *o, ses_string text, ses_fasttext_model *m,
                                ses_err *e);

/* ---- parts that trainers share ---- */

/* fastText's table of negative samples over the entries [from, to) of the dictionary, numbered from 0.
 * Free with ses_free. */
int32_t *ses_fasttext_negatives(const ses_fasttext_dictionary *d, size_t from, size_t to, size_t *n,
                                ses_err *e);
/* Counts the words of a file of vectors into the dictionary. Fails if they do not have dim columns. */
bool ses_fasttext_count_pretrained(ses_fasttext_dictionary *d, const char *path, int32_t dim, ses_err *e);
/* Copies the vectors of known words into the rows of `in`, which are `stride` numbers apart. */
bool ses_fasttext_copy_pretrained(const ses_fasttext_dictionary *d, const char *path, float *in,
                                  size_t stride, ses_err *e);

#endif
