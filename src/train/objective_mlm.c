/* Masked language modeling (Devlin et al. 2019): tokens, whole words, n-grams or spans are hidden, and said
 * from what is left. Its kinds: anew for every reading (RoBERTa's dynamic masking) or so many times in all
 * (mask_copies, BERT's duplication factor); at a rate that changes over the run. */
#include "objective.h"

static bool lay(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                ses_err *e)
{
    return ses_build_masked(w, o, p, e) && ses_build_framed(w, p, w->text.p, w->chosen.p, d, e);
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
                                          .build = lay };
