/* Compares Sesame's results with transformers': errors as fractions of their limits. */
#ifndef GOLDEN_COMPARE_H
#define GOLDEN_COMPARE_H

#include "case.h"

/* The largest error of a kind; 1 is the limit. */
typedef struct gold_score {
    bool any;
    double fraction;
    char name[160];
} gold_score;

typedef struct gold_result {
    gold_score out, grad, norm, adamw, texts;
    double slack;      /* factor of the limits; 0: 1 */
    bool quantized;    /* weights are quantized: only final outputs are compared, by their norm */
    double norm_limit; /* relative limit of this norm */
    uint64_t bits;     /* hash of every compared number of Sesame: equal runs have equal bits */
    bool verbose;
} gold_result;

bool gold_compare_outputs(gold_case *c, ses_tape *t, const ses_outputs *out, gold_result *r, ses_err *e);
bool gold_compare_loss(gold_case *c, double loss, gold_result *r, ses_err *e);
bool gold_compare_grads(gold_case *c, const ses_model *m, gold_result *r, ses_err *e);
bool gold_compare_adamw(gold_case *c, int64_t step, double loss, gold_result *r, ses_err *e);

/* generate.c: the texts of generate.greedy and generate.beam4. */
bool gold_compare_texts(gold_case *c, const ses_model *m, gold_result *r, ses_err *e);

/* restore.c: reads position tables that the checkpoint lacks off the first hidden states in `out`. */
bool gold_restore(gold_case *c, const ses_model *m, ses_tape *t, const ses_outputs *out, bool *restored,
                  ses_err *e);

#endif
