/* Extractive question answering: a start and an end logit per token, cross entropy over the tokens of the
 * sequence. A custom head may compute them, e.g. a BiLSTM over the states. */
#include "nn.h"

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 0; /* a position in the sequence */
}

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    if (c->custom_head.kind) {
        ses_custom_head_add(h, s, c, 2);
        return;
    }
    ses_prediction_head_add(h, s, c, "span");
    h->out = ses_dense_add(s, 2, ses_head_width(c), SES_BIAS, "span");
}

/* Labels [B, 2]: start and end. Positions beyond the sequence are ignored, as in transformers. */
static ses_tensor *span_labels(ses_forward_ctx *p)
{
    const ses_batch *b = p->batch;
    int32_t *both = ses_tape_host_alloc(p->tape, 2 * (size_t)b->seqs, sizeof *both);
    for (int64_t s = 0; both && s < b->seqs; s++) both[2 * s] = b->starts[s], both[2 * s + 1] = b->ends[s];
    return both ? ses_tape_ints(p->tape, both, 2 * b->seqs) : NULL;
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    (void)use; /* two outputs with fixed names */
    ses_tensor *x = p->c->custom_head.kind
                        ? ses_custom_head_run(h, p, at, true)
                        : ses_dropout(p->tape, ses_prediction_head_run(h, p, at->x), p->c->dropout.span);
    ses_tensor *y = ses_dense_run(p->tape, h->out, x, SES_ACT_NONE);
    /* tokens of the input, or of the decoder that reads it again */
    ses_axis axis = at->seqs == &p->in ? SES_PER_TOKEN : SES_PER_TARGET;
    ses_forward_output_column(p, axis, y, 0, "start_logits");
    ses_forward_output_column(p, axis, y, 1, "end_logits");
    if (p->batch->starts && p->batch->ends)
        ses_forward_add_loss(p, ses_span_cross_entropy(p->tape, y, at->seqs->cu_seqlens, span_labels(p)));
}

const ses_head ses_head_question_answering = { .name = "span",
                                               .allows_custom = true,
                                               .peft_task = "QUESTION_ANS",
                                               .description = "answers a question from a passage",
                                               .axis = SES_LABEL_SPAN,
                                               .class_count = classes,
                                               .add = add,
                                               .run = run };
