/* Edge probes and scalar mixes over the layers of a model. */
#ifndef SES_ANALYSIS_PROBE_NETS_H
#define SES_ANALYSIS_PROBE_NETS_H

#include "analysis/state_spool.h"
#include "probe_run.h"

typedef struct ses_probe_nets {
    const ses_probe_args *a;
    const ses_probe_data *d;
    const ses_probe_task *task;
    const ses_probe_examples *examples;
    ses_device *host;
    ses_state_spool *spool; /* n_layers layers, with d->rows rows of `width` */
    size_t n_layers, width;
    uint64_t seed;
    bool control, mdl;
    void (*progress)(void *ctx); /* called before each probe */
    void *ctx;
} ses_probe_nets;

/* Without --mix, trains an edge probe on every layer. With --mix, trains a probe (edge probe or softmax
 * regression) on mixes of the first 1, 2, ... layers (Tenney et al. 2019). out [n_layers]; wanted [n_layers]:
 * the ones to train, NULL: all. weight [n_layers], if not NULL: the weights of the mix of all layers. */
bool ses_probe_nets_run(const ses_probe_nets *in, const bool *wanted, ses_probe_result *out, double *weight,
                        ses_err *e);

/* Maximum examples; --max-train replaces the first. */
enum { SES_PROBE_NETS_TRAIN = 20000, SES_PROBE_NETS_EVAL = 10000 };

/* sum_l l s_l of weights s over layers. */
double ses_centre_of_gravity(const int64_t *layers, const double *weight, size_t n);
/* sum_l l d_l / sum_l d_l with d_l = score[l] - score[l - 1], from the second layer on; NaN if no score rises
 * in sum. */
double ses_expected_layer(const int64_t *layers, const double *score, size_t n);

#endif
