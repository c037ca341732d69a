/* Losses of cloze classifiers: see cloze_loss.h. */
#include "cloze_loss.h"

/* Removes a token from the softmax of its row. */
static const double NEVER = -1e30;

ses_tensor *ses_cloze_label_scores(const ses_cloze_prompt *p, ses_tape *t, ses_tensor *x)
{
    int64_t labels = (int64_t)p->o.n_labels, vocab = x ? ses_cols(x) : 0;
    ses_real *pick = x ? ses_tape_host_alloc(t, (size_t)(labels * vocab), sizeof *pick) : NULL;
    if (!pick) return NULL;
    for (int64_t i = 0; i < labels * vocab; i++) pick[i] = 0;
    for (int64_t l = 0; l < labels; l++)
        for (size_t k = p->cu[l]; k < p->cu[l + 1]; k++)
            pick[l * vocab + p->token[k]] = (ses_real)(1 / (double)(p->cu[l + 1] - p->cu[l]));
    return ses_linear(t, x, ses_tape_input(t, pick, SES_DIM(labels, vocab)), NULL, SES_ACT_NONE, SES_OUT_IN);
}

ses_tensor *ses_cloze_label_loss(const ses_cloze_prompt *p, ses_tape *t, ses_tensor *x, const int32_t *label)
{
    ses_tensor *y = ses_cloze_label_scores(p, t, x);
    return y ? ses_cross_entropy(t, y, ses_tape_ints(t, label, ses_rows(y))) : NULL;
}

/* log(1 - p(k)) = log sum of exp without token k - log sum of exp, the difference of two cross entropies of
 * another token, whose logit cancels. row, token, other [n]: rows of x, the tokens k, the other tokens. */
static ses_tensor *reject(ses_tape *t, ses_tensor *x, const int32_t *row, const int32_t *token,
                          const int32_t *other, int64_t n)
{
    int64_t vocab = ses_cols(x);
    ses_real *without = ses_tape_host_alloc(t, (size_t)(n * vocab), sizeof *without);
    if (!without) return NULL;
    for (int64_t i = 0; i < n * vocab; i++) without[i] = 0;
    for (int64_t i = 0; i < n; i++) without[i * vocab + token[i]] = (ses_real)NEVER;
    ses_tensor *all = ses_gather(t, x, ses_tape_ints(t, row, n)), *labels = ses_tape_ints(t, other, n);
    ses_tensor *rest = ses_add(t, all, ses_tape_input(t, without, SES_DIM(n, vocab)));
    return ses_add(t, ses_cross_entropy(t, all, labels),
                   ses_scale(t, ses_cross_entropy(t, rest, labels), -1));
}

ses_tensor *ses_cloze_reject_loss(ses_tape *t, ses_tensor *x, const int32_t *token)
{
    int64_t n = x ? ses_rows(x) : 0, vocab = x ? ses_cols(x) : 0;
    int32_t *row = x ? ses_tape_host_alloc(t, (size_t)n, sizeof *row) : NULL;
    int32_t *other = row ? ses_tape_host_alloc(t, (size_t)n, sizeof *other) : NULL;
    for (int64_t i = 0; other && i < n; i++)
        row[i] = (int32_t)i, other[i] = (int32_t)((token[i] + 1) % vocab);
    return other ? reject(t, x, row, token, other, n) : NULL;
}

ses_tensor *ses_cloze_decoupled_loss(const ses_cloze_prompt *p, ses_tape *t, ses_tensor *x,
                                     const int32_t *label)
{
    int32_t labels = (int32_t)p->o.n_labels;
    int64_t n = x ? ses_rows(x) : 0, wrong = n * (labels - 1), k = 0;
    int32_t *row = x ? ses_tape_host_alloc(t, (size_t)(3 * wrong + n), sizeof *row) : NULL;
    if (!row) return NULL;
    int32_t *token = row + wrong, *other = token + wrong, *right = other + wrong;
    for (int32_t i = 0; i < (int32_t)n; i++) {
        right[i] = ses_cloze_prompt_token_of(p, label[i]);
        for (int32_t l = 0; l < labels; l++) {
            if (l == label[i]) continue;
            row[k] = i, token[k] = ses_cloze_prompt_token_of(p, l), other[k++] = right[i];
        }
    }
    ses_tensor *loss = ses_cross_entropy(t, x, ses_tape_ints(t, right, n));
    return ses_add(t, loss, ses_scale(t, reject(t, x, row, token, other, wrong), labels - 1));
}
