/* Denoising (BART, Lewis et al. 2020): a text is written again from what noises left of it: sentences
 * permuted, tokens deleted, hidden one by one, filled in by one mask a span, the whole rotated; those that
 * --noise names, in this order. With a code for the corpus, mBART's form: TEXT </s> CODE, on both sides. */
#include "objective.h"

#include <string.h>

enum { PERMUTE = 1, DELETE = 2, HIDE = 4, INFILL = 8, ROTATE = 16 };

/* "infill,permute" as bits; 0 and a message where a word is none of them. */
static int noises(const char *list, ses_err *e)
{
    static const struct {
        const char *name;
        int bit;
    } known[] = { { "permute", PERMUTE },
                  { "delete", DELETE },
                  { "mask", HIDE },
                  { "infill", INFILL },
                  { "rotate", ROTATE } };
    int bits = 0;
    if (!list) return INFILL | PERMUTE;
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < SES_LEN(known) && (strlen(known[i].name) != n || strncmp(known[i].name, p, n))) i++;
        if (i == SES_LEN(known)) {
            ses_fail(e, SES_EARG, "no noise \"%.*s\"; there are mask, delete, infill, permute, rotate",
                     (int)(n < 40 ? n : 40), p);
            return 0;
        }
        bits |= known[i].bit;
        p += n;
        if (!*p) return bits;
    }
}

static bool corrupt(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_err *e)
{
    ses_noised_text *t = &w->noised;
    ses_rng_stream d = ses_passage_rng(w, p, SES_RNG_MASK);
    double rate = ses_mask_rate_at(w, o), mean = w->o.span_length >= 0 ? w->o.span_length : o->span_length;
    bool tokens = w->o.mask_unit == SES_MASK_TOKENS;
    int32_t mask = w->special_tokens->mask;
    int which = noises(w->o.noise, e);
    if (!which || !ses_noised_text_init(t, p, e)) return false;
    if ((which & PERMUTE) && !ses_noise_permute(t, &d, e)) return false;
    if ((which & DELETE) && !ses_noise_delete(t, rate, &d, e)) return false;
    if ((which & HIDE) && !ses_noise_mask(t, rate, mask, &d, e)) return false;
    if ((which & INFILL) && !ses_noise_infill(t, rate, mean, tokens, mask, &d, e)) return false;
    return !(which & ROTATE) || ses_noise_rotate(t, &d, e);
}

static bool put(const ses_build_ctx *w, const int32_t *id, int64_t n, int32_t code, ses_ints *to, ses_err *e)
{
    const ses_template_part *first = &w->special_tokens->before, *last = &w->special_tokens->after;
    int32_t end = w->special_tokens->eos >= 0 ? w->special_tokens->eos : w->special_tokens->sep;
    if (code >= 0)
        return ses_ints_append(to, id, n, e) && (end < 0 || ses_ints_push(to, end, e)) &&
               ses_ints_push(to, code, e);
    return ses_ints_append(to, first->id, first->n, e) && ses_ints_append(to, id, n, e) &&
           ses_ints_append(to, last->id, last->n, e);
}

static bool lay(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                ses_err *e)
{
    if (!corrupt(w, o, p, e)) return false;
    int32_t code = ses_control_code_of(w, p);
    int64_t n = (int64_t)w->noised.id.n, room = ses_framed_max_passage(w);
    return put(w, w->noised.id.p, n < room ? n : room, code, &d->ids, e) &&
           put(w, p->id, p->n, code, &d->labels, e) && ses_batch_builder_end_sequence(d, e) &&
           ses_batch_builder_end_target(d, e);
}

static bool check(const ses_build_ctx *w, ses_err *e) { return noises(w->o.noise, e) != 0; }

const ses_objective ses_objective_bart = { .name = "bart",
                                           .description = "denoising (BART; mBART with codes)",
                                           .needs = SES_NEEDS_MASK | SES_NEEDS_DECODER,
                                           .head = "conditional-generation",
                                           .mask_rate = 0.3,
                                           .span_length = 3,
                                           .build = lay,
                                           .check = check };
