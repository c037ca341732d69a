/* Edge probes and scalar mixes over the layers of a model: training, and the report. */
#ifndef SES_ANALYSIS_PROBE_NETS_H
#define SES_ANALYSIS_PROBE_NETS_H

#include "analysis/state_spool.h"
#include "probe_run.h"

typedef struct ses_probe_nets {
    ses_analysis_call *c;
    const ses_probe_args *a;
    const ses_probe_data *d;
    ses_device *host;
    ses_state_spool *spool; /* the layers, with d->rows rows of `width` */
    const int64_t *layers;
    size_t n_layers, width;
} ses_probe_nets;

/* Without --mix, trains an edge probe on every layer. With --mix, trains a probe (edge probe or softmax
 * regression) on mixes of the first 1, 2, ... layers: the weights of the last one give the centre of gravity,
 * the gains of the scores the expected layer (Tenney et al. 2019). */
bool ses_probe_nets_run(const ses_probe_nets *in, ses_err *e);

/* sum_l l s_l of weights s over layers. */
double ses_centre_of_gravity(const int64_t *layers, const double *weight, size_t n);
/* sum_l l d_l / sum_l d_l with d_l = score[l] - score[l - 1], from the second layer on; NaN if no score rises
 * in sum. */
double ses_expected_layer(const int64_t *layers, const double *score, size_t n);

#endif
