/* One probe on frozen vectors: softmax regression or an MLP, its accuracy, and its codelength by online
 * coding (Voita and Titov 2020). Results are the same for any number of threads. */
#ifndef SES_ANALYSIS_PROBE_FIT_H
#define SES_ANALYSIS_PROBE_FIT_H

#include "sesame/base.h"

/* Vectors x [n, width] with labels y [n]: a class, or below 0: a label that training lacks, always wrong. */
typedef struct ses_probe_set {
    const float *x;
    const int32_t *y;
    size_t n;
} ses_probe_set;

typedef struct ses_probe_fit_options {
    ses_device *dev; /* in host memory */
    const double *c; /* [n_c] candidates of C, ascending; the best on dev is used. One: no choice */
    size_t n_c;
    int64_t hidden; /* units of an MLP; 0: softmax regression */
    bool mdl;       /* computes the codelength */
    double tolerance;
    uint64_t seed;
} ses_probe_fit_options;

typedef struct ses_probe_scores {
    double c;                   /* chosen C */
    double dev;                 /* accuracy on dev; micro-F1, if there is one */
    double accuracy, low, high; /* on test, with its 95 % Wilson interval */
    double f1;                  /* micro-F1 on test; NaN: the probe predicts one label */
    double bits;                /* codelength of the training labels; with mdl */
    double plain_bits;          /* the same without smoothing, but for labels that a prefix lacks */
    double lacking;             /* labels that are coded after a prefix without them */
    double compression;         /* n log2 K / bits */
} ses_probe_scores;

/* Fits a probe to train, whose rows are in random order, and evaluates it. */
bool ses_probe_fit(const ses_probe_fit_options *o, const ses_probe_set *train, const ses_probe_set *dev,
                   const ses_probe_set *test, size_t width, size_t classes, ses_probe_scores *out,
                   ses_err *e);

/* Ends of the blocks of online coding among n examples; returns their number. The last one is n. */
enum { SES_PROBE_BLOCKS = 11 };
size_t ses_probe_block_ends(size_t n, size_t end[SES_PROBE_BLOCKS]);

/* log2 of the probability p of a label, mixed with the uniform distribution as if each of `classes` labels
 * had been seen once more than in n examples: labels that a block lacks have a finite code. */
double ses_probe_code(double p, size_t n, size_t classes);

/* The code of labels. */
typedef struct ses_probe_bits {
    double smooth, plain, lacking; /* as bits, plain_bits and lacking of ses_probe_scores */
} ses_probe_bits;

/* Adds label y with probability p after n examples; seen [classes]: labels among them. */
void ses_probe_bits_add(ses_probe_bits *b, double p, size_t n, const bool *seen, size_t y, size_t classes);

/* The 95 % Wilson interval of k successes in n. */
void ses_wilson_interval(double k, double n, double *low, double *high);

#endif
