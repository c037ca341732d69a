/* Replaced token detection (ELECTRA's discriminator): one logit per token, binary cross entropy. */
#include "nn.h"

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 2;
}

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    h->dense = ses_dense_add(s, c->hidden, c->hidden, SES_BIAS, "replaced.dense");
    h->out = ses_dense_add(s, 1, c->hidden, SES_BIAS, "replaced.out");
}

/* Loss over the labeled rows, labels as targets 0 and 1. */
static ses_tensor *loss(ses_forward_ctx *p, ses_tensor *y, const int32_t *labels, int64_t T)
{
    ses_tape *t = p->tape;
    int32_t *rows = ses_tape_host_alloc(t, (size_t)T, sizeof *rows);
    ses_real *target = ses_tape_host_alloc(t, (size_t)T, sizeof *target);
    int64_t n = 0;
    for (int64_t i = 0; rows && target && i < T; i++)
        if (labels[i] != SES_IGNORE_INDEX) rows[n] = (int32_t)i, target[n++] = (ses_real)labels[i];
    if (!rows || !target) return NULL;
    bool none = !n; /* no label: a row with weight 0 keeps the loss a number */
    if (none) n = 1;
    if (n < T) y = ses_gather(t, y, ses_tape_ints(t, rows, n));
    ses_tensor *l = ses_target_loss(t, y, ses_tape_input(t, target, SES_DIM(n, 1)), SES_LOSS_BCE);
    return none ? ses_scale(t, l, 0) : l;
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    ses_tensor *y =
        ses_dense_run(p->tape, h->out, ses_dense_run(p->tape, h->dense, at->x, p->c->ffn.act), SES_ACT_NONE);
    ses_forward_output(p, SES_PER_TOKEN, y, "%s", use->output);
    ses_tensor *l = labels ? loss(p, y, labels, at->seqs->tokens) : NULL;
    if (l) ses_forward_add_loss(p, l);
}

const ses_head ses_head_replaced_tokens = { .name = "replaced-tokens",
                                            .pretrained = true,
                                            .description = "detects replaced tokens",
                                            .axis = SES_LABEL_PER_TOKEN,
                                            .class_count = classes,
                                            .add = add,
                                            .run = run };
