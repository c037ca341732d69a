/* Language modeling from left to right: every token from those before it (GPT). A document begins behind an
 * end-of-text token; a text whose corpus has a control code begins with it (CTRL).
 *   clm     as it is
 *   prefix  a beginning of random length is seen whole, and only what follows is said; with an encoder and a
 *           decoder, from one by the other (Raffel et al. 2020)
 *   mntp    masked tokens are said one place before where they stand, and all tokens are seen: with clm the
 *           two halves of GPT-BERT (Charpentier and Samuel 2024) */
#include "objective.h"

static int32_t border(const ses_special_tokens *x) { return x->eos >= 0 ? x->eos : x->sep; }

bool ses_build_causal(const ses_build_ctx *w, const ses_passage *p, const int32_t *id, int32_t special,
                      ses_ints *to, ses_err *e)
{
    int32_t code = ses_control_code_of(w, p), between = border(w->special_tokens);
    if (code >= 0 && !ses_ints_push(to, special ? special : code, e)) return false;
    for (int64_t i = 0; i < p->n; i++) {
        bool begins = between >= 0 && (p->starts[i] & SES_STARTS_DOCUMENT);
        if ((begins && !ses_ints_push(to, special ? special : between, e)) || !ses_ints_push(to, id[i], e))
            return false;
    }
    return true;
}

/* No more than fit into a sequence. */
static void shorten(const ses_build_ctx *w, ses_ints *a, size_t from)
{
    if (a->n - from > (size_t)w->length) a->n = from + (size_t)w->length;
}

static bool lay(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                ses_err *e)
{
    (void)o;
    size_t from = d->ids.n;
    if (!ses_build_causal(w, p, p->id, 0, &d->ids, e)) return false;
    shorten(w, &d->ids, from);
    return ses_ints_append(&d->labels, d->ids.p + from, (int64_t)(d->ids.n - from), e) &&
           ses_ints_push(&d->prefix_len, 0, e) && ses_batch_builder_end_sequence(d, e);
}

/* The beginning goes to the encoder, the rest to the decoder. */
static bool lay_apart(const ses_build_ctx *w, const ses_ints *text, int64_t prefix, ses_batch_builder *d,
                      ses_err *e)
{
    int32_t end = border(w->special_tokens);
    return ses_ints_append(&d->ids, text->p, prefix, e) && (end < 0 || ses_ints_push(&d->ids, end, e)) &&
           ses_ints_append(&d->labels, text->p + prefix, (int64_t)text->n - prefix, e) &&
           (end < 0 || ses_ints_push(&d->labels, end, e)) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

static bool lay_prefix(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                       ses_err *e)
{
    (void)o;
    ses_rng_stream draws = ses_passage_rng(w, p, SES_RNG_SPLIT);
    w->text.n = 0;
    if (!ses_build_causal(w, p, p->id, 0, &w->text, e)) return false;
    shorten(w, &w->text, 0);
    int64_t n = (int64_t)w->text.n, prefix = n > 1 ? 1 + ses_draw_below(&draws, n - 1) : n;
    if (w->encoder_decoder) return lay_apart(w, &w->text, prefix, d, e);
    size_t from = d->labels.n;
    if (!ses_ints_append(&d->ids, w->text.p, n, e) || !ses_ints_append(&d->labels, w->text.p, n, e))
        return false;
    for (int64_t i = 0; i < prefix; i++) d->labels.p[from + (size_t)i] = SES_IGNORE_INDEX;
    return ses_ints_push(&d->prefix_len, (int32_t)prefix, e) && ses_batch_builder_end_sequence(d, e);
}

static bool lay_masked(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                       ses_err *e)
{
    size_t from = d->ids.n;
    if (!ses_build_masked(w, o, p, e) || !ses_build_causal(w, p, w->text.p, 0, &d->ids, e) ||
        !ses_build_causal(w, p, w->chosen.p, SES_IGNORE_INDEX, &d->labels, e))
        return false;
    shorten(w, &d->ids, from), shorten(w, &d->labels, from);
    return ses_ints_push(&d->prefix_len, (int32_t)(d->ids.n - from), e) &&
           ses_batch_builder_end_sequence(d, e);
}

/* Borders within a text are counted by whoever cuts passages; here the first, and a code. */
static int64_t fits(const ses_build_ctx *w, const ses_objective *o)
{
    (void)o;
    return w->length - (w->n_control_codes > 0 ? 2 : 1) - w->encoder_decoder;
}

const ses_objective ses_objective_clm = { .name = "clm",
                                          .description = "causal language modeling (GPT; CTRL with codes)",
                                          .head = "causal-lm",
                                          .build = lay,
                                          .max_passage = fits };
const ses_objective ses_objective_prefix = { .name = "prefix",
                                             .description =
                                                 "prefix language modeling: a beginning is seen whole",
                                             .head = "causal-lm",
                                             .seq2seq_head = "conditional-generation",
                                             .build = lay_prefix,
                                             .max_passage = fits };
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
                                           .build = lay_masked,
                                           .max_passage = fits };
