/* elmo: a bidirectional LSTM over a learned mix of the layers of a frozen ELMo (Peters et al. 2018). */
#include "ladder.h"

static bool unavailable(const ses_ladder *l, char *buf, size_t size)
{
    if (!l->a->elmo) snprintf(buf, size, "needs a model: add --elmo DIR");
    return !l->a->elmo;
}

static bool check(const ses_ladder_args *a, ses_err *e)
{
    return ses_ladder_check_type("--elmo", a->elmo, "elmo", e);
}

static bool run(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed, ses_err *e)
{
    ses_finetune_options o = ses_ladder_options(l, dir, seed);
    (void)r;
    o.model = l->a->elmo;
    o.transfer.head = SES_HEAD_BILSTM;
    o.transfer.mix_layers = true;
    o.run.epochs = 5;
    o.run.lr = 1e-3;
    return ses_ladder_finetune(l, o, dir, e);
}

const ses_ladder_method ses_ladder_method_elmo = { .name = "elmo",
                                                   .summary = "BiLSTM over features of ELMo",
                                                   .seeded = true,
                                                   .unavailable = unavailable,
                                                   .check = check,
                                                   .run = run };
