/* The default trainer of fastText models with labels: fast, the same bits for any number of threads,
 * resumable bit for bit.
 *
 * Texts are shuffled each epoch and trained in batches. Hidden vectors of a batch are summed in parallel
 * while one thread trains the output matrix on the batch before it, example by example; then all threads
 * add gradients to rows, each thread to its own rows. A hidden vector is thus at most two batches old, and
 * no result depends on the number of threads. */
#ifndef SES_VECTORS_FASTTEXT_TRAINER_H
#define SES_VECTORS_FASTTEXT_TRAINER_H

#include "base/thread_pool.h"
#include "fasttext_train.h"

/* Texts with labels; everything is borrowed. */
typedef struct ses_fasttext_texts {
    const ses_string *text; /* [n] */
    size_t n;
    const int32_t *label;         /* [n]: index in label_name; NULL: labels are the words with the prefix */
    const ses_string *label_name; /* [n_labels], without the prefix */
    size_t n_labels;
    const char *name; /* name of the file, for messages; text i is its line first_line + i */
    int64_t first_line;
} ses_fasttext_texts;

typedef struct ses_fasttext_run {
    ses_thread_pool *pool; /* NULL: on the calling thread */
    int64_t batch;         /* examples of a batch; 0: a default */
    const char *state;     /* file for the state of an interrupted run; NULL: none. The caller removes it
                            * once the model is saved. */
    bool resume;           /* start from that file */
    double save_seconds; /* save the state at the end of an epoch after this time; 0: at interruption only */
    double loss;         /* result: mean loss of the last epoch */
    int64_t words;       /* result: tokens trained, over all epochs */
    bool interrupted;    /* result: progress requested the stop; the state was saved */
} ses_fasttext_run;

/* Splits the lines of a text in memory. Free with ses_free. */
ses_string *ses_fasttext_lines(const char *text, size_t size, size_t *n, ses_err *e);
/* Trains a model. *m must be zeroed; clear it even on failure. Fails for a text without a label, with its
 * line, and for fewer than two labels. o->progress is called from the calling thread. */
bool ses_fasttext_train(const ses_fasttext_options *o, const ses_fasttext_texts *t, ses_fasttext_run *run,
                        ses_fasttext_model *m, ses_err *e);

#endif
