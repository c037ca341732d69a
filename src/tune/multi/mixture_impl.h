/* Inside of ses_mixture: mixture.c (tasks, batches, loss), mixture_output.c (scores, folders). */
#ifndef SES_TUNE_MIXTURE_IMPL_H
#define SES_TUNE_MIXTURE_IMPL_H

#include "mixture.h"
#include "model/model_desc.h"

struct ses_mixture {
    ses_finetune **part; /* [n]; the first is borrowed, the others are owned */
    size_t n;
    char **name;    /* [n] folders of the tasks */
    double *weight; /* [n] size^alpha */
    double total_weight;
    uint64_t seed;
    ses_store *store;     /* parameters of the heads of tasks 1 to n - 1 */
    ses_tensor ***shared; /* [n][parameters of the task's model]: where their values are; [0] NULL */
    /* the next batch of each task at `step` */
    struct {
        int64_t epoch, index;
    } * at;
    int64_t step;
    size_t current; /* task of the last batch */
    ses_eval_report report;
};

#endif
