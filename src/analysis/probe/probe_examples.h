/* The examples of one task: which ones, in which order, with the labels of the task and of its control task,
 * and the baselines that need no model. Free it even on failure. */
#ifndef SES_ANALYSIS_PROBE_EXAMPLES_H
#define SES_ANALYSIS_PROBE_EXAMPLES_H

#include "probe_data.h"

typedef struct ses_probe_examples {
    size_t n[SES_PROBE_SETS];
    int32_t *at[SES_PROBE_SETS]; /* [n]: examples of the data */
    int32_t *y[SES_PROBE_SETS], *control[SES_PROBE_SETS];
} ses_probe_examples;

/* Training examples in random order, at most max_train; at most max_other of the other sets, drawn at random
 * if there are more. 0: all. *x is zeroed before. */
bool ses_probe_examples_new(ses_probe_examples *x, const ses_probe_data *d, const ses_probe_task *t,
                            size_t max_train, size_t max_other, uint64_t seed, ses_err *e);
void ses_probe_examples_free(ses_probe_examples *x); /* back to zero */

/* Label of a word type in the control task (Hewitt and Liang 2019): that of a training example drawn by a
 * hash of (seed, word). train [n]: the training examples. */
int32_t ses_probe_control_label(const ses_probe_data *d, const ses_probe_task *t, uint32_t type,
                                uint64_t seed, const int32_t *train, size_t n);

/* Puts 0 .. n - 1 in random order, a function of (seed, step, site). */
void ses_probe_shuffle(int32_t *order, size_t n, uint64_t seed, uint64_t step, uint32_t site);

typedef struct ses_probe_baselines {
    double majority;            /* accuracy of the most frequent training label */
    double majority_by_word;    /* accuracy of the most frequent label of the word, else the majority */
    size_t train, test, unseen; /* examples; test examples with labels that training lacks */
} ses_probe_baselines;

bool ses_probe_baselines_compute(const ses_probe_data *d, const ses_probe_task *t,
                                 const ses_probe_examples *x, ses_probe_baselines *out, ses_err *e);

#endif
