/* Bottleneck adapters: see ses_bottleneck. */
#include "nn/nn.h"

ses_tensor *ses_bottlenecks_run(const ses_bottlenecks *b, ses_forward_ctx *p, ses_norm norm, ses_tensor *h,
                                ses_tensor *residual)
{
    ses_tape *t = p->tape;
    bool post_norm = p->c->norm.placement != SES_PRE_NORM;
    for (int i = 0; i < b->n; i++) {
        const ses_bottleneck *a = &b->item[i];
        ses_tensor *x = a->parallel ? residual : h;
        if (a->reads_normed && !a->parallel)
            x = post_norm ? ses_norm_run(t, norm, h, residual, p->c->norm.eps) : ses_add(t, h, residual);
        ses_tensor *y = ses_dense_run(t, a->up, ses_dense_run(t, a->down, x, a->act), SES_ACT_NONE);
        if (a->scale != 1) y = ses_scale(t, y, a->scale);
        h = ses_add(t, a->keeps_normed ? x : h, ses_dropout(t, y, a->dropout));
    }
    return h;
}
