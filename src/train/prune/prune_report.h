/* The result of pruning: the density of each kind of weight; heads, rows and parameters that are left. */
#ifndef SES_TRAIN_PRUNE_REPORT_H
#define SES_TRAIN_PRUNE_REPORT_H

#include "sesame/finetune.h"

struct ses_pruner;

/* full: the pruned model at its full size; left: without empty parts. */
bool ses_pruning_report_make(ses_pruning_report *r, const struct ses_pruner *p, const ses_model *full,
                             const ses_model *left, ses_err *e);
/* As the member "pruning" of the JSON object being written. */
void ses_pruning_report_put(const ses_pruning_report *r, ses_json_writer *w);

#endif
