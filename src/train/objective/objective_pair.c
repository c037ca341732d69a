/* Labels of segment pairs: does the second segment follow the first (next sentence prediction, BERT), or
 * are they swapped (sentence order prediction, ALBERT)? The passages already contain the negative pairs. */
#include "objective.h"

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)ctx, (void)o;
    return ses_ints_push(&d->pair_labels, p->split < p->n ? p->is_negative : SES_IGNORE_INDEX, e);
}

const ses_objective ses_objective_nsp = { .name = "nsp",
                                          .description = "next sentence prediction (BERT)",
                                          .is_auxiliary = true,
                                          .needs = SES_NEEDS_PAIRS,
                                          .head = "next-sentence",
                                          .pairing = SES_PAIRS_RANDOM,
                                          .build = build };
const ses_objective ses_objective_sop = { .name = "sop",
                                          .description = "sentence order prediction (ALBERT)",
                                          .is_auxiliary = true,
                                          .needs = SES_NEEDS_PAIRS,
                                          .head = "sentence-order",
                                          .pairing = SES_PAIRS_SWAPPED,
                                          .build = build };
