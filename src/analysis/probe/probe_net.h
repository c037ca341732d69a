/* Probes that are trained by gradient descent on spans of words: the edge probe (Tenney et al. 2019), and
 * scalar mixes of layers.
 *
 * The input of an example is one span of words, or two. Words are mixed over layers, sum_l softmax(w)_l h_l.
 * Linear: the mean of each span, softmax regression, cross entropy. Edge: projection to 256 columns for each
 * span, self-attentive pooling softmax(u . p) p, dropout 0.3, MLP with 256 units (tanh), and an independent
 * sigmoid for each label with binary cross entropy; micro-F1 of probabilities above 0.5.
 *
 * Codelength: online coding as in probe_fit.h, each network trained from the start. The probability of a
 * label is that of softmax; of an edge probe its sigmoid divided by the sum of all.
 *
 * Adam, batches of 64; stops after `patience` epochs without a better dev loss. The same bits for any number
 * of threads. */
#ifndef SES_ANALYSIS_PROBE_NET_H
#define SES_ANALYSIS_PROBE_NET_H

#include "sesame/unstable/store.h"

enum { SES_PROBE_NET_MAX_SPANS = 2 };

/* Examples of a set: span s of example i has the rows begin[s][i] .. begin[s][i] + length[i] - 1 of x[l] for
 * each layer l; length NULL: 1. */
typedef struct ses_probe_net_set {
    size_t n;
    const float *const *x; /* [layers]: [rows, width] */
    const uint32_t *begin[SES_PROBE_NET_MAX_SPANS], *length;
    const int32_t *y; /* [n]; below 0: a label that training lacks */
} ses_probe_net_set;

typedef struct ses_probe_net_options {
    ses_device *dev;
    size_t layers, width, classes, spans;
    bool edge;
    int64_t units; /* projection and hidden layer; 0: 256 */
    double dropout, rate;
    size_t batch;
    int epochs, patience;
    uint64_t seed;
    bool mdl; /* computes the codelength of the training labels, which are in random order */
    /* Sets initial values after the random ones; NULL: none. For tests. */
    void (*set_values)(void *ctx, ses_store *store);
    void *ctx;
} ses_probe_net_options;

/* The defaults: dropout 0.3, rate 1e-3, batches of 64, at most 20 epochs, patience 2. */
ses_probe_net_options ses_probe_net_defaults(ses_device *dev, size_t layers, size_t width, size_t classes,
                                             size_t spans, bool edge);

typedef struct ses_probe_net_result {
    double accuracy;                 /* the label with the highest score */
    double f1;                       /* micro-F1; of a linear probe the accuracy */
    double dev;                      /* the same on dev */
    double bits, plain_bits;         /* codelength, and without smoothing (probe_fit.h); NaN without mdl */
    double lacking;                  /* labels that are coded after a prefix without them */
    double mix[256];                 /* softmax(w) over layers */
    double loss[256], dev_loss[256]; /* mean loss of each epoch */
    int epochs;
} ses_probe_net_result;

bool ses_probe_net_run(const ses_probe_net_options *o, const ses_probe_net_set *train,
                       const ses_probe_net_set *dev, const ses_probe_net_set *test, ses_probe_net_result *out,
                       ses_err *e);

#endif
