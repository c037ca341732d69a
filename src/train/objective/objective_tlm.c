/* Translation language modeling (XLM, Conneau and Lample 2019): a sentence and its translation, masked
 * together, so that each provides context for the other. Positions restart at 0 in the second. */
#include "objective.h"

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    if (p->split >= p->n)
        return ses_fail(e, SES_EARG,
                        "objective %s needs passages of two segments: a text and its translation", o->name);
    size_t from = d->ids.n;
    if (!ses_build_masked(ctx, o, p, e) || !ses_build_framed(ctx, p, ctx->text.p, ctx->chosen.p, d, e))
        return false;
    /* the first half (rounded up) of the tokens between them belongs to the first */
    int64_t second = ctx->special_tokens->before.n + p->split + (ctx->special_tokens->between.n + 1) / 2;
    for (int64_t i = 0; i < (int64_t)(d->ids.n - from); i++) {
        d->segments.p[from + (size_t)i] = i >= second; /* language id */
        if (!ses_ints_push(&d->positions, (int32_t)(i < second ? i : i - second), e)) return false;
    }
    return true;
}

const ses_objective ses_objective_tlm = { .name = "tlm",
                                          .description =
                                              "translation language modeling (XLM), on parallel texts",
                                          .needs = SES_NEEDS_MASK | SES_NEEDS_PAIRS,
                                          .head = "masked-lm",
                                          .mask_rate = 0.15,
                                          .keep_rate = 0.1,
                                          .random_rate = 0.1,
                                          .mask_unit = SES_MASK_TOKENS,
                                          .span_length = 5,
                                          .max_span = 10,
                                          .build = build };
