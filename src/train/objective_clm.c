/* Language modeling from left to right: every token from those before it (GPT). A document begins behind an
 * end-of-text token; a text whose corpus has a control code begins with it (CTRL).
 *   clm     as it is
 *   prefix  a beginning of random length is seen whole, and only what follows is said; with an encoder and a
 *           decoder, from one by the other (Raffel et al. 2020)
 *   mntp    masked tokens are said one place before where they stand, and all tokens are seen: with clm the
 *           two halves of GPT-BERT (Charpentier and Samuel 2024) */
#include "objective.h"

static int32_t border(const ses_lexicon *x) { return x->eos >= 0 ? x->eos : x->sep; }

bool ses_lay_causal(const ses_laying *w, const ses_passage *p, const int32_t *id, int32_t special,
                    ses_ints *to, ses_err *e)
{
    int32_t code = ses_code_of(w, p), between = border(w->x);
    if (code >= 0 && !ses_ints_push(to, special ? special : code, e)) return false;
    for (int64_t i = 0; i < p->n; i++) {
        bool begins = between >= 0 && (p->starts[i] & SES_STARTS_DOCUMENT);
        if ((begins && !ses_ints_push(to, special ? special : between, e)) || !ses_ints_push(to, id[i], e))
            return false;
    }
    return true;
}

/* No more than fit into a sequence. */
static void shorten(const ses_laying *w, ses_ints *a, size_t from)
{
    if (a->n - from > (size_t)w->length) a->n = from + (size_t)w->length;
}

static bool lay(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e)
{
    (void)o;
    size_t from = d->ids.n;
    if (!ses_lay_causal(w, p, p->id, 0, &d->ids, e)) return false;
    shorten(w, &d->ids, from);
    return ses_ints_add(&d->labels, d->ids.p + from, (int64_t)(d->ids.n - from), e) &&
           ses_ints_push(&d->seen, 0, e) && ses_draft_end_sequence(d, e);
}

/* The beginning goes to the encoder, the rest to the decoder. */
static bool lay_apart(const ses_laying *w, const ses_ints *text, int64_t prefix, ses_draft *d, ses_err *e)
{
    int32_t end = border(w->x);
    return ses_ints_add(&d->ids, text->p, prefix, e) && (end < 0 || ses_ints_push(&d->ids, end, e)) &&
           ses_ints_add(&d->labels, text->p + prefix, (int64_t)text->n - prefix, e) &&
           (end < 0 || ses_ints_push(&d->labels, end, e)) && ses_draft_end_sequence(d, e) &&
           ses_draft_end_target(d, e);
}

static bool lay_prefix(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e)
{
    (void)o;
    ses_draws draws = ses_passage_draws(w, p, SES_DRAW_SPLIT);
    w->text.n = 0;
    if (!ses_lay_causal(w, p, p->id, 0, &w->text, e)) return false;
    shorten(w, &w->text, 0);
    int64_t n = (int64_t)w->text.n, prefix = n > 1 ? 1 + ses_draw_below(&draws, n - 1) : n;
    if (w->pair) return lay_apart(w, &w->text, prefix, d, e);
    size_t from = d->labels.n;
    if (!ses_ints_add(&d->ids, w->text.p, n, e) || !ses_ints_add(&d->labels, w->text.p, n, e)) return false;
    for (int64_t i = 0; i < prefix; i++) d->labels.p[from + (size_t)i] = SES_IGNORE;
    return ses_ints_push(&d->seen, (int32_t)prefix, e) && ses_draft_end_sequence(d, e);
}

static bool lay_masked(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e)
{
    size_t from = d->ids.n;
    if (!ses_lay_masks(w, o, p, e) || !ses_lay_causal(w, p, w->text.p, 0, &d->ids, e) ||
        !ses_lay_causal(w, p, w->chosen.p, SES_IGNORE, &d->labels, e))
        return false;
    shorten(w, &d->ids, from), shorten(w, &d->labels, from);
    return ses_ints_push(&d->seen, (int32_t)(d->ids.n - from), e) && ses_draft_end_sequence(d, e);
}

/* Borders within a text are counted by whoever cuts passages; here the first, and a code. */
static int64_t fits(const ses_laying *w, const ses_objective *o)
{
    (void)o;
    return w->length - (w->codes > 0 ? 2 : 1) - w->pair;
}

const ses_objective ses_objective_clm = { .name = "clm",
                                          .does = "causal language modeling (GPT; CTRL with codes)",
                                          .head = "causal-lm",
                                          .lay = lay,
                                          .fits = fits };
const ses_objective ses_objective_prefix = { .name = "prefix",
                                             .does = "prefix language modeling: a beginning is seen whole",
                                             .head = "causal-lm",
                                             .pair_head = "conditional-generation",
                                             .lay = lay_prefix,
                                             .fits = fits };
const ses_objective ses_objective_mntp = { .name = "mntp",
                                           .does = "masked next-token prediction (GPT-BERT, with clm)",
                                           .needs = SES_NEEDS_MASK,
                                           .head = "causal-lm",
                                           .rate = 0.15,
                                           .kept = 0.1,
                                           .random = 0.1,
                                           .unit = SES_MASK_TOKENS,
                                           .span = 5,
                                           .longest = 10,
                                           .lay = lay_masked,
                                           .fits = fits };
