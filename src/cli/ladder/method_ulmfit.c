/* ulmfit: a general LSTM language model, fine-tuned on the training texts, then with a classifier that is
 * unfrozen layer by layer, with lower learning rates in lower layers (Howard and Ruder 2018). */
#include "ladder.h"

#include "base/alloc.h"
#include "sesame/model.h"

#include <string.h>

static bool unavailable(const ses_ladder *l, char *buf, size_t size)
{
    if (!l->a->lm) snprintf(buf, size, "needs a general language model, awd-lstm: add --lm DIR");
    return !l->a->lm;
}

static bool check(const ses_ladder_args *a, ses_err *e)
{
    return ses_ladder_check_type("--lm", a->lm, "awd-lstm", e);
}

static bool run(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed, ses_err *e)
{
    static const char *const set[] = { "hidden_p=0.3", "input_p=0.4", "embed_p=0.05", "weight_p=0.5" };
    ses_finetune_options lm = ses_ladder_options(l, dir, seed), classifier = lm;
    (void)r;
    lm.model = l->a->lm;
    lm.transfer.layer_decay = 0.385;
    lm.run.schedule = "slanted";
    lm.run.epochs = 4;
    lm.run.lr = 4e-3;
    classifier.transfer.layer_decay = 0.385;
    classifier.transfer.unfreeze = true;
    classifier.set = set;
    classifier.n_set = SES_LEN(set);
    classifier.run.schedule = "slanted";
    classifier.run.epochs = 8;
    classifier.run.lr = 1e-2;
    return ses_ladder_with_lm(l, &lm, dir, &classifier, e);
}

const ses_ladder_method ses_ladder_method_ulmfit = { .name = "ulmfit",
                                                     .summary = "ULMFiT: language model, fine-tuned twice",
                                                     .seeded = true,
                                                     .unavailable = unavailable,
                                                     .check = check,
                                                     .run = run };
