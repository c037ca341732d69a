/* finetuned: the model with a classification head, all weights trained. */
#include "ladder.h"

static bool run(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    ses_finetune_options o = ses_ladder_options(l, dir, seed);
    (void)r;
    o.model = l->a->model;
    o.run.epochs = l->a->epochs;
    o.run.lr = l->a->lr;
    return ses_ladder_finetune(l, o, dir, e);
}

const ses_rung ses_rung_finetuned = { .name = "finetuned",
                                      .summary = "the model, fine-tuned",
                                      .seeded = true,
                                      .check = ses_ladder_check_model,
                                      .run = run };
