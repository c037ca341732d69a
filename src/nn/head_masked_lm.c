/* Which token stood here? The loss runs over the labelled positions alone, from the first dense layer on. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void run(const ses_head_params *h, const ses_head_use *use, ses_pass *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    int64_t T = at->seqs->tokens, n = 0;
    ses_axis axis =
        at->seqs == &p->in ? SES_PER_TOKEN : SES_PER_TARGET; /* of every token, or of places asked */
    ses_lm_output(h, use, p, axis, at);
    if (!labels) return;
    int32_t *rows = ses_tape_host(p->tape, (size_t)T, sizeof *rows);
    int32_t *kept = ses_tape_host(p->tape, (size_t)T, sizeof *kept);
    for (int64_t t = 0; rows && kept && t < T; t++)
        if (labels[t] != SES_IGNORE) rows[n] = (int32_t)t, kept[n++] = labels[t];
    ses_pass_loss(p, ses_lm_loss(h, p, at->x, rows, kept, n));
}

const ses_head ses_head_masked_lm = { .name = "masked-lm",
                                      .does = "fills masked tokens",
                                      .axis = SES_LABEL_PER_TOKEN,
                                      .classes = classes,
                                      .add = ses_lm_add,
                                      .run = run };
