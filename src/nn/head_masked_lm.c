/* Which token stood here (masked_lm)? What does the decoder say at t, having read the target up to t - 1
 * (target_lm)? Either way token t against label t; the loss runs over the labeled ones alone, from the
 * first dense layer on. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void run(const ses_head_params *h, const ses_head_use *use, ses_pass *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    int64_t T = at->seqs->tokens, n = 0;
    ses_axis axis = at->seqs == &p->in ? SES_PER_TOKEN : SES_PER_TARGET;
    ses_lm_output(h, use, p, axis, at);
    if (!labels) return;
    int32_t *rows = ses_tape_host(p->tape, (size_t)T, sizeof *rows);
    int32_t *kept = ses_tape_host(p->tape, (size_t)T, sizeof *kept);
    for (int64_t t = 0; rows && kept && t < T; t++)
        if (labels[t] != SES_IGNORE) rows[n] = (int32_t)t, kept[n++] = labels[t];
    ses_pass_loss(p, ses_lm_loss(h, p, at, rows, kept, n));
}

static void reads(const ses_head_use *use, const ses_pass *p, const ses_seqs *q, int32_t *read)
{
    ses_lm_reads(use, p, q, 0, read);
}

const ses_head ses_head_masked_lm = { .name = "masked-lm",
                                      .pretrained = true,
                                      .does = "fills masked tokens",
                                      .says_words = true,
                                      .axis = SES_LABEL_PER_TOKEN,
                                      .classes = classes,
                                      .add = ses_lm_add,
                                      .run = run,
                                      .reads = reads };
const ses_head ses_head_target_lm = { .name = "conditional-generation",
                                      .pretrained = true,
                                      .peft = "SEQ_2_SEQ_LM",
                                      .does = "turns a text into another",
                                      .says_words = true,
                                      .axis = SES_LABEL_PER_TARGET,
                                      .classes = classes,
                                      .add = ses_lm_add,
                                      .run = run,
                                      .reads = reads };
