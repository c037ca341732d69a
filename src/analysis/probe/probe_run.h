/* Runs probes on every chosen layer: states, probe, control task, codelength, baselines, random weights; and
 * writes the report. */
#ifndef SES_ANALYSIS_PROBE_RUN_H
#define SES_ANALYSIS_PROBE_RUN_H

#include "probe_data.h"
#include "probe_examples.h"
#include "probe_fit.h"
#include "probe_kind.h"

/* One task at one layer; with --mix, at the layers up to it. */
typedef struct ses_probe_result {
    bool done, has_control;
    ses_probe_scores task, control;
} ses_probe_result;

typedef struct ses_probe_results {
    const ses_probe_data *data;
    const int64_t *layers; /* [n_layers] */
    size_t n_layers;
    bool added_0;                       /* layer 0 is a baseline that the user did not choose */
    ses_probe_result *trained, *random; /* [n_tasks, n_layers] */
    double *weight;                     /* [n_tasks, n_layers]: --mix, weights of the mix of all layers */
    ses_probe_baselines *base;          /* [n_tasks] */
    size_t windowed;                    /* texts longer than the model */
    ses_probe_result *vectors;          /* [n_tasks]: static word vectors; not done: none were given */
    size_t words, unknown;              /* words looked up in them; without a vector */
} ses_probe_results;

/* Probes the data with the probe that `a` describes. Fills the report. */
bool ses_probe_run(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_data *d, ses_err *e);

/* probe_report.c: the tables, curves and JSON of the results. */
void ses_probe_report(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_results *r);
/* Index of the layer with the best score on dev. */
size_t ses_probe_best_layer(const ses_probe_results *r, size_t task);

#endif
