/* Span boundary objective (SpanBERT, Joshi et al. 2019): masked spans are predicted a second time, from the
 * tokens at their boundaries. It uses the labels of the masks. */
#include "objective.h"

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)ctx, (void)o, (void)p;
    return d->labels.n == d->ids.n ||
           ses_fail(e, SES_EARG, "objective sbo needs a masking objective: mlm:1,sbo:1");
}

const ses_objective ses_objective_sbo = { .name = "sbo",
                                          .description = "span boundary objective (SpanBERT)",
                                          .is_auxiliary = true,
                                          .needs = SES_NEEDS_MASK,
                                          .head = "span-boundary",
                                          .build = build };
