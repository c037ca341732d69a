/* Cross entropy with a copy mechanism (ELECTRA's All-Tokens MLM, Clark et al. 2020): a row copies its input
 * token with probability D = sigmoid(copy), otherwise the token is drawn from softmax(x w' + bias). */
#include "linear_loss.h"

static const int32_t labels[] = { 2, SES_IGNORE_INDEX, 0, 6, 1 }, inputs[] = { 2, 3, 0, 5, 1 },
                     other[] = { 0, 0, 4, 3, 3 }, zero[] = { 0 };
static const ses_case cases[] = {
    { .dim = { { 5, 9 }, { 7, 9 }, { 7 }, { 5 }, { 5, 1 }, { 5 } }, .ints = { [3] = labels, [5] = inputs } },
    { .dim = { { 5, 9 }, { 7, 9 }, { 0 }, { 5 }, { 5, 1 }, { 5 } }, .ints = { [3] = labels, [5] = inputs } },
    { .dim = { { 5, 9 }, { 7, 9 }, { 7 }, { 5 }, { 5, 1 }, { 5 } }, .ints = { [3] = labels, [5] = other } },
    { .dim = { { 5, 16 }, { 49, 16 }, { 49 }, { 5 }, { 5, 1 }, { 5 } },
      .ints = { [3] = labels, [5] = inputs },
      .scale = 3 },
    { .dim = { { 1, 1 }, { 1, 1 }, { 1 }, { 1 }, { 1, 1 }, { 1 } }, .ints = { [3] = zero, [5] = zero } },
};
const ses_op ses_op_copy_cross_entropy = {
    .name = "copy_cross_entropy",
    .cases = cases,
    .n_cases = SES_LEN(cases),
    .infer = ses_linear_loss_infer,
    .forward = ses_linear_loss_forward,
    .backward = ses_linear_loss_backward,
};

ses_tensor *ses_copy_cross_entropy(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *bias,
                                   ses_tensor *copy, ses_tensor *tokens, ses_tensor *label)
{
    return ses_apply(t, &ses_op_copy_cross_entropy, SES_IN(x, w, bias, label, copy, tokens), NULL);
}
