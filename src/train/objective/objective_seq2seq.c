/* Encoder-decoder objectives: T5's span corruption and text-to-text tasks (Raffel et al. 2020), MASS (Song
 * et al. 2019).
 *   t5    input:  Thank you <extra_id_0> me to your party <extra_id_1> </s>
 *         target: <extra_id_0> for inviting <extra_id_1> last week </s>
 *   t2t   input and target are the passage's segments; the corpus's control code (a task prefix) precedes
 *         them
 *   mass  a span of the text is masked; the decoder predicts it at its positions */
#include "objective.h"

static int32_t end_token(const ses_special_tokens *x) { return x->eos >= 0 ? x->eos : x->sep; }

static bool put_end(const ses_build_ctx *ctx, ses_ints *to, ses_err *e)
{
    int32_t end = end_token(ctx->special_tokens);
    return end < 0 || ses_ints_push(to, end, e);
}

static ses_span_options spans_of(const ses_build_ctx *ctx, const ses_objective *o)
{
    double mean = ctx->o.span_length > 0 ? ctx->o.span_length : o->span_length;
    return (ses_span_options){ .rate = ses_mask_rate_at(ctx, o),
                               .mean_length = mean,
                               .max_spans = ctx->special_tokens->n_sentinels };
}

static bool build_spans(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p,
                        ses_batch_builder *d, ses_err *e)
{
    ses_span_options s = spans_of(ctx, o);
    ses_rng_stream rng = ses_passage_rng(ctx, p, SES_RNG_MASK);
    if (!ses_spans_draw(p->n, &s, &rng, &ctx->chosen, e)) return false;
    const int32_t *at = p->id;
    for (size_t i = 0; i < ctx->chosen.n; i += 2) {
        int32_t gap = ctx->chosen.p[i], span = ctx->chosen.p[i + 1],
                sentinel = ctx->special_tokens->sentinel[i / 2];
        if (!ses_ints_append(&d->ids, at, gap, e) || !ses_ints_push(&d->ids, sentinel, e) ||
            !ses_ints_push(&d->labels, sentinel, e) || !ses_ints_append(&d->labels, at + gap, span, e))
            return false;
        at += gap + span;
    }
    return put_end(ctx, &d->ids, e) && put_end(ctx, &d->labels, e) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

/* The largest passage whose input and target fit: 568 tokens make an input of 512 at 15 % and spans of 3. */
static int64_t max_passage_spans(const ses_build_ctx *ctx, const ses_objective *o)
{
    ses_span_options s = spans_of(ctx, o);
    for (int64_t n = ctx->length;; n++) {
        double noise = s.rate * (double)n, spans = noise / s.mean_length + 2;
        if ((double)n - noise + spans + 2 > (double)ctx->length || noise + spans + 2 > (double)ctx->length)
            return n > ctx->length ? n - 1 : ctx->length - (int64_t)spans;
    }
}

static bool build_pair(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                       ses_err *e)
{
    int32_t code = ses_control_code_of(ctx, p);
    if (p->split >= p->n || p->split < 1)
        return ses_fail(e, SES_EARG, "objective %s needs passages of two segments: a text and its target",
                        o->name);
    return (code < 0 || ses_ints_push(&d->ids, code, e)) && ses_ints_append(&d->ids, p->id, p->split, e) &&
           put_end(ctx, &d->ids, e) && ses_ints_append(&d->labels, p->id + p->split, p->n - p->split, e) &&
           put_end(ctx, &d->labels, e) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

static int64_t max_passage_pair(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return ctx->length - 2;
}

/* The decoder's input is the token before each token of the span, at the latter's position. */
static bool build_mass(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                       ses_err *e)
{
    int64_t begin, first = (int64_t)d->ids.n;
    ses_rng_stream rng = ses_passage_rng(ctx, p, SES_RNG_MASK);
    ses_masking m = ses_masking_settings(ctx, o, p);
    int64_t n = ses_span_draw(p->n, m.rate, &rng, &begin);
    ses_passage whole = *p;
    whole.split = p->n;
    ctx->chosen.n = ctx->text.n = 0;
    if (!ses_ints_resize(&ctx->chosen, p->n, e) || !ses_ints_resize(&ctx->text, p->n, e)) return false;
    for (int64_t i = begin; i < begin + n; i++) ctx->chosen.p[i] = 1;
    m.unit = SES_MASK_TOKENS; /* keep, replace or mask each token independently */
    ses_mask_apply(&m, p, ctx->special_tokens, ctx->chosen.p, &rng, ctx->text.p);
    if (!ses_build_framed(ctx, &whole, ctx->text.p, NULL, d, e)) return false;
    d->segments.n = 0; /* such encoders have no segments */
    for (int64_t i = begin; i < begin + n; i++) {
        int64_t position = ctx->special_tokens->before.n + i;
        int32_t before = i > 0      ? p->id[i - 1]
                         : position ? d->ids.p[first + position - 1]
                                    : end_token(ctx->special_tokens);
        if (!ses_ints_push(&d->target_ids, before < 0 ? 0 : before, e) ||
            !ses_ints_push(&d->target_positions, (int32_t)position, e) ||
            !ses_ints_push(&d->labels, p->id[i], e))
            return false;
    }
    return ses_batch_builder_end_target(d, e);
}

const ses_objective ses_objective_t5 = { .name = "t5",
                                         .description = "span corruption (T5)",
                                         .needs = SES_NEEDS_SENTINELS | SES_NEEDS_DECODER,
                                         .head = "conditional-generation",
                                         .mask_rate = 0.15,
                                         .span_length = 3,
                                         .build = build_spans,
                                         .max_passage = max_passage_spans };
const ses_objective ses_objective_t2t = { .name = "t2t",
                                          .description =
                                              "text to text: the second segment from the first (T5)",
                                          .needs = SES_NEEDS_DECODER | SES_NEEDS_PAIRS,
                                          .head = "conditional-generation",
                                          .build = build_pair,
                                          .max_passage = max_passage_pair };
const ses_objective ses_objective_mass = { .name = "mass",
                                           .description = "masked sequence to sequence (MASS)",
                                           .needs = SES_NEEDS_MASK | SES_NEEDS_DECODER,
                                           .head = "conditional-generation",
                                           .mask_rate = 0.5,
                                           .keep_rate = 0.1,
                                           .random_rate = 0.1,
                                           .build = build_mass };
