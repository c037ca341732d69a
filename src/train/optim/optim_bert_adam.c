/* BERT's original optimizer: AdamW without bias correction, epsilon 1e-6. */
#include "optim_kind.h"

const ses_optim_kind ses_optim_bert_adam = {
    .name = "bert_adam",
    .description = "AdamW without bias correction (BERT)",
    .defaults = { .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .no_bias_correction = true },
    .momentum = offsetof(ses_optim_options, beta1),
    .state_layout = ses_adam_state_layout,
    .step_all = ses_adam_step_all,
};
