/* Bidirectional language modeling (ELMo): every word, the special tokens around a text included, is predicted
 * from the words before it and from the words after it. Evaluation computes the whole softmax. */
#include "objective_mix.h"

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)o;
    size_t from = d->labels.n;
    if (!ses_build_framed(ctx, p, p->id, p->id, d, e)) return false;
    for (size_t i = from; i < d->labels.n; i++) d->labels.p[i] = d->ids.p[i]; /* special tokens, too */
    return true;
}

static bool measure(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *sums, ses_err *e)
{
    ses_outputs out;
    ses_real loss = 0;
    double n = (double)(b->tokens - b->seqs); /* predictions of one direction */
    if (!ses_model_forward(mix->model, t, b, &(ses_output_request){ 0 }, &out, e)) return false;
    if (!ses_tape_read(t, out.loss, &loss)) return ses_tape_ok(t, e);
    ses_metric_sums_add(sums, o->name, "loss", (double)loss * n, n);
    return true;
}

const ses_objective ses_objective_bilm = { .name = "bilm",
                                           .description = "next and previous words (ELMo)",
                                           .head = "bidirectional-lm",
                                           .build = build,
                                           .measure = measure };
