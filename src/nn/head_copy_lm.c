/* LM head with a copy mechanism (ELECTRA's All-Tokens MLM, Clark et al. 2020): each input token has a logit
 * of the probability D that it is copied; p(v) = D (v == token) + (1 - D) softmax(v), with the softmax of
 * masked LM. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    ses_lm_add(h, s, c, token);
    h->dense2 = ses_dense_add(s, 1, c->hidden, SES_BIAS, "copy");
}

/* Loss of the labeled rows; without any, one ignored row keeps the loss a number. */
static ses_tensor *loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                        const int32_t *labels)
{
    ses_tape *t = p->tape;
    int64_t T = at->seqs->tokens, n = 0;
    int32_t *row = ses_tape_host_alloc(t, (size_t)T, sizeof *row);
    int32_t *input = ses_tape_host_alloc(t, (size_t)T, sizeof *input);
    int32_t *label = ses_tape_host_alloc(t, (size_t)T, sizeof *label);
    if (!row || !input || !label) return NULL;
    for (int64_t i = 0; i < T; i++)
        if (labels[i] != SES_IGNORE_INDEX)
            row[n] = (int32_t)i, input[n] = p->batch->ids[i], label[n++] = labels[i];
    if (!n) label[n++] = SES_IGNORE_INDEX;
    ses_tensor *x = ses_state_gather(p, at, row, n), *y = ses_lm_transform(h, p, x);
    return ses_copy_cross_entropy(t, ses_dense_run_first(t, &h->out, y), h->out.w, h->out.b,
                                  ses_dense_run(t, h->dense2, x, SES_ACT_NONE), ses_tape_ints(t, input, n),
                                  ses_tape_ints(t, label, n));
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    ses_axis axis = SES_PER_TOKEN;
    ses_tensor *x = p->request->logits ? ses_state_requested(p, at, &axis) : NULL;
    if (x) {
        ses_forward_output(p, axis, ses_lm_logits(h, p, x), "%s", use->output);
        ses_forward_output(p, axis, ses_dense_run(p->tape, h->dense2, x, SES_ACT_NONE), SES_COPY_OUTPUT);
    }
    if (labels) ses_forward_add_loss(p, loss(h, p, at, labels));
}

static void mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t *used)
{
    ses_lm_mark_used(use, p, q, 0, used);
}

const ses_head ses_head_copy_lm = { .name = "copy-lm",
                                    .pretrained = true,
                                    .description = "corrects replaced tokens and copies the others",
                                    .is_lm = true,
                                    .scores = SES_SCORES_LABELED,
                                    .axis = SES_LABEL_PER_TOKEN,
                                    .class_count = classes,
                                    .add = add,
                                    .run = run,
                                    .mark_used = mark_used };
