/* Token classification: one label per token. A CRF (config.crf) makes the loss that of the whole sequence of
 * labels; the output is its emission scores, decoded by ses_crf_decode. */
#include "nn.h"

#include <math.h>

static int64_t classes(const ses_config *c) { return c->labels; }

static void add_crf(ses_head_params *h, ses_store *s, int64_t labels)
{
    h->crf_trans = ses_store_add(s, SES_CRF_TRANSITIONS, SES_DIM(labels, labels), SES_INIT_TENTH);
    h->crf_start = ses_store_add(s, SES_CRF_START, SES_DIM(labels), SES_INIT_TENTH);
    h->crf_end = ses_store_add(s, SES_CRF_END, SES_DIM(labels), SES_INIT_TENTH);
}

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    if (c->crf.enabled) add_crf(h, s, c->labels);
    if (c->custom_head.kind) {
        ses_custom_head_add(h, s, c, c->labels);
        return;
    }
    ses_prediction_head_add(h, s, c, "tag");
    h->out = ses_dense_add(s, c->labels, ses_head_width(c), SES_BIAS, "tag");
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const int32_t *labels = ses_head_labels(use, p->batch);
    double drop = p->c->dropout.token_classification ? fmax(p->c->dropout.token_classification, 0)
                                                     : ses_head_dropout_rate(p->c);
    ses_tensor *x = p->c->custom_head.kind ? ses_custom_head_run(h, p, at, true)
                                           : ses_dropout(t, ses_prediction_head_run(h, p, at->x), drop);
    ses_tensor *y = ses_dense_run(t, h->out, x, SES_ACT_NONE);
    ses_forward_output(p, SES_PER_TOKEN, y, "%s", use->output);
    if (!labels) return;
    ses_tensor *label = ses_tape_ints(t, labels, at->seqs->tokens);
    ses_forward_add_loss(
        p, h->crf_trans ? ses_crf(t, y, h->crf_trans, h->crf_start, h->crf_end, label, at->seqs->cu_seqlens)
                        : ses_cross_entropy(t, y, label));
}

const ses_head ses_head_token_classification = { .name = "tag",
                                                 .allows_custom = true,
                                                 .peft_task = "TOKEN_CLS",
                                                 .description = "labels every token",
                                                 .axis = SES_LABEL_PER_TOKEN,
                                                 .class_count = classes,
                                                 .add = add,
                                                 .run = run };
