/* Masked language modeling under other attention masks than the encoder's own (UniLM, Dong et al. 2019). A
 * mixture with mlm is the multitask masked LM of BART's comparison (Lewis et al. 2020, table 1):
 *     mlm:2,mlm_prefix:2,mlm_ltr:1,mlm_rtl:1
 *   mlm_ltr     a token attends to itself and to earlier tokens
 *   mlm_rtl     to itself and to later tokens
 *   mlm_prefix  the first half of the sequence is visible to all tokens, the second half is left to right */
#include "objective.h"

#include "nn/nn.h"

/* Masks a passage and appends its sequence; *n: its tokens. */
static bool build_sequence(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p,
                           ses_batch_builder *d, int64_t *n, ses_err *e)
{
    size_t from = d->ids.n;
    bool ok = ses_build_masked(ctx, o, p, e) && ses_build_framed(ctx, p, ctx->text.p, ctx->chosen.p, d, e);
    *n = (int64_t)(d->ids.n - from);
    return ok;
}

static bool build_ltr(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                      ses_err *e)
{
    int64_t n;
    return build_sequence(ctx, o, p, d, &n, e) && ses_ints_push(&d->prefix_len, 0, e);
}

static bool build_rtl(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                      ses_err *e)
{
    int64_t n;
    return build_sequence(ctx, o, p, d, &n, e) && ses_ints_push(&d->prefix_len, SES_RIGHT_TO_LEFT, e);
}

static bool build_prefix(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p,
                         ses_batch_builder *d, ses_err *e)
{
    int64_t n;
    return build_sequence(ctx, o, p, d, &n, e) && ses_ints_push(&d->prefix_len, (int32_t)(n / 2), e);
}

#define SES_MASKED_LM                                                                                      \
    .needs = SES_NEEDS_MASK, .head = "masked-lm", .mask_rate = 0.15, .keep_rate = 0.1, .random_rate = 0.1, \
    .mask_unit = SES_MASK_TOKENS, .span_length = 5, .max_span = 10

const ses_objective ses_objective_mlm_ltr = { .name = "mlm_ltr",
                                              .description =
                                                  "masked LM, attention from left to right (UniLM)",
                                              SES_MASKED_LM,
                                              .build = build_ltr };
const ses_objective ses_objective_mlm_rtl = { .name = "mlm_rtl",
                                              .description =
                                                  "masked LM, attention from right to left (UniLM)",
                                              SES_MASKED_LM,
                                              .build = build_rtl };
const ses_objective ses_objective_mlm_prefix = {
    .name = "mlm_prefix",
    .description = "masked LM, the second half of a text is left to right (UniLM)",
    SES_MASKED_LM,
    .build = build_prefix
};
