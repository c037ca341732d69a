/* Sequence classification: one label, several labels at once, or regression. */
#include "nn.h"

static int64_t classes(const ses_config *c) { return c->labels; }

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    if (c->custom_head.kind) {
        ses_custom_head_add(h, s, c, c->labels);
        return;
    }
    if (c->head.pooled_width) {
        ses_pooled_classifier_add(h, s, c);
        return;
    }
    ses_summary_add(h, s, c, "classify");
    h->out = ses_dense_add(s, c->labels, ses_head_width(c),
                           c->head.no_classifier_bias ? SES_NO_BIAS : SES_BIAS, "classify.out");
}

/* transformers' rule if config.json has no problem_type: one label is regression; otherwise float targets
 * mean multi-label. */
static ses_problem problem(const ses_forward_ctx *p)
{
    if (p->c->head.problem != SES_PROBLEM_UNSET) return p->c->head.problem;
    if (p->c->labels == 1) return SES_PROBLEM_REGRESSION;
    return p->batch->targets ? SES_PROBLEM_MULTI : SES_PROBLEM_SINGLE;
}

static ses_tensor *scores(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at)
{
    bool custom = p->c->custom_head.kind != SES_CUSTOM_NONE;
    if (p->c->head.pooled_width && !custom) return ses_pooled_classifier_run(h, p, at);
    ses_tensor *x = custom ? ses_custom_head_run(h, p, at, false) : ses_summary_run(h, p, at);
    if (p->request->head_inputs) ses_forward_output(p, SES_PER_SEQUENCE, x, "head_inputs");
    return ses_dense_run(p->tape, h->out, x, p->c->head.score_act);
}

/* Linear label gain (Dai and Le 2015): the mean over texts of
 *     sum_t w(t) cross_entropy(scores(t), label) / sum_t w(t),  w(t) = t / length */
static ses_tensor *label_gain_loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                                   const int32_t *label)
{
    ses_tape *t = p->tape;
    const ses_seqs *q = at->seqs;
    int64_t labels = p->c->labels, n = 0;
    ses_real *weight = ses_tape_host_alloc(t, (size_t)(q->tokens * labels), sizeof *weight);
    if (!weight) return NULL;
    for (int64_t s = 0; s < q->seqs; s++) {
        n += label[s] != SES_IGNORE_INDEX;
        if (label[s] == SES_IGNORE_INDEX || (label[s] >= 0 && label[s] < labels)) continue;
        ses_tape_fail(t, SES_EARG, "label %d of sequence %lld, expected 0 to %lld", (int)label[s],
                      (long long)s, (long long)labels - 1);
        return NULL;
    }
    for (int64_t s = 0; s < q->seqs; s++) {
        double len = q->host_cu_seqlens[s + 1] - q->host_cu_seqlens[s], sum = len * (len + 1) / 2;
        for (int32_t i = 0; i < (int32_t)len && label[s] != SES_IGNORE_INDEX; i++)
            weight[(q->host_cu_seqlens[s] + i) * labels + label[s]] =
                (ses_real)(-(i + 1) / (sum * (double)n));
    }
    ses_tensor *x = ses_dropout(t, at->x, ses_head_dropout_rate(p->c));
    x = ses_log_softmax(t, ses_dense_run(t, h->out, x, p->c->head.score_act));
    x = x ? ses_reshape(t, x, SES_DIM(1, q->tokens * labels)) : NULL;
    x = x ? ses_linear(t, x, ses_tape_input(t, weight, SES_DIM(1, q->tokens * labels)), NULL, SES_ACT_NONE,
                       SES_OUT_IN)
          : NULL;
    return x ? ses_reshape(t, x, SES_DIM(1)) : NULL;
}

static ses_tensor *label_loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                              ses_tensor *scores, const int32_t *label)
{
    if (p->c->head.label_gain && p->c->custom_head.kind)
        ses_tape_fail(
            p->tape, SES_EUNSUPPORTED,
            "label_gain applies to the model's own head: leave out --head, or set label_gain=false");
    if (p->c->head.label_gain) return label_gain_loss(h, p, at, label);
    return ses_cross_entropy(p->tape, scores, ses_tape_ints(p->tape, label, at->seqs->seqs));
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const ses_batch *b = p->batch;
    const int32_t *labels = ses_head_labels(use, b);
    ses_tensor *y = scores(h, p, at);
    ses_forward_output(p, SES_PER_SEQUENCE, y, "%s", use->output);
    if (problem(p) == SES_PROBLEM_SINGLE) {
        if (labels) ses_forward_add_loss(p, label_loss(h, p, at, y, labels));
    } else if (b->targets) {
        ses_tensor *target = ses_tape_input(t, b->targets, SES_DIM(b->seqs, p->c->labels));
        ses_loss kind = problem(p) == SES_PROBLEM_MULTI ? SES_LOSS_BCE : SES_LOSS_MSE;
        ses_forward_add_loss(p, ses_target_loss(t, y, target, kind));
    }
}

const ses_head ses_head_sequence_classification = { .name = "classify",
                                                    .allows_custom = true,
                                                    .has_exits = true,
                                                    .peft_task = "SEQ_CLS",
                                                    .description = "labels a text or a pair of texts",
                                                    .axis = SES_LABEL_PER_SEQUENCE,
                                                    .class_count = classes,
                                                    .add = add,
                                                    .run = run,
                                                    .mark_used = ses_summary_mark_used };
