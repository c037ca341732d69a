/* How far our numbers are from the reference's, as shares of what is allowed. */
#ifndef GOLDEN_COMPARE_H
#define GOLDEN_COMPARE_H

#include "case.h"

/* The worst of a kind: 1 is the limit. */
typedef struct gold_score {
    bool any;
    double share;
    char name[160];
} gold_score;

typedef struct gold_result {
    gold_score out, grad, norm, adamw, written;
    double slack;    /* how many limits are allowed; 0: one */
    bool coarse;     /* weights are rounded: only what the model says in the end is judged, by its norm */
    double farthest; /* of it, relative */
    uint64_t bits;   /* hash of every number of ours that was compared: equal runs have equal bits */
    bool verbose;
} gold_result;

bool gold_compare_outputs(gold_case *c, ses_tape *t, const ses_outputs *out, gold_result *r, ses_err *e);
bool gold_compare_loss(gold_case *c, double loss, gold_result *r, ses_err *e);
bool gold_compare_grads(gold_case *c, const ses_model *m, gold_result *r, ses_err *e);
bool gold_compare_adamw(gold_case *c, int64_t step, double loss, gold_result *r, ses_err *e);

/* generate.c: the texts of generate.greedy and generate.beam4. */
bool gold_compare_written(gold_case *c, const ses_model *m, gold_result *r, ses_err *e);

/* restore.c: position tables that the checkpoint lacks, read off the first hidden states in `out`. */
bool gold_restore(gold_case *c, const ses_model *m, ses_tape *t, const ses_outputs *out, bool *restored,
                  ses_err *e);

#endif
