/* Language modeling with recurrent models by truncated backpropagation through time. A passage has several
 * windows of ctx->length tokens; the state is carried from window to window, but gradients are not. It starts
 * at zero in each passage, so passages may come in any order and a run may resume anywhere. Evaluation
 * carries it, too. The loss is a mean over tokens, so a window counts by its length, like the learning rates
 * of AWD-LSTM. Windows may have random lengths as in AWD-LSTM (option vary_window). A backward model reads
 * reversed passages. */
#include "objective_mix.h"

#include "base/rng.h"
#include "model/model_desc.h"
#include "op/op.h"

#include <math.h>

static int64_t windows_of(const ses_build_ctx *ctx) { return ctx->o.pieces > 0 ? ctx->o.pieces : 2; }

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)o;
    size_t from = d->ids.n, max = (size_t)(windows_of(ctx) * ctx->length);
    if (!ses_build_causal(ctx, p, p->id, 0, &d->ids, e)) return false;
    if (d->ids.n - from > max) d->ids.n = from + max;
    for (size_t i = from, j = d->ids.n; ctx->backward && i + 1 < j; i++) {
        int32_t id = d->ids.p[i];
        d->ids.p[i] = d->ids.p[--j];
        d->ids.p[j] = id;
    }
    return ses_ints_append(&d->labels, d->ids.p + from, (int64_t)(d->ids.n - from), e) &&
           ses_batch_builder_end_sequence(d, e);
}

/* Room for the first end-of-text token and a control code. */
static int64_t max_passage(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return windows_of(ctx) * ctx->length - (ctx->n_control_codes > 0 ? 2 : 1);
}

static int64_t min_passage(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)ctx, (void)o;
    return 2;
}

/* AWD-LSTM: the length (5 % of batches: half of it) plus 5 times a normal number, at least 5. */
static int64_t draw_length(ses_tape *t, int64_t length)
{
    ses_rng_key key = ses_tape_rng_key(t);
    double mean = (double)ses_rand_unit(key, 0) < 0.95 ? (double)length : (double)length / 2;
    return (int64_t)fmax(5, floor(mean + 5 * (double)ses_rand_normal(key, 1)));
}

static ses_tensor *loss(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e)
{
    (void)o;
    const ses_build_ctx *ctx = &mix->build;
    ses_batch all = *b;
    ses_outputs out;
    all.window = ctx->o.vary_window ? draw_length(t, ctx->length) : ctx->length;
    if (!ses_model_forward(mix->model, t, &all, &(ses_output_request){ 0 }, &out, e)) return NULL;
    return out.loss;
}

const ses_objective ses_objective_bptt = { .name = "bptt",
                                           .description =
                                               "causal with a carried state (LSTM language models)",
                                           .is_causal = true,
                                           .needs = SES_NEEDS_STATE,
                                           .head = "causal-lm",
                                           .build = build,
                                           .max_passage = max_passage,
                                           .min_passage = min_passage,
                                           .mean_over_labels = true,
                                           .loss = loss };
