/* Two scores from the pooled first token: BERT's next sentence prediction, ALBERT's sentence order prediction
 * (with dropout). */
#include "nn.h"

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 2;
}

static void add_next(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    h->out = ses_dense_add(s, 2, c->hidden, SES_BIAS, "next");
}

static void add_order(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    h->out = ses_dense_add(s, 2, c->hidden, SES_BIAS, "order");
}

static void score(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, ses_tensor *pooled)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    ses_tensor *y = ses_dense_run(p->tape, h->out, pooled, SES_ACT_NONE);
    ses_forward_output(p, SES_PER_SEQUENCE, y, "%s", use->output);
    if (labels)
        ses_forward_add_loss(p,
                             ses_cross_entropy(p->tape, y, ses_tape_ints(p->tape, labels, p->batch->seqs)));
}

static void run_next(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p,
                     const ses_state *at)
{
    score(h, use, p, at->pooled);
}

static void run_order(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p,
                      const ses_state *at)
{
    score(h, use, p, ses_dropout(p->tape, at->pooled, ses_head_dropout_rate(p->c)));
}

const ses_head ses_head_next_sentence = { .name = "next-sentence",
                                          .pretrained = true,
                                          .description = "predicts whether a sentence follows another",
                                          .axis = SES_LABEL_PER_SEQUENCE,
                                          .class_count = classes,
                                          .add = add_next,
                                          .run = run_next,
                                          .mark_used = ses_summary_mark_used };
const ses_head ses_head_sentence_order = { .name = "sentence-order",
                                           .pretrained = true,
                                           .description = "predicts whether two sentences are in order",
                                           .axis = SES_LABEL_PER_SEQUENCE,
                                           .class_count = classes,
                                           .add = add_order,
                                           .run = run_order,
                                           .mark_used = ses_summary_mark_used };
