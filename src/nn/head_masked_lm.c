/* Which token stood here? dense, activation, norm, then the vocabulary projection, by default the token
 * table. The loss runs over the labelled positions alone, from the dense layer on. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void add(ses_head_params *h, ses_store *s, const ses_config *c, const ses_encoder *n)
{
    h->dense = ses_dense_add(s, c->hidden, c->hidden, "lm.dense");
    h->norm = ses_norm_add(s, c->hidden, "lm.norm");
    h->out.w =
        c->tied ? n->token : ses_store_add(s, "lm.out.weight", SES_DIM(c->vocab, c->hidden), SES_INIT_NORMAL);
    h->out.b = ses_store_add(s, "lm.out.bias", SES_DIM(c->vocab), SES_INIT_ZERO);
}

static ses_tensor *transform(const ses_head_params *h, ses_pass *p, ses_tensor *x)
{
    return ses_norm_run(p->tape, h->norm, ses_dense_run(p->tape, h->dense, x, p->c->act), NULL,
                        p->c->norm_eps);
}

/* The labelled tokens' places, and their labels. */
static int64_t labelled(ses_pass *p, const int32_t *labels, int32_t **rows, int32_t **kept)
{
    int64_t T = p->batch->tokens, n = 0;
    *rows = ses_tape_host(p->tape, (size_t)T, sizeof **rows);
    *kept = ses_tape_host(p->tape, (size_t)T, sizeof **kept);
    for (int64_t t = 0; *rows && *kept && t < T; t++)
        if (labels[t] != SES_IGNORE) (*rows)[n] = (int32_t)t, (*kept)[n++] = labels[t];
    return n;
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_pass *p, ses_tensor *x)
{
    ses_tape *t = p->tape;
    const int32_t *labels = ses_head_labels(use, p->batch);
    if (p->want->logits)
        ses_pass_output(p, SES_PER_TOKEN, ses_dense_run(t, h->out, transform(h, p, x), SES_ACT_NONE), "%s",
                        use->output);
    if (!labels) return;
    int32_t *rows, *kept;
    int64_t n = labelled(p, labels, &rows, &kept);
    if (!n && kept) { /* nothing is labelled: one ignored row keeps the loss a number */
        kept[0] = SES_IGNORE;
        n = 1;
    }
    ses_tensor *y = transform(h, p, ses_take(t, x, rows ? ses_tape_ints(t, rows, n) : NULL));
    ses_pass_loss(
        p, ses_linear_cross_entropy(t, y, h->out.w, h->out.b, kept ? ses_tape_ints(t, kept, n) : NULL));
}

const ses_head ses_head_masked_lm = { .name = "masked-lm",
                                      .does = "fills masked tokens",
                                      .axis = SES_LABEL_PER_TOKEN,
                                      .classes = classes,
                                      .add = add,
                                      .run = run };
