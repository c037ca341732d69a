/* Runs probes on every chosen layer: states, probe, control task, codelength, baselines, random weights; and
 * writes the report. */
#ifndef SES_ANALYSIS_PROBE_RUN_H
#define SES_ANALYSIS_PROBE_RUN_H

#include "probe_data.h"
#include "probe_fit.h"
#include "probe_kind.h"

typedef struct ses_probe_baselines {
    double majority;            /* accuracy of the most frequent training label */
    double majority_by_word;    /* accuracy of the most frequent label of the word, else the majority */
    size_t train, test, unseen; /* examples; test examples with labels that training lacks */
} ses_probe_baselines;

/* One task at one layer. */
typedef struct ses_probe_result {
    bool done, has_control;
    ses_probe_scores task, control;
} ses_probe_result;

typedef struct ses_probe_results {
    const ses_probe_data *data;
    const int64_t *layers; /* [n_layers] */
    size_t n_layers;
    ses_probe_result *trained, *random; /* [n_tasks, n_layers] */
    ses_probe_baselines *base;          /* [n_tasks] */
} ses_probe_results;

/* Probes the data with the softmax regression or MLP that `a` describes. Fills the report. */
bool ses_probe_run(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_data *d, ses_err *e);

/* probe_report.c: the tables, curves and JSON of the results. */
void ses_probe_report(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_results *r);
/* Index of the layer with the best accuracy on dev. */
size_t ses_probe_best_layer(const ses_probe_results *r, size_t task);

/* Label of a word type in the control task: that of a training example drawn by a hash of (seed, word). */
int32_t ses_probe_control_label(const ses_probe_data *d, const ses_probe_task *t, uint32_t type,
                                uint64_t seed, const uint32_t *train, size_t n);

#endif
