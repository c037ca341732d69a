/* Baselines without a model. */
#ifndef SES_ANALYSIS_PROBE_BASELINES_H
#define SES_ANALYSIS_PROBE_BASELINES_H

#include "probe_run.h"

bool ses_probe_baselines_compute(const ses_probe_data *d, const ses_probe_task *t, ses_probe_baselines *out,
                                 ses_err *e);

#endif
