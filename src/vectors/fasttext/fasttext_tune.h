/* Autotune: trials of settings, each near the best so far, scored on validation texts; the best is trained
 * again. The settings of trial i are a function of the seed and of the scores before it. A limit of trials
 * makes the whole result deterministic; a time limit makes the number of trials depend on the machine. */
#ifndef SES_VECTORS_FASTTEXT_TUNE_H
#define SES_VECTORS_FASTTEXT_TUNE_H

#include "fasttext_meter.h"
#include "fasttext_quantize.h"

typedef struct ses_fasttext_trial {
    int64_t number;         /* from 1 */
    ses_fasttext_options o; /* settings */
    int32_t dsub;
    int64_t cutoff; /* 0: not quantized */
    double score;   /* NaN: failed */
    double seconds;
    bool best;          /* better than the trials before */
    const char *reason; /* why it failed; "": it did not */
} ses_fasttext_trial;

typedef struct ses_fasttext_tuning {
    ses_fasttext_options start; /* first trial; progress false: stop */
    struct {
        bool epoch, lr, dim, word_ngrams, dsub, minn, maxn, bucket;
    } fixed; /* settings that keep their value */
    int32_t dsub;
    double seconds;     /* time limit; 0: none */
    int64_t trials;     /* 0: no limit; one of the two is needed */
    int64_t model_size; /* largest size of the quantized file in bytes; 0: not quantized */
    ses_fasttext_metric metric;
    size_t predictions; /* labels per text; 0: 1 */
    ses_thread_pool *pool;
    void (*on_trial)(void *ctx, const ses_fasttext_trial *trial); /* may be NULL */
    void *ctx;
} ses_fasttext_tuning;

/* Trains the best model. *m must be zeroed; clear it even on failure. *best: its trial. */
bool ses_fasttext_tune(const ses_fasttext_tuning *t, const ses_fasttext_texts *train,
                       const ses_fasttext_texts *valid, ses_fasttext_model *m, ses_fasttext_trial *best,
                       ses_err *e);
/* "2M", "500k", "1g": bytes, in powers of 1000 as fastText. */
bool ses_fasttext_size_of(const char *text, int64_t *bytes, ses_err *e);

#endif
