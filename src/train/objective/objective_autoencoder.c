/* Sequence autoencoder (Dai and Le 2015): a recurrent model reads a text, then reproduces it from its state.
 *     input:  the cat sat </s> the cat sat </s>
 *     label:                   the cat sat </s>
 * The same weights read and write. Gradients pass through the whole sequence. */
#include "objective_mix.h"

static int32_t end_token(const ses_build_ctx *ctx)
{
    return ctx->special_tokens->eos >= 0 ? ctx->special_tokens->eos : ctx->special_tokens->sep;
}

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    int32_t end = end_token(ctx);
    (void)o;
    for (int part = 0; part < 2; part++) {
        if (!ses_ints_append(&d->ids, p->id, p->n, e) || (end >= 0 && !ses_ints_push(&d->ids, end, e)))
            return false;
        for (int64_t i = 0; i < p->n; i++)
            if (!ses_ints_push(&d->labels, part ? p->id[i] : SES_IGNORE_INDEX, e)) return false;
        if (end >= 0 && !ses_ints_push(&d->labels, part ? end : SES_IGNORE_INDEX, e)) return false;
    }
    return ses_batch_builder_end_sequence(d, e);
}

/* Both parts of a sequence and their end tokens have at most ctx->length tokens. */
static int64_t max_passage(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return ctx->length / 2 - (end_token(ctx) >= 0);
}

static bool check(const ses_build_ctx *ctx, ses_err *e)
{
    return max_passage(ctx, NULL) > 0 || ses_fail(e, SES_EUSAGE,
                                                  "autoencoder: a sequence has a text twice, each with an "
                                                  "end token: set a length of at least 4");
}

static ses_tensor *loss(ses_objective_mix *mix, const ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e)
{
    ses_batch all = *b;
    ses_outputs out;
    (void)o;
    all.window = mix->build.length;
    return ses_model_forward(mix->model, t, &all, &(ses_output_request){ 0 }, &out, e) ? out.loss : NULL;
}

const ses_objective ses_objective_autoencoder = { .name = "autoencoder",
                                                  .description = "reads a text, then reproduces it (SA-LSTM)",
                                                  .is_causal = true,
                                                  .needs = SES_NEEDS_STATE,
                                                  .head = "causal-lm",
                                                  .build = build,
                                                  .max_passage = max_passage,
                                                  .check = check,
                                                  .loss = loss };
