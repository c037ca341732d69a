/* Cloze-driven pretraining (Baevski et al. 2019; Melamud et al. 2016): every token is predicted from the
 * tokens on both sides of it. Nothing is masked: the model's hidden state at a token must not depend on the
 * token. */
#include "objective.h"

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)o;
    return ses_build_framed(ctx, p, p->id, p->id, d, e);
}

const ses_objective ses_objective_cloze = { .name = "cloze",
                                            .description =
                                                "each token from both sides of it (cloze, context2vec)",
                                            .needs = SES_NEEDS_CONTEXT_MODEL,
                                            .head = "masked-lm",
                                            .build = build };
