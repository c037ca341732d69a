/* Layers shared by encoders of taggers. */
#include "tagger_encoder.h"

ses_tensor *ses_tagger_windows(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, ses_tensor *pad,
                               int64_t window)
{
    ses_tape *t = p->tape;
    ses_tensor *part[SES_MAX_TAGGER_WINDOW], *all = ses_append_rows(t, x, pad);
    for (int64_t k = 0; k < window; k++) {
        int64_t by = k - window / 2;
        int32_t *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row);
        if (!row || !all) return NULL;
        for (int64_t s = 0; s < q->seqs; s++)
            for (int64_t i = q->host_cu_seqlens[s]; i < q->host_cu_seqlens[s + 1]; i++) {
                bool inside = i + by >= q->host_cu_seqlens[s] && i + by < q->host_cu_seqlens[s + 1];
                row[i] = (int32_t)(inside ? i + by : q->tokens);
            }
        part[k] = ses_gather(t, all, ses_tape_ints(t, row, q->tokens));
    }
    return window > 1 ? ses_concat(t, (int)window, part) : part[0];
}

static ses_tensor *add_constant(ses_tape *t, ses_tensor *x, ses_real by)
{
    int64_t n = x ? ses_cols(x) : 0;
    ses_real *bias = x ? ses_tape_host_alloc(t, (size_t)n, sizeof *bias) : NULL;
    for (int64_t i = 0; bias && i < n; i++) bias[i] = by;
    return bias ? ses_affine(t, x, NULL, ses_tape_input(t, bias, SES_DIM(n))) : NULL;
}

/* relu(x + by) */
static ses_tensor *shifted_relu(ses_tape *t, ses_tensor *x, ses_real by)
{
    x = add_constant(t, x, by);
    return x ? ses_activate(t, x, SES_ACT_RELU) : NULL;
}

/* 1 - relu(2 - relu(x + 1)): exact also for large and infinite x */
ses_tensor *ses_tagger_hard_tanh(ses_tape *t, ses_tensor *x)
{
    x = shifted_relu(t, x, 1);
    x = x ? shifted_relu(t, ses_scale(t, x, -1), 2) : NULL;
    return x ? add_constant(t, ses_scale(t, x, -1), 1) : NULL;
}

bool ses_tagger_check_window(const ses_config *c, ses_err *e)
{
    if (c->tagger.window % 2 == 0)
        return ses_fail(e, SES_EFORMAT, "\"window_size\" is %lld, expected an odd number of words",
                        (long long)c->tagger.window);
    return !c->tagger.late_layer ||
           ses_fail(e, SES_EFORMAT, "\"lm_layer\" applies to the encoder bilstm only");
}
