/* From one text to another, with an encoder and a decoder: T5's span corruption (Raffel et al. 2020), its
 * text-to-text tasks, MASS (Song et al. 2019).
 *   t5    text:   Thank you <extra_id_0> me to your party <extra_id_1> </s>
 *         target: <extra_id_0> for inviting <extra_id_1> last week </s>
 *   t2t   text and target are the passage's segments, the corpus's code (a task's prefix) in front
 *   mass  a stretch of the text is masked, and said by a decoder that is at its place */
#include "objective.h"

static int32_t end_of(const ses_special_tokens *x) { return x->eos >= 0 ? x->eos : x->sep; }

static bool put_end(const ses_build_ctx *w, ses_ints *to, ses_err *e)
{
    int32_t end = end_of(w->special_tokens);
    return end < 0 || ses_ints_push(to, end, e);
}

static ses_span_options spans_of(const ses_build_ctx *w, const ses_objective *o)
{
    double mean = w->o.span_length > 0 ? w->o.span_length : o->span_length;
    return (ses_span_options){ .rate = ses_mask_rate_at(w, o),
                               .mean_length = mean,
                               .max_spans = w->special_tokens->n_sentinels };
}

static bool lay_spans(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                      ses_err *e)
{
    ses_span_options s = spans_of(w, o);
    ses_rng_stream draws = ses_passage_rng(w, p, SES_RNG_MASK);
    if (!ses_spans_draw(p->n, &s, &draws, &w->chosen, e)) return false;
    const int32_t *at = p->id;
    for (size_t i = 0; i < w->chosen.n; i += 2) {
        int32_t gap = w->chosen.p[i], span = w->chosen.p[i + 1],
                sentinel = w->special_tokens->sentinel[i / 2];
        if (!ses_ints_append(&d->ids, at, gap, e) || !ses_ints_push(&d->ids, sentinel, e) ||
            !ses_ints_push(&d->labels, sentinel, e) || !ses_ints_append(&d->labels, at + gap, span, e))
            return false;
        at += gap + span;
    }
    return put_end(w, &d->ids, e) && put_end(w, &d->labels, e) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

/* As many tokens as leave room for sentinels: 568 make an input of 512 at 15 % and spans of 3. */
static int64_t fits_spans(const ses_build_ctx *w, const ses_objective *o)
{
    ses_span_options s = spans_of(w, o);
    for (int64_t n = w->length;; n++) {
        double noise = s.rate * (double)n, spans = noise / s.mean_length + 2;
        if ((double)n - noise + spans + 2 > (double)w->length || noise + spans + 2 > (double)w->length)
            return n > w->length ? n - 1 : w->length - (int64_t)spans;
    }
}

static bool lay_pair(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                     ses_err *e)
{
    int32_t code = ses_control_code_of(w, p);
    if (p->split >= p->n || p->split < 1)
        return ses_fail(e, SES_EARG, "objective %s needs passages of two segments: a text and its target",
                        o->name);
    return (code < 0 || ses_ints_push(&d->ids, code, e)) && ses_ints_append(&d->ids, p->id, p->split, e) &&
           put_end(w, &d->ids, e) && ses_ints_append(&d->labels, p->id + p->split, p->n - p->split, e) &&
           put_end(w, &d->labels, e) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

static int64_t fits_pair(const ses_build_ctx *w, const ses_objective *o)
{
    (void)o;
    return w->length - 2;
}

/* The decoder reads what stands before each token of the stretch, at the token's place. */
static bool lay_stretch(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                        ses_err *e)
{
    int64_t begin, first = (int64_t)d->ids.n;
    ses_rng_stream draws = ses_passage_rng(w, p, SES_RNG_MASK);
    ses_masking m = ses_masking_settings(w, o);
    int64_t n = ses_span_draw(p->n, m.rate, &draws, &begin);
    ses_passage whole = *p;
    whole.split = p->n;
    w->chosen.n = w->text.n = 0;
    if (!ses_ints_resize(&w->chosen, p->n, e) || !ses_ints_resize(&w->text, p->n, e)) return false;
    for (int64_t i = begin; i < begin + n; i++) w->chosen.p[i] = 1;
    m.unit = SES_MASK_TOKENS; /* each decides alone what becomes of it */
    ses_mask_apply(&m, p, w->special_tokens, w->chosen.p, &draws, w->text.p);
    if (!ses_build_framed(w, &whole, w->text.p, NULL, d, e)) return false;
    d->segments.n = 0; /* encoders of this kind have none */
    for (int64_t i = begin; i < begin + n; i++) {
        int64_t place = w->special_tokens->before.n + i;
        int32_t before = i > 0   ? p->id[i - 1]
                         : place ? d->ids.p[first + place - 1]
                                 : end_of(w->special_tokens);
        if (!ses_ints_push(&d->target_ids, before < 0 ? 0 : before, e) ||
            !ses_ints_push(&d->target_positions, (int32_t)place, e) ||
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
                                         .build = lay_spans,
                                         .max_passage = fits_spans };
const ses_objective ses_objective_t2t = { .name = "t2t",
                                          .description =
                                              "text to text: the second segment from the first (T5's tasks)",
                                          .needs = SES_NEEDS_DECODER | SES_NEEDS_PAIRS,
                                          .head = "conditional-generation",
                                          .build = lay_pair,
                                          .max_passage = fits_pair };
const ses_objective ses_objective_mass = { .name = "mass",
                                           .description = "a masked stretch is said by the decoder (MASS)",
                                           .needs = SES_NEEDS_MASK | SES_NEEDS_DECODER,
                                           .head = "conditional-generation",
                                           .mask_rate = 0.5,
                                           .keep_rate = 0.1,
                                           .random_rate = 0.1,
                                           .build = lay_stretch };
