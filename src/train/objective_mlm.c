/* Masked language modeling (Devlin et al. 2019): tokens, whole words, n-grams or spans are hidden, and said
 * from what is left. Its kinds: anew for every reading (RoBERTa's dynamic masking) or so many times in all
 * (mask_copies, BERT's duplication factor); at a rate that changes over the run. */
#include "objective.h"

static bool lay(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e)
{
    return ses_lay_masks(w, o, p, e) && ses_lay_framed(w, p, w->text.p, w->chosen.p, d, e);
}

const ses_objective ses_objective_mlm = { .name = "mlm",
                                          .does = "masked language modeling (BERT)",
                                          .needs = SES_NEEDS_MASK,
                                          .head = "masked-lm",
                                          .rate = 0.15,
                                          .kept = 0.1,
                                          .random = 0.1,
                                          .unit = SES_MASK_TOKENS,
                                          .span = 5,
                                          .longest = 10,
                                          .lay = lay };
