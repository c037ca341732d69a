/* What is asked about two segments beside their tokens: does the second follow the first (next sentence,
 * BERT), or were they swapped (sentence order, ALBERT)? Passages come as they are asked about. */
#include "objective.h"

static bool lay(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e)
{
    (void)w, (void)o;
    return ses_ints_push(&d->pair_labels, p->split < p->n ? p->strange : SES_IGNORE, e);
}

const ses_objective ses_objective_nsp = { .name = "nsp",
                                          .does = "next sentence prediction (BERT)",
                                          .rides = true,
                                          .needs = SES_NEEDS_PAIRS,
                                          .head = "next-sentence",
                                          .pairing = SES_PAIRS_RANDOM,
                                          .lay = lay };
const ses_objective ses_objective_sop = { .name = "sop",
                                          .does = "sentence order prediction (ALBERT)",
                                          .rides = true,
                                          .needs = SES_NEEDS_PAIRS,
                                          .head = "sentence-order",
                                          .pairing = SES_PAIRS_SWAPPED,
                                          .lay = lay };
