/* Compares Sesame's results with transformers': errors as fractions of their limits. */
#ifndef GOLDEN_COMPARE_H
#define GOLDEN_COMPARE_H

#include "case.h"

/* The largest error of a kind; 1 is the limit. */
typedef struct golden_score {
    bool any;
    double fraction;
    char name[160];
} golden_score;

typedef struct golden_result {
    golden_score out, grad, norm, adamw, texts;
    double slack;      /* factor of the limits; 0: 1 */
    bool quantized;    /* weights are quantized: only final outputs are compared, by their norm */
    double norm_limit; /* relative limit of this norm */
    uint64_t bits;     /* hash of every compared number of Sesame: equal runs have equal bits */
    bool verbose;
} golden_result;

bool golden_compare_outputs(golden_case *c, ses_tape *t, const ses_outputs *out, golden_result *r,
                            ses_err *e);
bool golden_compare_loss(golden_case *c, double loss, golden_result *r, ses_err *e);
bool golden_compare_grads(golden_case *c, const ses_model *m, golden_result *r, ses_err *e);
bool golden_compare_adamw(golden_case *c, int64_t step, double loss, golden_result *r, ses_err *e);

/* generate.c: the texts of generate.greedy and generate.beam4. */
bool golden_compare_texts(golden_case *c, const ses_model *m, golden_result *r, ses_err *e);

/* restore.c: reads position tables that the checkpoint lacks off the first hidden states in `out`. */
bool golden_restore(golden_case *c, const ses_model *m, ses_tape *t, const ses_outputs *out, bool *restored,
                    ses_err *e);

#endif
