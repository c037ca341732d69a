/* Masked language modeling (Devlin et al. 2019): predict masked tokens, whole words, n-grams or spans.
 * Masks are drawn anew in every epoch (RoBERTa's dynamic masking) or fixed in mask_copies variants (BERT's
 * duplication factor); the rate may change over the run. */
#include "objective.h"

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    return ses_build_masked(ctx, o, p, e) && ses_build_framed(ctx, p, ctx->text.p, ctx->chosen.p, d, e);
}

const ses_objective ses_objective_mlm = { .name = "mlm",
                                          .description = "masked language modeling (BERT)",
                                          .needs = SES_NEEDS_MASK,
                                          .head = "masked-lm",
                                          .mask_rate = 0.15,
                                          .keep_rate = 0.1,
                                          .random_rate = 0.1,
                                          .mask_unit = SES_MASK_TOKENS,
                                          .span_length = 5,
                                          .max_span = 10,
                                          .build = build };
