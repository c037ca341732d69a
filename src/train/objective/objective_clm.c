/* Causal language modeling: each token is predicted from the tokens before it (GPT). An end-of-text token
 * precedes each document; a text whose corpus has a control code starts with it (CTRL).
 *   clm     the text as it is
 *   prefix  bidirectional attention over a prefix of random length, loss on the rest only; encoder-decoder
 *           models encode the prefix and decode the rest (Raffel et al. 2020)
 *   mntp    masked next-token prediction: the label of a masked token is predicted one position earlier, with
 *           bidirectional attention; with clm, the two halves of GPT-BERT (Charpentier and Samuel 2024)
 *   ntp     next-token prediction by the masked LM head of an encoder, whose attention is causal in these
 *           batches; with mlm, GPT-BERT's mixture for models that predict a masked token at its own
 *           position */
#include "objective.h"

static int32_t end_of_text(const ses_special_tokens *x) { return x->eos >= 0 ? x->eos : x->sep; }

bool ses_build_causal(const ses_build_ctx *ctx, const ses_passage *p, const int32_t *id, int32_t special,
                      ses_ints *to, ses_err *e)
{
    int32_t code = ses_control_code_of(ctx, p), between = end_of_text(ctx->special_tokens);
    if (code >= 0 && !ses_ints_push(to, special ? special : code, e)) return false;
    for (int64_t i = 0; i < p->n; i++) {
        bool starts_document = between >= 0 && (p->starts[i] & SES_STARTS_DOCUMENT);
        if ((starts_document && !ses_ints_push(to, special ? special : between, e)) ||
            !ses_ints_push(to, id[i], e))
            return false;
    }
    return true;
}

/* Truncates the sequence that starts at `from` to ctx->length. */
static void truncate_sequence(const ses_build_ctx *ctx, ses_ints *a, size_t from)
{
    if (a->n - from > (size_t)ctx->length) a->n = from + (size_t)ctx->length;
}

static bool build(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e)
{
    (void)o;
    size_t from = d->ids.n;
    if (!ses_build_causal(ctx, p, p->id, 0, &d->ids, e)) return false;
    truncate_sequence(ctx, &d->ids, from);
    return ses_ints_append(&d->labels, d->ids.p + from, (int64_t)(d->ids.n - from), e) &&
           ses_ints_push(&d->prefix_len, 0, e) && ses_batch_builder_end_sequence(d, e);
}

/* The prefix is the encoder's input, the rest the decoder's. */
static bool build_seq2seq(const ses_build_ctx *ctx, const ses_ints *text, int64_t prefix,
                          ses_batch_builder *d, ses_err *e)
{
    int32_t end = end_of_text(ctx->special_tokens);
    return ses_ints_append(&d->ids, text->p, prefix, e) && (end < 0 || ses_ints_push(&d->ids, end, e)) &&
           ses_ints_append(&d->labels, text->p + prefix, (int64_t)text->n - prefix, e) &&
           (end < 0 || ses_ints_push(&d->labels, end, e)) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

static bool build_prefix(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p,
                         ses_batch_builder *d, ses_err *e)
{
    (void)o;
    ses_rng_stream rng = ses_passage_rng(ctx, p, SES_RNG_SPLIT);
    ctx->text.n = 0;
    if (!ses_build_causal(ctx, p, p->id, 0, &ctx->text, e)) return false;
    truncate_sequence(ctx, &ctx->text, 0);
    int64_t n = (int64_t)ctx->text.n, prefix = n > 1 ? 1 + ses_draw_below(&rng, n - 1) : n;
    if (ctx->encoder_decoder) return build_seq2seq(ctx, &ctx->text, prefix, d, e);
    size_t from = d->labels.n;
    if (!ses_ints_append(&d->ids, ctx->text.p, n, e) || !ses_ints_append(&d->labels, ctx->text.p, n, e))
        return false;
    for (int64_t i = 0; i < prefix; i++) d->labels.p[from + (size_t)i] = SES_IGNORE_INDEX;
    return ses_ints_push(&d->prefix_len, (int32_t)prefix, e) && ses_batch_builder_end_sequence(d, e);
}

static bool build_masked(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p,
                         ses_batch_builder *d, ses_err *e)
{
    size_t from = d->ids.n;
    if (!ses_build_masked(ctx, o, p, e) || !ses_build_causal(ctx, p, ctx->text.p, 0, &d->ids, e) ||
        !ses_build_causal(ctx, p, ctx->chosen.p, SES_IGNORE_INDEX, &d->labels, e))
        return false;
    truncate_sequence(ctx, &d->ids, from), truncate_sequence(ctx, &d->labels, from);
    return ses_ints_push(&d->prefix_len, (int32_t)(d->ids.n - from), e) &&
           ses_batch_builder_end_sequence(d, e);
}

/* The sequences of mlm, without masks; each label is the next token of the text. */
static bool build_next(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                       ses_err *e)
{
    (void)o;
    size_t from = d->labels.n;
    if (!ses_build_framed(ctx, p, p->id, p->id, d, e)) return false;
    for (size_t i = from; i + 1 < d->labels.n; i++) d->labels.p[i] = d->labels.p[i + 1];
    d->labels.p[d->labels.n - 1] = SES_IGNORE_INDEX;
    return ses_ints_push(&d->prefix_len, 0, e);
}

/* Room for the first end-of-text token and a control code; packing counts the tokens between documents. */
static int64_t max_passage(const ses_build_ctx *ctx, const ses_objective *o)
{
    (void)o;
    return ctx->length - (ctx->n_control_codes > 0 ? 2 : 1) - ctx->encoder_decoder;
}

const ses_objective ses_objective_clm = { .name = "clm",
                                          .description = "causal language modeling (GPT; CTRL with codes)",
                                          .is_causal = true,
                                          .head = "causal-lm",
                                          .build = build,
                                          .max_passage = max_passage };
const ses_objective ses_objective_prefix = { .name = "prefix",
                                             .description = "prefix language modeling",
                                             .is_causal = true,
                                             .head = "causal-lm",
                                             .seq2seq_head = "conditional-generation",
                                             .build = build_prefix,
                                             .max_passage = max_passage };
const ses_objective ses_objective_mntp = { .name = "mntp",
                                           .description = "masked next-token prediction (GPT-BERT, with clm)",
                                           .needs = SES_NEEDS_MASK,
                                           .head = "causal-lm",
                                           .mask_rate = 0.15,
                                           .keep_rate = 0.1,
                                           .random_rate = 0.1,
                                           .mask_unit = SES_MASK_TOKENS,
                                           .span_length = 5,
                                           .max_span = 10,
                                           .build = build_masked,
                                           .max_passage = max_passage };
const ses_objective ses_objective_ntp = { .name = "ntp",
                                          .description = "next-token prediction by an encoder (with mlm)",
                                          .head = "masked-lm",
                                          .build = build_next };
