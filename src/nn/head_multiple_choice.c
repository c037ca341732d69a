/* Multiple choice: each of N choices is a sequence and gets one score; the loss is the cross entropy over N
 * consecutive sequences. */
#include "nn.h"

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 0; /* given by the batch */
}

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    ses_summary_add(h, s, c, "choice");
    if (c->head.choice_from_labels)
        h->label_scores = ses_dense_add(s, c->labels, c->hidden, SES_BIAS, "choice.labels");
    h->out = ses_dense_add(s, 1, c->head.choice_from_labels ? c->labels : ses_head_width(c), SES_BIAS,
                           "choice.out");
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const int32_t *labels = ses_head_labels(use, p->batch);
    int64_t N = p->batch->choices ? p->batch->choices : 1, questions = p->batch->seqs / N;
    ses_tensor *x = ses_summary_run(h, p, at);
    if (h->label_scores.w) x = ses_dense_run(t, h->label_scores, x, p->c->head.score_act);
    ses_tensor *y = ses_dense_run(t, h->out, x, p->c->head.choice_act);
    y = ses_reshape(t, y, SES_DIM(questions, N));
    ses_forward_output(p, SES_PER_SEQUENCE, y, "%s", use->output);
    if (!labels) return;
    ses_tensor *loss = ses_cross_entropy(t, y, ses_tape_ints(t, labels, questions));
    if (use->loss) ses_forward_output(p, SES_PER_SEQUENCE, loss, "%s", use->loss);
    ses_forward_add_loss(p, loss);
}

const ses_head ses_head_multiple_choice = { .name = "choice",
                                            .description = "picks one of several continuations",
                                            .axis = SES_LABEL_PER_QUESTION,
                                            .class_count = classes,
                                            .add = add,
                                            .run = run,
                                            .mark_used = ses_summary_mark_used };
