/* SpanBERT's span boundary objective (Joshi et al. 2019): masked spans are said once more, from the tokens
 * around them. Its labels are those of the masks. */
#include "objective.h"

static bool lay(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                ses_err *e)
{
    (void)w, (void)o, (void)p;
    return d->labels.n == d->ids.n ||
           ses_fail(e, SES_EARG, "objective sbo goes with masks: --objective mlm:1,sbo:1");
}

const ses_objective ses_objective_sbo = { .name = "sbo",
                                          .description = "span boundary objective (SpanBERT)",
                                          .is_auxiliary = true,
                                          .needs = SES_NEEDS_MASK,
                                          .head = "span-boundary",
                                          .build = lay };
