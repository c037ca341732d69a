/* Causal LM: position t predicts the label of t + 1. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch), *cu = at->seqs->host_cu_seqlens;
    int64_t n = 0;
    ses_lm_output(h, use, p, SES_PER_TOKEN, at);
    if (!labels) return;
    int32_t *rows = ses_tape_host_alloc(p->tape, (size_t)at->seqs->tokens, sizeof *rows);
    int32_t *targets = ses_tape_host_alloc(p->tape, (size_t)at->seqs->tokens, sizeof *targets);
    for (int64_t s = 0; rows && targets && s < at->seqs->seqs; s++)
        for (int32_t t = cu[s]; t + 1 < cu[s + 1]; t++)
            if (labels[t + 1] != SES_IGNORE_INDEX) rows[n] = t, targets[n++] = labels[t + 1];
    ses_forward_add_loss(p, ses_lm_loss(h, p, at, rows, targets, n));
}

static void mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t *read)
{
    ses_lm_mark_used(use, p, q, 1, read);
}

const ses_head ses_head_causal_lm = { .name = "causal-lm",
                                      .pretrained = true,
                                      .peft_task = "CAUSAL_LM",
                                      .description = "continues a text",
                                      .is_lm = true,
                                      .shifts_labels = true,
                                      .scores = SES_SCORES_LABELED,
                                      .axis = SES_LABEL_PER_TOKEN,
                                      .class_count = classes,
                                      .add = ses_lm_add,
                                      .run = run,
                                      .mark_used = mark_used };
