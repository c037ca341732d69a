/* Bidirectional LM (ELMo): the left half of a hidden state predicts the next word, the right half the
 * previous one; both share the projection to the vocabulary. The loss is the mean of the two directions. In
 * training with lm.sampled negatives it is a sampled softmax. */
#include "nn.h"
#include "sampled_softmax.h"

static int64_t classes(const ses_config *c) { return c->vocab; }

static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    (void)token;
    h->out.w = ses_store_add(s, "predict.weight", SES_DIM(c->vocab, c->hidden / 2), SES_INIT_NORMAL);
    ses_store_set_dense(s, h->out.w, SES_OUT_IN);
    h->out.b = ses_store_add(s, "predict.bias", SES_DIM(c->vocab), SES_INIT_ZERO);
}

/* Tokens whose neighbor at distance `by` has a label, and these labels. */
static int64_t find_targets(const ses_state *at, const int32_t *labels, int32_t by, int32_t *rows,
                            int32_t *targets)
{
    const int32_t *cu = at->seqs->host_cu_seqlens;
    int64_t n = 0;
    for (int64_t s = 0; s < at->seqs->seqs; s++)
        for (int32_t t = cu[s]; t < cu[s + 1]; t++)
            if (t + by >= cu[s] && t + by < cu[s + 1] && labels[t + by] != SES_IGNORE_INDEX)
                rows[n] = t, targets[n++] = labels[t + by];
    return n;
}

/* Cross entropy of one direction; NULL: nothing to predict. */
static ses_tensor *direction_loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                                  const int32_t *labels, int32_t by)
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    int64_t half = c->hidden / 2, sampled = ses_tape_training(t) ? c->lm.sampled : 0;
    int32_t *rows = ses_tape_host_alloc(t, (size_t)at->seqs->tokens, sizeof *rows);
    int32_t *targets = ses_tape_host_alloc(t, (size_t)at->seqs->tokens, sizeof *targets);
    ses_rng_key key = ses_tape_rng_key(t);
    int64_t n = rows && targets ? find_targets(at, labels, by, rows, targets) : 0;
    if (!n) return NULL;
    ses_tensor *x = ses_state_gather(p, at, rows, n);
    x = ses_dropout(t, ses_columns(t, x, by < 0 ? half : 0, half), c->dropout.hidden);
    if (sampled <= 0 || sampled >= c->vocab)
        return ses_linear_cross_entropy(t, x, h->out.w, h->out.b, ses_tape_ints(t, targets, n));
    ses_log_uniform s = ses_log_uniform_draw(t, key, sampled, c->vocab);
    return ses_sampled_softmax(t, x, &h->out, targets, n, &s);
}

static void output_logits(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p,
                          const ses_state *at)
{
    ses_axis axis = SES_PER_TOKEN;
    int64_t half = p->c->hidden / 2;
    ses_tensor *x = ses_state_requested(p, at, &axis);
    if (!x) return;
    ses_forward_output(p, axis,
                       ses_dense_run(p->tape, h->out, ses_columns(p->tape, x, 0, half), SES_ACT_NONE), "%s",
                       use->output);
    ses_forward_output(p, axis,
                       ses_dense_run(p->tape, h->out, ses_columns(p->tape, x, half, half), SES_ACT_NONE),
                       "backward_%s", use->output);
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    if (p->request->logits) output_logits(h, use, p, at);
    if (!labels) return;
    ses_tensor *next = direction_loss(h, p, at, labels, 1), *previous = direction_loss(h, p, at, labels, -1);
    if (next && previous)
        ses_forward_add_loss(p, ses_scale(p->tape, ses_add(p->tape, next, previous), 0.5));
    else if (next || previous)
        ses_forward_add_loss(p, next ? next : previous);
    else
        ses_tape_fail(p->tape, SES_EARG, "no sequence has two words with a label: nothing to predict");
}

const ses_head ses_head_bidirectional_lm = { .name = "bidirectional-lm",
                                             .pretrained = true,
                                             .description = "predicts next and previous words",
                                             .scores = SES_SCORES_LABELED_TWICE,
                                             .axis = SES_LABEL_PER_TOKEN,
                                             .class_count = classes,
                                             .add = add,
                                             .run = run };
