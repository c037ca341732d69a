/* The optimizer BERT was trained with: AdamW without bias correction, epsilon 1e-6. */
#include "optim_kind.h"

const ses_optim_kind ses_optim_bert_adam = {
    .name = "bert_adam",
    .what = "AdamW without bias correction, as BERT was trained",
    .usual = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .no_bias_correction = true },
    .keeps = ses_adam_keeps,
    .all = ses_adam_all,
};
