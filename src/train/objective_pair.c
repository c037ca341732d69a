/* What is asked about two segments beside their tokens: does the second follow the first (next sentence,
 * BERT), or were they swapped (sentence order, ALBERT)? Passages come as they are asked about. */
#include "objective.h"

static bool lay(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                ses_err *e)
{
    (void)w, (void)o;
    return ses_ints_push(&d->pair_labels, p->split < p->n ? p->is_negative : SES_IGNORE_INDEX, e);
}

const ses_objective ses_objective_nsp = { .name = "nsp",
                                          .description = "next sentence prediction (BERT)",
                                          .is_auxiliary = true,
                                          .needs = SES_NEEDS_PAIRS,
                                          .head = "next-sentence",
                                          .pairing = SES_PAIRS_RANDOM,
                                          .build = lay };
const ses_objective ses_objective_sop = { .name = "sop",
                                          .description = "sentence order prediction (ALBERT)",
                                          .is_auxiliary = true,
                                          .needs = SES_NEEDS_PAIRS,
                                          .head = "sentence-order",
                                          .pairing = SES_PAIRS_SWAPPED,
                                          .build = lay };
