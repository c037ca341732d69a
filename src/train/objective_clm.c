/* Causal language modeling (GPT): every token from those before it. A document begins behind an
 * end-of-text token; a text whose corpus has a control code begins with it (CTRL). */
#include "objective.h"

/* The token between two documents; -1: none. */
static int32_t border(const ses_lexicon *x) { return x->eos >= 0 ? x->eos : x->sep; }

static bool lay(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e)
{
    (void)o;
    int32_t code = ses_code_of(w, p), between = border(w->x);
    size_t from = d->ids.n;
    if (code >= 0 && !ses_ints_push(&d->ids, code, e)) return false;
    for (int64_t i = 0; i < p->n; i++) {
        bool begins = between >= 0 && (p->starts[i] & SES_STARTS_DOCUMENT);
        if ((begins && !ses_ints_push(&d->ids, between, e)) || !ses_ints_push(&d->ids, p->id[i], e))
            return false;
    }
    if (d->ids.n - from > (size_t)w->length) d->ids.n = from + (size_t)w->length;
    return ses_ints_add(&d->labels, d->ids.p + from, (int64_t)(d->ids.n - from), e) &&
           ses_ints_push(&d->seen, 0, e) && ses_draft_end_sequence(d, e);
}

/* The document's border is counted by whoever cuts passages; a control code is one more. */
static int64_t fits(const ses_laying *w, const ses_objective *o)
{
    (void)o;
    return w->length - (w->codes > 0 ? 2 : 1);
}

const ses_objective ses_objective_clm = { .name = "clm",
                                          .does = "causal language modeling (GPT; CTRL with codes)",
                                          .head = "causal-lm",
                                          .lay = lay,
                                          .fits = fits };
