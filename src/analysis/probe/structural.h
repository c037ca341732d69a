/* Structural probes (Hewitt and Manning 2019): a linear map B under which squared distances between the
 * states of words, |B (h_i - h_j)|^2, approximate the distances in the dependency tree; or squared norms,
 * |B h_i|^2, the depths. The loss of a sentence is the mean absolute difference over its n^2 pairs or n
 * words, the loss of a batch the mean over its sentences.
 *
 * Results are the same for any number of threads. Threads: a call uses the threads of its device. */
#ifndef SES_ANALYSIS_STRUCTURAL_H
#define SES_ANALYSIS_STRUCTURAL_H

#include "analysis/treebank/treebank.h"
#include "tensor/device_impl.h"

typedef enum { SES_STRUCTURAL_DISTANCE, SES_STRUCTURAL_DEPTH } ses_structural_kind;

/* Gold distances and depths of a treebank. */
typedef struct ses_structural_gold {
    const ses_treebank *trees;
    int16_t *depth;    /* [words] */
    int16_t *distance; /* for each sentence [n, n] */
    size_t *at;        /* [n]: where the distances of a sentence begin */
} ses_structural_gold;

bool ses_structural_gold_new(ses_structural_gold *g, const ses_treebank *trees, ses_err *e);
void ses_structural_gold_free(ses_structural_gold *g);

/* Sentences with the states of one layer, borrowed. */
typedef struct ses_structural_set {
    const ses_structural_gold *gold;
    const ses_real *x; /* [words, width] */
} ses_structural_set;

typedef struct ses_structural_options {
    ses_structural_kind kind;
    size_t width, rank; /* B is [rank, width] */
    double rate;        /* learning rate */
    size_t batch;       /* sentences */
    int epochs;         /* at most; 0 keeps the initial B */
    int patience;       /* epochs without a better dev loss before it stops; each divides the rate by 10 */
    uint64_t seed;
    /* Called after each epoch; false stops. May be NULL. */
    bool (*progress)(void *ctx, int epoch);
    void *progress_ctx;
} ses_structural_options;

/* The settings of the paper; rank is the width. */
ses_structural_options ses_structural_defaults(ses_structural_kind kind, size_t width);

enum { SES_STRUCTURAL_MAX_EPOCHS = 1000 };

typedef struct ses_structural_probe {
    ses_structural_options o;
    ses_real *b;         /* [rank, width], of the best epoch */
    int epochs, best;    /* epochs that ran; the best of them, from 1 */
    double *train, *dev; /* [epochs] losses; train: the mean over the batches as they were trained */
} ses_structural_probe;

/* Trains on `train` and chooses the epoch by the loss on `dev`. dev: a device in host memory. Fails on
 * states that are not finite. */
bool ses_structural_train(ses_structural_probe *p, ses_device *device, const ses_structural_options *o,
                          const ses_structural_set *train, const ses_structural_set *dev, ses_err *e);
void ses_structural_free(ses_structural_probe *p);

/* Receives the predictions of sentence i: [n, n] distances or [n] depths. Runs in several threads. */
typedef void ses_structural_fn(void *ctx, size_t i, const ses_real *prediction);

/* Predicts all sentences of a set. */
bool ses_structural_predict(const ses_structural_probe *p, ses_device *device, const ses_structural_set *set,
                            ses_structural_fn *fn, void *ctx, ses_err *e);

/* Mean loss over the sentences of a set, and its gradient to grad [rank, width] if it is not NULL. */
bool ses_structural_loss(const ses_structural_probe *p, ses_device *device, const ses_structural_set *set,
                         double *loss, ses_real *grad, ses_err *e);

#endif
