/* Masked LM, and the LM head of encoder-decoders (seq2seq_lm), whose input is already shifted: position t
 * predicts label t. The loss computes the transform and the logits of labeled positions only. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    int64_t T = at->seqs->tokens, n = 0;
    ses_axis axis = at->seqs == &p->in ? SES_PER_TOKEN : SES_PER_TARGET;
    ses_lm_output(h, use, p, axis, at);
    if (!labels) return;
    int32_t *rows = ses_tape_host_alloc(p->tape, (size_t)T, sizeof *rows);
    int32_t *targets = ses_tape_host_alloc(p->tape, (size_t)T, sizeof *targets);
    for (int64_t t = 0; rows && targets && t < T; t++)
        if (labels[t] != SES_IGNORE_INDEX) rows[n] = (int32_t)t, targets[n++] = labels[t];
    ses_forward_add_loss(p, ses_lm_loss(h, p, at, rows, targets, n));
}

static void mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t *read)
{
    ses_lm_mark_used(use, p, q, 0, read);
}

const ses_head ses_head_masked_lm = { .name = "masked-lm",
                                      .pretrained = true,
                                      .description = "fills masked tokens",
                                      .is_lm = true,
                                      .scores = SES_SCORES_LABELED,
                                      .axis = SES_LABEL_PER_TOKEN,
                                      .class_count = classes,
                                      .add = ses_lm_add,
                                      .run = run,
                                      .mark_used = mark_used };
const ses_head ses_head_seq2seq_lm = { .name = "conditional-generation",
                                       .pretrained = true,
                                       .peft_task = "SEQ_2_SEQ_LM",
                                       .description = "generates a text from another",
                                       .is_lm = true,
                                       .scores = SES_SCORES_LABELED,
                                       .axis = SES_LABEL_PER_TARGET,
                                       .class_count = classes,
                                       .add = ses_lm_add,
                                       .run = run,
                                       .mark_used = mark_used };
