/* Skip-Thought (Kiros et al. 2015): each sentence predicts the sentences before and after it. The sentences
 * of a passage become consecutive sequences; label 1: the sequence follows the one before it. */
#include "objective_mix.h"

static int64_t sentence_end(const ses_passage *p, int64_t from)
{
    int64_t to = from + 1;
    while (to < p->n && !(p->starts[to] & (SES_STARTS_SENTENCE | SES_STARTS_DOCUMENT))) to++;
    return to;
}

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)o;
    const ses_special_tokens *x = ctx->special_tokens;
    int32_t end = x->eos >= 0 ? x->eos : x->sep;
    int64_t room = ctx->length - (end >= 0);
    for (int64_t from = 0, to; from < p->n; from = to) {
        bool follows = from > 0 && !(p->starts[from] & SES_STARTS_DOCUMENT);
        to = sentence_end(p, from);
        int64_t n = to - from < room ? to - from : room;
        if (!ses_ints_append(&d->ids, p->id + from, n, e) || (end >= 0 && !ses_ints_push(&d->ids, end, e)) ||
            !ses_ints_push(&d->pair_labels, follows, e) || !ses_batch_builder_end_sequence(d, e))
            return false;
    }
    return true;
}

/* The mean loss over the predicted tokens: all tokens of each pair of neighbors. */
static bool measure(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *sums, ses_err *e)
{
    ses_outputs out;
    ses_real loss = 0;
    int64_t n = 0;
    if (!ses_model_forward(mix->model, t, b, NULL, &out, e)) return false;
    if (!ses_tape_read(t, out.loss, &loss)) return ses_tape_ok(t, e);
    for (int64_t s = 1; s < b->seqs; s++)
        if (b->pair_labels[s] == 1) n += b->cu_seqlens[s + 1] - b->cu_seqlens[s - 1];
    ses_metric_sums_add(sums, o->name, "loss", (double)loss * (double)n, (double)n);
    return true;
}

const ses_objective ses_objective_skip = { .name = "skip",
                                           .description = "the sentences before and after (Skip-Thought)",
                                           .head = "neighbor-sentences",
                                           .build = build,
                                           .measure = measure };
